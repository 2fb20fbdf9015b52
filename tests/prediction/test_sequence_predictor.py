"""A model that writes, from its table to its file and to tables of texts."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor, save_model
from gtx.sequence.model import beam_search, molecule_to_sequence
from gtx.sequence.sequences import CHARACTER_TOKENIZER, TokenVocabulary
from gtx.sequence.task import GeneratedTexts, SequenceGenerationTask, scores
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import ALONE, GOLDEN, molecules, read, write

FEATURISER = Featuriser(descriptors=False)
SOURCES = ["CCO", "c1ccccc1", "CC(=O)N", "CCCCC"]


@pytest.fixture
def make() -> Callable[..., Predictor]:
    """Writers with random weights, of which the end is as likely as the bias of the end says."""

    def made(tokenised: TokenVocabulary | None = None, end: float = 0.0, beams: int = 1) -> Predictor:
        vocabulary = tokenised or TokenVocabulary.of(["CCO", "c1ccccc1", "C=N"])
        arguments = {"size": len(vocabulary), **CODE_SIZES, "channels": 16, "layers": 1, "heads": 2}
        torch.manual_seed(0)
        model = molecule_to_sequence(**arguments)
        torch.nn.init.normal_(model.decoder.embedding.bias)
        with torch.no_grad():
            model.decoder.embedding.bias[1] += end
        spec = {"name": "molecule_to_sequence", "arguments": arguments}
        task = SequenceGenerationTask("product", vocabulary=vocabulary, limit=8, beams=beams)
        return Predictor([model], ModelFileHeader(task, FEATURISER, spec), "cpu")

    return made


def test_the_file_holds_all_it_takes(make: Callable, tmp_path) -> None:
    predictor = make(end=1.0)
    save_model(tmp_path / "model.gtx", predictor.members, predictor.header)
    opened = gtx.load(tmp_path / "model.gtx", "cpu", beams=3)
    assert opened.task.beams == 3
    assert opened.task.vocabulary == predictor.task.vocabulary and opened.task.limit == 8
    opened = gtx.load(tmp_path / "model.gtx", "cpu")
    frame = opened.predict(SOURCES)
    for other in (predictor, pickle.loads(pickle.dumps(opened))):
        assert frame.equals(other.predict(SOURCES))


def test_several_beams_search(make: Callable) -> None:
    greedily, searched = (make(end=1.0, beams=beams).predict(SOURCES) for beams in (1, 8))
    store = featurise(FEATURISER, SOURCES, workers=0).store
    (model,) = make(end=1.0).members
    best = [found[0] for found in beam_search(model.cpu(), store.batch(torch.arange(4)), 8, 8)]
    np.testing.assert_allclose(searched["product_log_probability"], [one.log_probability for one in best], atol=1e-5)
    assert (searched["product_pred"] != greedily["product_pred"]).any()
    with pytest.raises(InputError, match="beams: expected 1 or more, got 0"):
        make(beams=0)


def test_beams_are_for_sequences(model_path: Path) -> None:
    with pytest.raises(InputError, match=r"writes no sequences \(regression\): beams are for a model that writes"):
        gtx.load(model_path, beams=2)


def test_texts_that_are_no_smiles_are_not_judged_as_such(make: Callable) -> None:
    predictor = make(TokenVocabulary.of(["ab", "cd"], CHARACTER_TOKENIZER))
    assert predictor.output_columns(["product_pred"]) == {"product_pred1": str, "product_log_probability": float}
    assert predictor.predict_store(predictor._featurise(["CC"], 0)[1].store).canonical is None


def test_a_table_keeps_every_row_and_counts_what_is_invalid(make: Callable, tmp_path) -> None:
    given = [["1", "CCO", "C"], ["2", "C1CC", "C"], ["3", "CN", ""]]
    source = write(tmp_path / "in.csv", given, ["id", "smiles", "product"])
    predictor = make(end=-100.0)
    outcome = predictor.predict_table(source, tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[1]["error"].startswith('row 2, column "smiles", value "C1CC": ') and not rows[1]["product_pred"]
    assert {rows[0]["product_valid"], rows[2]["product_valid"]} <= {"0", "1"}
    invalid = sum(row["product_valid"] == "0" for row in rows)
    predictor.predict_table(source, tmp_path / "out.parquet")
    typed = pd.read_parquet(tmp_path / "out.parquet")
    assert typed.product_log_probability.dtype == np.float64
    assert typed.product_valid.tolist() == [{"1": True, "0": False, "": None}[row["product_valid"]] for row in rows]
    assert outcome.notes == [f"of 2 sequences written, {invalid} are no valid SMILES, 2 ran into the limit of 8 tokens"]
    assert outcome.metrics["per_target"]["product"]["exact_accuracy"] == 0.0  # of the one row with a product


def written(texts: list[str], canonical: list[str | None]) -> GeneratedTexts:
    zeros = np.zeros(len(texts))
    return GeneratedTexts(
        texts=texts, log_probability=zeros, canonical=canonical, cut=zeros > 0, warnings=[[]] * len(texts)
    )


def test_the_same_molecule_is_right_however_it_is_written() -> None:
    answers = written(["CCO", "OCC", "CC", "C("], ["CCO", "CCO", "CC", None])
    truth = ["CCO", "CCO", "CCO", "C("]
    assert answers.right(truth) == [True, True, False, False]
    assert answers.exact(truth) == [True, False, False, True]
    found = scores(answers.counts(dict(enumerate(truth))))
    assert found == {"exact_accuracy": 0.5, "molecule_accuracy": 0.5, "invalid": 1}
    assert scores(answers.counts({1: "CCO"})) == {"exact_accuracy": 0.0, "molecule_accuracy": 1.0, "invalid": 0}
    assert scores(answers.counts({})) == {"exact_accuracy": None, "molecule_accuracy": None, "invalid": None}
    assert scores(replace(answers, canonical=None).counts({0: "CCO"})) == {"exact_accuracy": 1.0}


# --- What training makes of its table, and what it refuses.


NETWORK = {"channels": 16, "layers": 1, "heads": 2}
SETTINGS = TrainSettings(epochs=1, model_arguments=NETWORK, progress=False, threads=1, accelerator="cpu")


@pytest.fixture
def data(tmp_path) -> DataSettings:
    """Molecules and their SMILES, with everything wrong that can be."""
    smiles = [s for s in molecules(60)["smiles"] if "Cl" not in s]
    rows = [[s, s, ("train", "train", "val", "test")[i % 4]] for i, s in enumerate(smiles)]
    rows[0][0] = "C1CC"  # no molecule
    rows[1][1] = ""  # no target
    rows[4][1] = "CCx"  # no token
    rows[5][1] = "C" * 41  # too long
    rows[7][1] = "CCl"  # a token that no training row has
    source = str(write(tmp_path / "data.csv", rows, ["smiles", "product", "part"]))
    return DataSettings(source, task=SequenceGenerationTask("product", max_tokens=40), split_column="part", workers=0)


@pytest.mark.slow
def test_every_row_comes_out_with_a_text_or_an_error(data: DataSettings, tmp_path) -> None:
    train_model(data, SETTINGS, tmp_path / "out", **ALONE)
    rows = read(tmp_path / "out" / "predictions.csv")
    assert [i for i, row in enumerate(rows) if row["error"]] == [0, 4, 5]
    assert all(bool(row["product_log_probability"]) != bool(row["error"]) for row in rows)
    assert rows[4]["error"].endswith("value \"CCx\": expected tokens, got 'x' at character 3 of 'CCx'")
    assert "has 41 tokens; the limit is 40" in rows[5]["error"]
    assert 'row 2, column "product", value "": there is no sequence to learn' in rows[1]["warning"]
    assert 'row 8, column "product", value "CCl": not in the vocabulary of ' in rows[7]["warning"]
    assert "'Cl'; no training row has it, so the model cannot write it" in rows[7]["warning"]
    assert [rows[i]["split"] for i in (0, 1, 4, 5, 7)] == ["", "", "", "", "test"]


def test_numbers_and_sequences_do_not_go_on_from_each_other(data: DataSettings, tmp_path) -> None:
    start = GOLDEN / "sequence.gtx"
    numbers = DataSettings(data.data, ("part",), workers=0)
    for table, settings in ((data, SETTINGS), (numbers, TrainSettings())):
        with pytest.raises(InputError, match="does not support training that starts from another model"):
            train_model(table, settings, tmp_path / "out", start=start)
