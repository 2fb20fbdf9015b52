"""The network and the kernel are mixed as validation rows say, in one file that says so."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gtx
from gtx.data import MoleculeStore
from gtx.prediction.model_file import blend_outputs
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import RunResult, train_model
from gtx.workflow.blending import blend_weights, fitted_kernel, kernel_spec, obstacle_to_blend
from tests.molecules_for_tests import store
from tests.tables import ALONE, TINY, molecules, read, write

pytestmark = pytest.mark.slow

TABLE = molecules(120)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mixing") / "data.csv"
    rows = TABLE[["smiles", "solvation_water"]].assign(class_=TABLE["gap"] > TABLE["gap"].median())
    rows["class_"] = rows["class_"].astype(int)
    return write(path, rows.to_numpy().tolist(), ["smiles", "solvation_water", "above"])


def learn(table: Path, out: Path, target: str = "solvation_water", **options):
    options |= {"training_rows": None if options.get("blend") != "no" else False}
    sizes, more = options.pop("sizes", (0.7, 0.15, 0.15)), {name: options.pop(name, False) for name in ALONE}
    data = DataSettings(str(table), (target,), split_sizes=sizes, workers=0)
    return train_model(data, TrainSettings(**TINY | options), out, **more)


@pytest.fixture(scope="module")
def outcomes(table: Path, tmp_path_factory) -> dict[str, RunResult]:
    """The same training, mixed and not."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        blend: learn(table, folder / blend, blend=blend, report=blend == "kernel", baselines=True)
        for blend in ("kernel", "no")
    }


@pytest.fixture(scope="module")
def runs(outcomes: dict[str, RunResult]) -> dict[str, Path]:
    return {blend: outcome.out / "model.gtx" for blend, outcome in outcomes.items()}


def measured(rows: int = 40, columns: int = 1) -> tuple[MoleculeStore, torch.Tensor]:
    y = torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return store(["C"] * rows).with_targets(y), y


def test_weights_follow_the_errors_and_are_those_of_the_prior_where_both_are_alike() -> None:
    val, y = measured()
    task = Regression(("y",)).fit(val)
    y = task.objective.scale(val).double()
    noise = torch.randn(3, 40, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    good, bad, other = y + 0.1 * noise[0], y + 3 * noise[1], y + 0.1 * noise[2]
    assert blend_weights(task, bad, good, val)[0] > 0.85 > 0.15 > blend_weights(task, good, bad, val)[0]
    assert blend_weights(task, good, good, val)[0] == pytest.approx(0.6, abs=1e-3)
    assert 0.4 < blend_weights(task, good, other, val)[0] < 0.8
    few, worse = val.subset(np.arange(10)), y + 0.2 * noise[1]
    many, four = val.subset(np.tile(np.arange(10), 4)), (4, 1)  # the same errors
    of_few = blend_weights(task, worse[:10], good[:10], few)[0]
    assert 0.6 < of_few < blend_weights(task, worse[:10].repeat(four), good[:10].repeat(four), many)[0]
    assert blend_weights(task, bad[:9], good[:9], few.subset(np.arange(9)))[0] == 0


@pytest.mark.parametrize("several", [False, True])
def test_classes_of_a_target_have_one_weight(several: bool) -> None:
    kind, labels = (MulticlassClassification, "abc") if several else (BinaryClassification, "ab")
    task = replace(kind(("y", "z")), classes=((*labels,), (*labels,)))
    y = torch.arange(60).reshape(30, 2).double() % len(labels)
    val = store(["C"] * 30).with_targets(y)
    if several:
        right = torch.cat([torch.nn.functional.one_hot(column.long(), 3) for column in y.T], 1).double() * 4 - 2
    else:
        right = 4 * y - 2
    found = blend_weights(task, -right, right, val)
    assert len(found) == task.objective.out_channels and (found > 0.8).all() and (found <= 1).all()
    assert (blend_weights(task, right, -right, val) < 0.2).all()


def test_a_blend_is_both_and_describes_itself(runs: dict[str, Path], table: Path) -> None:
    both, network = (gtx.load(path, device="cpu") for path in runs.values())
    share = float(both.kernel_member.share[0])
    assert 0.05 <= share <= 1 and network.kernel_member is None
    done = store(TABLE["smiles"].tolist())
    own = both.kernel_member.kernel(done.batch()).double()
    outputs = network.outputs(done)
    torch.testing.assert_close(both.outputs(done), (1 - share) * outputs + share * own[:, None])
    metrics = learn(table, runs["kernel"].parent, blend="kernel").metrics
    assert metrics["kernel_share"] == {"solvation_water": pytest.approx(float(share))}
    for part in ("train", "val", "test"):
        plain = learn(table, runs["no"].parent, blend="no").metrics[part]
        assert metrics["alone"]["network"][part] == {name: plain[name] for name in plain if name != "uncertainty"}
    half = both.task.interval["half_width"][0]
    rows = [row for row in read(runs["kernel"].parent / "predictions.csv") if row["split"] == "val"]
    off = sorted(abs(float(row["solvation_water_pred"]) - float(row["solvation_water"])) for row in rows)
    assert half == pytest.approx(off[int(np.ceil(0.9 * (len(off) + 1))) - 1], rel=1e-4)
    words = f"{1 - share:.0%} network + {share:.0%} kernel, kernel of 102 molecules"
    report = (runs["kernel"].parent / "report.html").read_text()
    assert words in report and "Its network alone" in report and "Its kernel alone" in report
    kept, parts = both.header.training, [row["split"] for row in read(runs["kernel"].parent / "predictions.csv")]
    assert kept.rows == [i for i, part in enumerate(parts, 1) if part != "test"] and kept.trained == len(kept)


@pytest.mark.parametrize("blend", ["kernel", "no"])
def test_validation_rows_that_are_predicted_otherwise_are_told(outcomes: dict[str, RunResult], blend: str) -> None:
    told = [note for note in outcomes[blend].notes if note.startswith("predictions.csv:")]
    rows = [row for row in read(outcomes[blend].out / "predictions.csv") if row["split"] == "val"]
    written = [float(row["solvation_water_pred"]) for row in rows]
    predicted = gtx.load(outcomes[blend].out / "model.gtx", device="cpu").predict([row["smiles"] for row in rows])
    differ = not np.allclose(predicted["solvation_water_pred"], written, rtol=1e-4)
    assert differ == bool(told) == (blend == "kernel")


def test_the_kernel_baseline_is_the_same_with_and_without_a_blend(runs: dict[str, Path]) -> None:
    blended, alone = (json.loads((path.parent / "metrics.json").read_text()) for path in runs.values())
    for part in ("val", "test"):
        assert blended["baseline"]["kernel"][part] == alone["baseline"]["kernel"][part]


def test_the_kernel_learns_from_validation_rows_when_the_shares_are_settled(runs: dict[str, Path]) -> None:
    both, network = (gtx.load(path, device="cpu") for path in runs.values())
    rows = read(runs["kernel"].parent / "predictions.csv")
    y = torch.tensor([[float(row["solvation_water"])] for row in rows], dtype=torch.float64)
    done = store([row["smiles"] for row in rows]).with_targets(y)
    part = np.array([row["split"] for row in rows])
    spec = kernel_spec(TrainSettings(), both.header)
    some = done.subset(np.flatnonzero(part == "train")), done.subset(np.flatnonzero(part != "test"))
    first, whole = (fitted_kernel(spec, both.task, rows_of) for rows_of in some)
    torch.testing.assert_close(both.kernel_member.kernel(done.batch()), whole(done.batch()))
    outputs = network.outputs(done)
    for kernel, of in ((first, "val"), (whole, "test")):
        blended = both.answers(done, blend_outputs(outputs, kernel(done.batch()), both.kernel_member.share))
        told = [float(row["solvation_water_pred"]) for row in rows if row["split"] == of]
        np.testing.assert_allclose(told, blended.mean[part == of, 0], rtol=1e-4)
    assert not torch.allclose(first(done.batch()), whole(done.batch()), atol=1e-3)


def test_where_it_cannot_be_the_network_is_alone_and_a_line_says_why(table: Path, tmp_path) -> None:
    outcome = learn(table, tmp_path / "few", "above", sizes=(0.9, 0.05, 0.05), epochs=1)
    (said,) = [note for note in outcome.notes if note.startswith("the network alone")]
    few = "the network alone: 6 validation rows are too few to weigh a kernel beside it, which takes 10"
    assert said == f"{few}; --model kernel is fitted without them, and gtx benchmark compares them"
    assert outcome.metrics["alone"] == {} and gtx.load(tmp_path / "few" / "model.gtx").kernel_member is None
    val, task = store(["C"] * 20).with_targets(torch.arange(20.0)[:, None]), Regression(("y",)).fit
    weighted = replace(val, weights=torch.ones(20))
    assert obstacle_to_blend(task(val), weighted, weighted) == "a closed form supports no weights"


def test_without_training_rows_the_file_tells_no_molecule(runs: dict[str, Path]) -> None:
    smiles = gtx.load(runs["kernel"], device="cpu").header.training.smiles
    assert gtx.load(runs["no"], device="cpu").header.training is None
    whole, without = (path.read_bytes() for path in runs.values())
    assert all(one.encode() in whole.replace(b"\\\\\\\\", b"\\") for one in smiles if len(one) > 12)
    assert not any(one.encode() in without for one in smiles if len(one) > 12)
