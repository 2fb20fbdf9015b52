"""From a table to a trained, scored and reported model, on real molecules with everything wrong with them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.tasks import Regression
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, collect_data_config, load_training_table
from gtx.workflow import RunResult, train_model
from tests.tables import ALONE, TINY, load, molecules, read, write, write_molecules

pytestmark = pytest.mark.slow

HEADER = ["id", "structure SMILES", "gap", "dipole"]
SHORT = TrainSettings(**TINY | {"epochs": 1})


def table(path: Path, count: int = 120) -> Path:
    """A table with a bad molecule, a blank, a repeated molecule with another label, and text for a number."""
    frame = molecules(count)
    rows = [[f"{i:03d}", *row] for i, row in enumerate(frame[["smiles", "gap", "dipole"]].to_numpy().tolist())]
    rows[3][2] = ""
    rows[7][1] = "C1CC"
    rows[9][3] = "high"
    rows[11][2:] = ["nan", "NA"]
    rows[20][1] = rows[21][1]
    return write(path, rows, HEADER)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, RunResult]:
    folder = tmp_path_factory.mktemp("run")
    data = DataSettings(str(table(folder / "data.csv")), ("gap", "dipole"), smiles_column="structure SMILES", workers=0)
    return folder, train_model(data, TrainSettings(**TINY), folder / "out")


def test_a_run_leaves_its_files_and_says_what_is_odd(run: tuple[Path, RunResult]) -> None:
    names = {"model.gtx", "metrics.json", "predictions.csv", "report.html", "config.yaml", "split.csv"}
    assert names <= {path.name for path in (run[0] / "out").iterdir()}
    settings, notes = gtx.load(run[0] / "out" / "model.gtx").header.settings, "\n".join(run[1].notes)
    assert settings["batch_pairs"] == 50_000 and settings["batch_pairs_used"] == [50_000]
    assert "split random, seed 0, each repeated molecule in one part: 93 train, 12 val, 12 test" in notes
    assert "120 rows: 118 read, 2 errors" in notes
    assert "1 molecule fills 2 rows, 1 of them with conflicting labels: gap is " in notes


def test_every_row_comes_out_in_order_with_numbers_or_an_error(run: tuple[Path, RunResult]) -> None:
    folder, _ = run
    rows, given = read(folder / "out" / "predictions.csv"), read(folder / "data.csv")
    assert [{name: row[name] for name in HEADER} for row in rows] == given
    numbers = [name for name in rows[0] if name not in (*HEADER, "split", "error", "warning")]
    assert numbers == [f"{t}_{kind}" for t in ("gap", "dipole") for kind in ("pred", "low", "high")]
    for i, row in enumerate(rows):
        filled = {bool(row[name]) for name in numbers}
        assert filled == {not row["error"]}, (i, row)
    assert [i for i, row in enumerate(rows) if row["error"]] == [7, 9]
    assert rows[7]["error"].startswith('row 8, column "structure SMILES", value "C1CC": ')
    assert rows[9]["error"].startswith('row 10, column "dipole", value "high": ')


def test_scores_are_those_of_the_predictions_written(run: tuple[Path, RunResult]) -> None:
    folder, outcome = run
    rows = read(folder / "out" / "predictions.csv")
    part = {int(row["row"]) - 1: row["split"] for row in read(folder / "out" / "split.csv")}
    tested = [rows[i] for i, name in part.items() if name == "test" and rows[i]["gap"] not in ("", "nan")]
    errors = [float(row["gap"]) - float(row["gap_pred"]) for row in tested]
    expected = outcome.metrics["test"]["per_target"]["gap"]["rmse"]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=1e-4)
    assert [row["split"] for row in rows] == [part.get(i, "") for i in range(len(rows))]
    assert list(rows[0])[-3:] == ["split", "error", "warning"]
    assert 11 not in part and 7 not in part and 9 not in part  # no label, no molecule, a bad label
    assert len(part) == 117


def test_a_repeated_molecule_is_in_one_part_unless_asked_otherwise(tmp_path) -> None:
    cells = [[s, i] for i, s in enumerate([*molecules(40)["smiles"]] * 2)]
    cells[40:] = [[f"{s}.[Na+]" if i % 9 == 0 else s, y] for i, (s, y) in enumerate(cells[40:])]
    data = DataSettings(str(write(tmp_path / "data.csv", cells, ["smiles", "y"])), ("y",), workers=0)
    together, apart = load_training_table(data), load_training_table(replace(data, group_duplicates=False))
    assert together.leaked == {} and together.split_summary == "random, seed 0, each repeated molecule in one part"
    assert ("train", "test") in apart.leaked and apart.split_summary == "random, seed 0"
    assert [len(rows) for rows in together.split.values()] == [len(rows) for rows in apart.split.values()] == [64, 8, 8]
    assert collect_data_config(data)["group_duplicates"] is True
    # a run from before there was a choice goes on where none is taken, and is refused where the rows differ
    assert "group_duplicates" not in collect_data_config(replace(data, group_duplicates=False))
    for other in ({"split": "scaffold"}, {"split_column": "y"}):
        assert "group_duplicates" not in collect_data_config(replace(data, **other))
    once = load(tmp_path / "once.csv", cells[:40], ["smiles", "y"], target_columns=("y",))
    assert once.split_summary == "random, seed 0"


def test_a_split_column_is_obeyed_and_its_leaks_are_said(tmp_path) -> None:
    cells = [[s, i, part] for part in ("train", "test") for i, s in enumerate(molecules(10)["smiles"])]
    file = write(tmp_path / "data.csv", cells, ["smiles", "y", "split"])
    data = DataSettings(str(file), ("y",), split_column="split", workers=0)
    outcome = train_model(data, SHORT, tmp_path / "out", **ALONE)
    assert any("10 molecules stand in both train and test" in note for note in outcome.notes)
    rows = read(tmp_path / "out" / "predictions.csv")
    assert [row["split1"] for row in rows] == [row["split"] for row in rows] == ["train"] * 10 + ["test"] * 10


def test_another_table_is_another_run(run: tuple[Path, RunResult]) -> None:
    folder, _ = run
    data = DataSettings(str(folder / "data.csv"), ("gap", "dipole"), smiles_column="structure SMILES", workers=0)
    (folder / "data.csv").write_text((folder / "data.csv").read_text().replace("000,", "999,"))
    with pytest.raises(InputError, match=r"data\.sha256"):
        train_model(data, TrainSettings(**TINY), folder / "out")


def test_fine_tuning_keeps_the_architecture_and_renews_the_head(run: tuple[Path, RunResult], tmp_path) -> None:
    frame = molecules(60)[["smiles", "solvation_water"]]
    rows = [*frame.to_numpy().tolist(), *([f"{'C' * i}[Se]C", float(i)] for i in range(1, 10))]
    data = DataSettings(str(write(tmp_path / "more.csv", rows, [*frame])), ("solvation_water",), workers=0)
    with pytest.raises(InputError, match="keeps its architecture"):
        train_model(data, TrainSettings(**TINY), tmp_path / "tuned", start=run[0] / "out" / "model.gtx", **ALONE)
    settings = TrainSettings(**TINY | {"model_arguments": {}})
    with pytest.raises(InputError, match="keeps its scale: leave out `element_reference`"):
        same = replace(data, target_columns=tuple(gtx.load(run[0] / "out" / "model.gtx").header.targets))
        same = replace(same, task=Regression(same.target_columns, element_reference=False))
        train_model(same, settings, tmp_path / "same", start=run[0] / "out" / "model.gtx")
    outcome = train_model(data, settings, tmp_path / "tuned", start=run[0] / "out" / "model.gtx", **ALONE)
    tuned, base = gtx.load(tmp_path / "tuned" / "model.gtx"), gtx.load(run[0] / "out" / "model.gtx")
    assert tuned.header.targets == ["solvation_water"]
    assert tuned.header.model["arguments"] == base.header.model["arguments"] | {"out_channels": 1}
    count, width = len(base.members[0].state_dict()), base.header.model["arguments"]["channels"]
    said = f"{count - 2} of {count} tensors are kept, 2 are new: head.3.weight [1, {width}], head.3.bias [1]"
    assert f"going on from model.gtx: {said}" in outcome.notes
    assert tuned.header.settings["start"]["weights"] == said
    assert "element Se" in base.predict(["C[Se]C"])["warning"][0]  # new to it, and learned
    learned, known = tuned.predict(["C[Se]C", "CF"])["warning"]  # fluorine is known to the model it came from
    assert "element Se" not in learned and not isinstance(known, str)


def test_files_of_one_name_and_targets_in_brackets(tmp_path) -> None:
    names = ["smiles", "gap [/eV]"]
    frame = molecules(60)[["smiles", "gap"]].to_numpy().tolist()
    parts = []
    for part, name in enumerate(("train.csv", "val/data.v1.csv", "test/data.v1.csv")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        parts.append(str(write(tmp_path / name, frame[part::3], names)))
    data = DataSettings(parts[0], (names[1],), val=parts[1], test=parts[2], workers=0)
    outcome = train_model(data, SHORT, tmp_path / "out")  # baselines name the target in a rich status line
    for name, rows in (("predictions-data.v1.csv", frame[1::3]), ("predictions-data.v11.csv", frame[2::3])):
        assert [row["smiles"] for row in read(tmp_path / "out" / name)] == [smiles for smiles, _ in rows]
    row_numbers = re.findall(r"row (\d+)", (outcome.out / "report.html").read_text())
    assert row_numbers and all(int(number) <= 20 for number in row_numbers)  # in their own file


def test_files_of_validation_and_test_rows(tmp_path) -> None:
    frame = molecules(90)[["smiles", "gap"]].to_numpy().tolist()
    a, b, c = (str(write(tmp_path / f"{name}.csv", frame[i::3], ["smiles", "gap"])) for i, name in enumerate("abc"))
    for val, counts in ((b, [30, 30, 30]), (None, [27, 3, 30])):
        split = load_training_table(DataSettings(a, ("gap",), val=val, test=c, workers=0)).split
        assert [len(split[part]) for part in ("train", "val", "test")] == counts


def test_coordinates_are_required_once_asked_for(tmp_path) -> None:
    frame = molecules(60)
    frame[["smiles", "gap", "coordinates"]].to_parquet(tmp_path / "data.parquet")
    data = DataSettings(str(tmp_path / "data.parquet"), ("gap",), featuriser=Featuriser(coordinates=True), workers=0)
    train_model(data, SHORT, tmp_path / "out", **ALONE)
    model = gtx.load(tmp_path / "out" / "model.gtx")
    assert "coordinates" in model.predict(["CCO"])["error"][0]


def test_a_report_that_fails_takes_nothing_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gtx.report.page.headline", lambda report: 1 / 0)
    data = DataSettings(str(write_molecules(tmp_path / "data.csv", 40, "gap")), ("gap",), workers=0)
    outcome = train_model(data, SHORT, tmp_path / "out", baselines=False)
    assert outcome.notes[-1] == "report.html could not be written: ZeroDivisionError: division by zero"
    assert len(gtx.load(tmp_path / "out" / "model.gtx").predict(["CCO"])) == 1
    assert train_model(data, SHORT, tmp_path / "out", baselines=False).was_finished


def test_a_split_by_a_column_or_into_folds_is_told(tmp_path) -> None:
    rows = [[s, i, 2000 + i % 9] for i, s in enumerate(molecules(60)["smiles"])]
    source = str(write(tmp_path / "data.csv", rows, ["smiles", "y", "year"]))
    data = DataSettings(source, ("y",), split="time", split_by="year", workers=0)
    assert load_training_table(data).split_summary == "time by column 'year'"
    assert collect_data_config(data)["split_by"] == "year"
    assert "split_by" not in collect_data_config(DataSettings(source, ("y",)))
    fold = load_training_table(DataSettings(source, ("y",), test_folds=5, test_fold=2, workers=0))
    assert fold.split_summary == "random, fold 2 of 5, seed 0" and len(fold.split["test"]) == 12


# --- Named models train from a table, are saved, and predict the same when loaded again.


ARGUMENTS = {"channels": 16, "layers": 1, "heads": 2}


@pytest.fixture(scope="module")
def plain_table(tmp_path_factory) -> Path:
    return write_molecules(tmp_path_factory.mktemp("models") / "data.csv", 40, "gap")


@pytest.mark.parametrize("name", ["gat", "exphormer", "mat"])  # over bonds, drawn pairs, and in space
def test_trains_saves_and_predicts(name: str, plain_table: Path, tmp_path) -> None:
    featuriser = Featuriser(conformers=ARCHITECTURES[name].coordinates == "needed", descriptors=False)
    data = DataSettings(str(plain_table), ("gap",), featuriser=featuriser, workers=0)
    settings = TrainSettings(**TINY | {"epochs": 1, "model_arguments": ARGUMENTS}, model=name)
    train_model(data, settings, tmp_path, **ALONE)
    rows = read(tmp_path / "predictions.csv")
    again = gtx.load(tmp_path / "model.gtx").predict([row["smiles"] for row in rows])["gap_pred"]
    np.testing.assert_allclose(again, [float(row["gap_pred"]) for row in rows], rtol=1e-4, atol=1e-5)


def test_a_closed_form_trains_saves_predicts_and_is_reported(plain_table: Path, tmp_path, capsys) -> None:
    data = DataSettings(str(plain_table), ("gap",), workers=0)
    settings = TrainSettings(model="kernel", progress=False)
    metrics = train_model(data, settings, tmp_path, baselines=False).metrics
    rows = read(tmp_path / "predictions.csv")
    predictor = gtx.load(tmp_path / "model.gtx")
    again = predictor.predict([row["smiles"] for row in rows])["gap_pred"]
    np.testing.assert_allclose(again, [float(row["gap_pred"]) for row in rows], rtol=1e-4, atol=1e-5)
    assert metrics["train"]["rmse"] < 0.1 * metrics["test"]["rmse"]
    (model,) = predictor.members
    kept = predictor.header.training
    assert list(kept.rows) == [i for i, row in enumerate(rows, 1) if row["split"] == "train"]
    assert model.row.tolist() == list(range(len(kept)))
    report = (tmp_path / "report.html").read_text()
    assert f"kernel of {len(model.row)} training molecules" in report and "by epoch" not in report
    assert main(["explain", str(tmp_path / "model.gtx"), rows[0]["smiles"]]) == 0
    assert "similarity" in capsys.readouterr().out


def test_a_model_whose_last_step_diverged_is_not_written(plain_table: Path, tmp_path) -> None:
    data = DataSettings(str(plain_table), ("gap",), workers=0)
    with pytest.raises(InputError, match="training diverged: no prediction is a finite number; a lower lr may help"):
        train_model(data, replace(SHORT, lr=1e30, clip=0.0, batch_molecules=99), tmp_path, **ALONE)
    assert not (tmp_path / "model.gtx").exists()


def test_a_kernel_of_some_rows_says_so_and_is_not_trained_further(plain_table, tmp_path, monkeypatch) -> None:
    for name, value in {"MOST_EXACT": 10, "INDUCING": 8, "MOST_ROWS": 20}.items():
        monkeypatch.setattr(gtx.kernel.regression, name, value)
    monkeypatch.setattr("gtx.workflow.outputs.MOST_ROWS", 20)
    data = DataSettings(str(plain_table), ("gap",), workers=0)
    settings = TrainSettings(model="kernel", kernel_parts=["substructures"], progress=False)
    result = train_model(data, settings, tmp_path / "run", report=False)
    said = "the kernel learned from 20 rows at most, drawn at random, and compares molecules with 8 of them"
    assert said in result.notes and result.metrics["baseline"]["kernel"]["settings"]["training_rows"] == 20
    with pytest.raises(InputError, match="model kernel is solved in closed form, and no training can go on from it"):
        train_model(data, TrainSettings(progress=False), tmp_path / "on", start=tmp_path / "run" / "model.gtx")
    (tmp_path / "run" / "model.gtx").unlink()  # the same command makes it again
    assert not train_model(data, settings, tmp_path / "run", report=False).was_finished
    assert gtx.load(tmp_path / "run" / "model.gtx").header.targets == ["gap"]
