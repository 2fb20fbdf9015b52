"""Every task of the list, from a table to a report."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gtx
from gtx.base.errors import InputError
from gtx.tasks import TASKS
from gtx.testing import check_task
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import TINY, molecules, read, write

from .cases import CASES, Case, Yields

ROWS = 100
SMALL = {"channels": 16, "layers": 1, "heads": 2}
IN_WORK = ["bounds", "multiclass", "molecule-atom-bond"]  # those that are trained in a quick run of the tests, too
ELSEWHERE = ["a loss of one's own", "bonds", "two classes of bonds"]
"""Trained in `tests/training/test_fitting.py`, `tests/workflow/test_doors.py` and `test_atoms_and_bonds.py`."""
SETTINGS = TrainSettings(**TINY | {"epochs": 2, "model_arguments": SMALL})


def table(case: Case, path: Path) -> DataSettings:
    frame = molecules(ROWS)
    cells = case.cells(frame)
    rows = [list(row) for row in zip(frame.smiles, *cells.values(), strict=True)]
    rows[5][0] = "C1CC"
    return DataSettings(str(write(path, rows, ["smiles", *cells])), task=case.task, workers=0)


TRAINED = [n if n in IN_WORK else pytest.param(n, marks=pytest.mark.slow) for n in CASES if n not in ELSEWHERE]


@pytest.fixture(scope="module", params=TRAINED)
def run(request, tmp_path_factory) -> tuple[Case, Path]:
    """A run, and the folder that it is in."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp("run")
    train_model(table(case, folder / "data.csv"), SETTINGS, folder / "whole")
    return case, folder


def model(case: Case, folder: Path) -> gtx.prediction.Predictor:
    return gtx.load(folder / "model.gtx", "cpu", task=Yields if isinstance(case.task, Yields) else None)


def test_the_table_settles_the_task_and_the_file_holds_it(run: tuple[Case, Path]) -> None:
    case, folder = run
    opened = model(case, folder / "whole")
    assert type(opened.task) is (case.settled or type(case.task))
    assert opened.header.targets == list(case.task.targets)
    opened.save(folder / "again.gtx")
    assert (folder / "again.gtx").read_bytes() == (folder / "whole" / "model.gtx").read_bytes()
    objective, logged = opened.task.objective, read(folder / "whole" / "members" / "0" / "log.csv")[-1]
    assert objective.validation_metrics  # each may choose the epoch
    assert all(logged[f"val_{name}"] for name in (*objective.validation_metrics, "loss", "score"))


def test_every_row_has_an_answer_or_an_error(run: tuple[Case, Path]) -> None:
    case, folder = run
    rows = read(folder / "whole" / "predictions.csv")
    assert len(rows) == ROWS and tuple(rows[0])[-len(case.answers) - 3 : -3] == case.answers
    assert [i for i, row in enumerate(rows) if row["error"]] == [5]
    assert all(bool(row[name]) != bool(row["error"]) for row in rows for name in case.answers)
    alone = model(case, folder / "whole").predict([row["smiles"] for row in rows[:8]])
    assert tuple(alone)[1:-2] == case.answers
    for name in case.answers:
        for row, value in zip(rows[:8], alone[name], strict=True):
            if isinstance(value, float) and row[name]:
                assert float(row[name]) == pytest.approx(value, rel=1e-4, abs=1e-5)
            elif isinstance(value, str):
                assert row[name] == value


def test_it_is_scored_and_reported(run: tuple[Case, Path]) -> None:
    case, folder = run
    data = table(case, folder / "data.csv")
    again = train_model(data, SETTINGS, folder / "whole")
    assert again.was_finished
    for part in ("train", "val", "test"):
        assert set(again.metrics[part]) - {"uncertainty"} == {*again.task.metrics, "per_target"}
        assert list(again.metrics[part]["per_target"]) == list(case.task.targets)
    page = (folder / "whole" / "report.html").read_text()
    assert "could not be drawn" not in page and all(metric.title in page for metric in again.task.metrics.values())
    assert bool(again.metrics["baseline"]) != again.task.writes
    assert ("gtx predict" in page, "task=Yields" in page) == ((False, True) if again.task.custom else (True, False))
    if getattr(again.task, "has_intervals", False):
        share = f"{100 * again.task.coverage:g}%"
        assert f"intervals that should hold {share} of the values" in page and f"intervals of {share}: ±" in page
    for target, scores in again.metrics["train"]["per_target"].items():
        assert ("bounds_kept" in scores) == (bool(getattr(again.task, "censored", None)) and target == "gap")


def test_unlike_options_are_another_run(run: tuple[Case, Path]) -> None:
    case, folder = run
    changed = {"regression": {"loss": "mse"}, "bounds": {"censored": None}, "two labels": {"class_weights": "none"}}
    changed |= {"numbers with quantiles": {"coverage": 0.9}, "multiclass": {"coverage": 0.9}}
    for name, options in changed.items():
        if CASES[name] is case:
            data = replace(table(case, folder / "data.csv"), task=replace(case.task, **options))
            with pytest.raises(InputError, match=f"{next(iter(options))} .* there, .* now"):
                train_model(data, SETTINGS, folder / "whole")


@pytest.mark.parametrize("name", [name for name in CASES if name != "sequence"])
def test_the_guarantees(name: str) -> None:
    frame = molecules(40)
    check_task(CASES[name].task, {"smiles": frame.smiles.tolist(), **CASES[name].cells(frame)})


def test_every_task_of_gtx_is_in_the_list() -> None:
    inferred = {case.settled.name for case in CASES.values() if case.settled}
    names = inferred | {case.task.name for case in CASES.values()} - {"inferred"}
    assert names - {"yields"} == set(TASKS)


def test_weights_of_classes_give_rare_ones_the_same_say(tmp_path) -> None:
    for name in ("two labels", "multiclass"):
        case = CASES[name]
        data = load_training_table(table(case, tmp_path / "data.csv"))
        rows = torch.rand(len(data.store), generator=torch.Generator().manual_seed(0)).double() / 1000
        store = replace(data.store, weights=rows)
        weighted, plain = (replace(data.task, class_weights=w).fit(store) for w in ("balanced", "none"))
        output = torch.zeros(len(store), weighted.objective.out_channels)
        y = torch.from_numpy(data.y).float()
        known = ~y[:, 0].isnan()
        loss = (weighted.objective.elementwise(output, y.nan_to_num(0))[:, 0] * rows)[known]
        shares = [float(loss[y[known, 0] == k].sum()) for k in np.unique(y[known, 0])]
        assert max(shares) == pytest.approx(min(shares), rel=1e-4)
        even = plain.objective.elementwise(output, y.nan_to_num(0))[known, 0]
        assert even.max() == even.min()
