"""From a table of molecules and texts to a trained, scored and reported writer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.sequence.task import SequenceGenerationTask
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import RunResult, train_model
from tests.tables import molecules, read, write

pytestmark = pytest.mark.slow

NETWORK = {"channels": 16, "layers": 1, "heads": 2}
SETTINGS = TrainSettings(epochs=2, model_arguments=NETWORK, progress=False, threads=1, accelerator="cpu")
HEADER = ["id", "smiles", "product", "part"]


def table(path: Path) -> Path:
    """Molecules and their SMILES, with everything wrong that can be."""
    smiles = [s for s in molecules(60)["smiles"] if "Cl" not in s]
    rows = [[str(i), s, s, ("train", "train", "val", "test")[i % 4]] for i, s in enumerate(smiles)]
    rows[0][1] = "C1CC"  # no molecule
    rows[1][2] = ""  # no target
    rows[4][2] = "CCx"  # no token
    rows[5][2] = "C" * 41  # too long
    rows[7][2] = "CCl"  # a token that no training row has
    return write(path, rows, HEADER)


def settings(path: Path, **options: object) -> DataSettings:
    return DataSettings(str(path), task=SequenceGenerationTask("product", **options), split_column="part", workers=0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    folder = tmp_path_factory.mktemp("writer")
    return folder, train_model(settings(table(folder / "data.csv"), max_tokens=40), SETTINGS, folder / "out")


def test_every_row_comes_out_with_a_text_or_an_error(run: tuple[Path, RunResult]) -> None:
    folder, outcome = run
    rows, given = read(folder / "out" / "predictions.csv"), read(folder / "data.csv")
    assert [{name: row[name] for name in HEADER} for row in rows] == given
    assert [i for i, row in enumerate(rows) if row["error"]] == [0, 4, 5]
    assert all(bool(row["product_log_probability"]) != bool(row["error"]) for row in rows)
    assert rows[4]["error"] == (
        "row 5, column \"product\", value \"CCx\": expected tokens, got 'x' at character 3 of 'CCx'"
    )
    assert "has 41 tokens; the limit is 40" in rows[5]["error"]
    assert 'row 2, column "product", value "": there is no sequence to learn' in rows[1]["warning"]
    assert 'row 8, column "product", value "CCl": not in the vocabulary of ' in rows[7]["warning"]
    assert "'Cl'; no training row has it, so the model cannot write it" in rows[7]["warning"]
    part = {int(row["row"]) - 1: row["split"] for row in read(folder / "out" / "split.csv")}
    assert part[7] == "test" and not {0, 1, 4, 5} & part.keys()
    assert f"{len(rows)} rows: {len(rows) - 3} read, 3 errors (2 with a bad target, 1 with" in "\n".join(outcome.notes)


def test_metrics_are_those_of_the_texts_written(run: tuple[Path, RunResult]) -> None:
    folder, outcome = run
    assert json.loads((folder / "out" / "metrics.json").read_text()) == outcome.metrics
    names = {"perplexity", "token_accuracy", "exact_accuracy", "molecule_accuracy", "invalid"}
    for part in ("train", "val", "test"):
        scores = outcome.metrics[part]
        assert set(scores) == names | {"per_target"} and set(scores["per_target"]["product"]) == names
        assert scores["perplexity"] > 1 and 0 <= scores["token_accuracy"] <= 1
    rows = read(folder / "out" / "predictions.csv")
    test = [rows[int(row["row"]) - 1] for row in read(folder / "out" / "split.csv") if row["split"] == "test"]
    assert len(test) > 10
    assert outcome.metrics["test"]["invalid"] == sum(row["product_valid"] == "0" for row in test)
    exact = np.mean([row["product_pred"] == row["product"] for row in test])
    assert outcome.metrics["test"]["exact_accuracy"] == pytest.approx(exact)


def test_the_model_file_writes_the_same_alone(run: tuple[Path, RunResult]) -> None:
    folder, _ = run
    rows = [row for row in read(folder / "out" / "predictions.csv") if not row["error"]]
    model = gtx.load(folder / "out" / "model.gtx", "cpu")
    assert model.predict([row["smiles"] for row in rows])["product_pred"].tolist() == [
        row["product_pred"] for row in rows
    ]
    assert "Cl" not in model.task.vocabulary.tokens and not model.header.featuriser.descriptors
    assert model.header.metrics["test"]["invalid"] == run[1].metrics["test"]["invalid"]


def test_any_text_will_do(tmp_path: Path) -> None:
    cells = [[s, f"{len(s)} é"] for s in molecules(30)["smiles"]]
    path = write(tmp_path / "data.csv", cells, ["smiles", "name"])
    data = DataSettings(str(path), task=SequenceGenerationTask("name", tokens="characters"), workers=0)
    outcome = train_model(data, SETTINGS, tmp_path / "out")
    assert set(outcome.metrics["test"]["per_target"]["name"]) == {"perplexity", "token_accuracy", "exact_accuracy"}
    assert "name_valid" not in read(tmp_path / "out" / "predictions.csv")[0]


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"folds": 2}, "has no other folds than 1"),
        ({"model_arguments": {"channels": 15}}, "the model cannot be made: .*15 channels"),
    ],
)
def test_what_does_not_suit_is_one_line(training: dict, message: str, tmp_path: Path) -> None:
    asked = settings(table(tmp_path / "data.csv"))
    with pytest.raises(InputError, match=message) as error:
        train_model(asked, replace(SETTINGS, **training), tmp_path / "out")
    assert "\n" not in str(error.value)


def test_numbers_and_sequences_do_not_go_on_from_each_other(run: tuple[Path, RunResult], tmp_path: Path) -> None:
    model, path = run[0] / "out" / "model.gtx", str(run[0] / "data.csv")
    with pytest.raises(InputError, match="does not support training that starts from another model"):
        train_model(settings(run[0] / "data.csv"), SETTINGS, tmp_path / "out", start=model)
    with pytest.raises(InputError, match="does not support training that starts from another model"):
        train_model(DataSettings(path, ("id",), workers=0), TrainSettings(), tmp_path / "out", start=model)
