"""Molecules are chosen by the posterior of a Gaussian process, and `gtx select` writes them."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

import gtx
from gtx.cli import main
from gtx.data import MoleculeStore, featurise
from gtx.kernel import KernelRidge
from gtx.models import build_model, kernel_ridge
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, save_model
from gtx.prediction.domain import TrainingRows
from gtx.prediction.model_file import KernelMember
from gtx.select.selecting import choose_for_accuracy, choose_for_best, posterior, replay, select
from gtx.tasks import Regression
from gtx.tasks.closed_form import fit_closed_form
from gtx.tasks.regression import ELEMENTS
from tests.molecules_for_tests import CODE_SIZES, store
from tests.tables import molecules

RIDGE = 0.1


@pytest.fixture(scope="module")
def many() -> MoleculeStore:
    table = molecules(90)
    return store(table["smiles"].tolist()).with_targets(table[["gap"]].to_numpy())


@pytest.fixture(scope="module")
def kernel(many: MoleculeStore) -> KernelRidge:
    found = kernel_ridge(1, num_descriptors=many.descriptors.shape[1])
    fit_closed_form(found, Regression(("gap",)).fit(many), many)
    return found


@pytest.fixture(scope="module")
def similar(kernel: KernelRidge) -> torch.Tensor:
    return kernel.gram()


def variance(similar: torch.Tensor, known: list[int], asked: list[int]) -> torch.Tensor:
    """The posterior covariance of `asked` after `known` were measured, straight from its equation."""
    inner = similar[known][:, known] + RIDGE * torch.eye(len(known), dtype=similar.dtype)
    return similar[asked][:, asked] - similar[asked][:, known] @ torch.linalg.inv(inner) @ similar[known][:, asked]


def covariance(similar: torch.Tensor, known: list[int], asked: list[int]) -> torch.Tensor:
    factor = torch.linalg.cholesky(similar[known][:, known] + RIDGE * torch.eye(len(known), dtype=similar.dtype))
    return posterior(similar[asked][:, asked], similar[asked][:, known], factor)


def test_each_choice_removes_most_variance_after_those_before_it(similar: torch.Tensor) -> None:
    known, asked = list(range(30)), list(range(30, 90))
    picks = list(choose_for_accuracy(covariance(similar, known, asked), RIDGE, 4))
    before = variance(similar, known, asked).trace()
    total = before
    for pick in picks:
        left = torch.tensor([variance(similar, [*known, one], asked).trace() for one in asked])
        assert int(left.argmin()) == pick.place
        known.append(asked[pick.place])
        assert pick.gain == pytest.approx(float((total - left.min()) / before), rel=1e-6)
        total = left.min()
    assert len({pick.place for pick in picks}) == 4


def test_the_best_predictions_come_first_with_their_chance(similar: torch.Tensor) -> None:
    found = covariance(similar, list(range(30)), list(range(30, 90)))
    mean = torch.linspace(-1, 1, 60, dtype=torch.float64)
    mean[17] = 9.0
    picks = list(choose_for_best(mean, found, 60, best=1.0))
    assert picks[0].place == 17 and picks[0].gain > 0.99
    assert [pick.place for pick in picks[1:4]] == [59, 58, 57] and picks[1].gain == pytest.approx(0.5)
    assert sorted(pick.place for pick in picks) == list(range(60))


def test_the_values_and_the_kernel_of_other_molecules_come_out_of_a_solved_kernel(many, kernel) -> None:
    scaled = Regression(("gap",)).fit(many).objective.scale(many).double()
    torch.testing.assert_close(kernel.values(), scaled, atol=1e-4, rtol=0)
    some = many.subset(torch.arange(20, 50).numpy())
    torch.testing.assert_close(kernel.with_references(some).gram(), kernel.gram()[20:50, 20:50])


@pytest.mark.parametrize("goal", ["accuracy", "best"])
def test_a_replay_ends_where_all_strategies_have_measured_all(kernel: KernelRidge, goal: str, monkeypatch) -> None:
    monkeypatch.setattr("gtx.select.selecting.MOST_REPLAYED", 80)
    y = kernel.values().flatten()
    found = replay(kernel.gram(), y, float(kernel.ridge), goal, starts=2)
    ends = [heights[-1] for heights in found.curves.values()]
    starts = [heights[0] for heights in found.curves.values()]
    assert ends == pytest.approx([ends[0]] * len(ends)) and starts == pytest.approx([starts[0]] * len(starts))
    assert found.measured == sorted(found.measured) and len(found.measured) == len(found.curves["choice"])
    assert found.measured[-1] == (80 if goal == "best" else 64)
    if goal == "best":
        assert ends[0] == 1.0 and found.area("choice") > found.area("random")


# --- `gtx select`: rows in the order of the choice, nothing measured or repeated, one line for what cannot be.


TABLE = molecules(110)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A kernel of 80 molecules beside two networks as they are at their start."""
    folder = tmp_path_factory.mktemp("select")
    featuriser, rows = Featuriser(), TABLE[:80]
    done = featurise(featuriser, rows["smiles"].tolist(), workers=0, smiles=True)
    train = done.store.with_targets(rows[["gap"]].to_numpy())
    task = Regression(("gap",)).fit(train)
    arguments = {"out_channels": 1, **CODE_SIZES, "channels": 8, "layers": 1, "heads": 2}
    spec = {"name": "standard", "arguments": arguments | {"num_descriptors": featuriser.num_descriptors}}
    own = kernel_ridge(1, num_descriptors=train.descriptors.shape[1])
    fit_closed_form(own, task, train)
    training = TrainingRows.sample(done.smiles, list(range(1, 81)), {"gap": rows["gap"].astype(str).tolist()})
    header = ModelFileHeader(task, featuriser, spec, training=training)
    of_kernel = {"name": "kernel", "arguments": {"out_channels": 1, **own.learned_arguments}}
    networks = [build_model(spec).eval() for _ in range(2)]
    beside = replace(header, partner=of_kernel), KernelMember(own, torch.tensor([0.8]))
    save_model(folder / "model.gtx", networks, *beside)
    save_model(folder / "alone.gtx", networks, header)
    kernel = {"name": "kernel", "arguments": of_kernel["arguments"] | CODE_SIZES}
    save_model(folder / "kernel.gtx", [own], replace(header, model=kernel))
    return folder / "model.gtx"


@pytest.fixture
def library(tmp_path) -> Path:
    """Ten molecules that were measured, thirty that were not, one of them twice, and a row that cannot be read."""
    rows = pd.concat([TABLE[70:110], TABLE[109:110], pd.DataFrame({"smiles": ["C(("]})])
    rows = rows.assign(code=[f"lib-{i}" for i in range(len(rows))], reason="in stock")
    rows[["code", "smiles", "reason"]].to_csv(tmp_path / "library.csv", index=False)
    return tmp_path / "library.csv"


@pytest.mark.parametrize("goal", ["accuracy", "best"])
def test_a_plate_is_written(model: Path, library: Path, goal: str, capsys) -> None:
    out, figure = library.with_name("plate.csv"), library.with_name("replay.svg")
    words = ["select", str(model), str(library), "--number=6", f"--for={goal}", "--out", str(out), "--workers=0"]
    assert main([*words, "--figure", str(figure)]) == 0
    printed = capsys.readouterr()
    assert "10 molecules, known from training" in printed.err and "1 error" in printed.err
    assert "1 molecule, repeated" in printed.err and "6 of 30 molecules" in printed.out
    assert all(word in printed.out for word in ("choice", "random")) and figure.stat().st_size > 1000
    plate = pd.read_csv(out)
    assert plate["choice"].tolist() == [1, 2, 3, 4, 5, 6] and plate["code"].is_unique
    assert not set(plate["smiles"]) & set(TABLE["smiles"][:80])
    assert plate["gap_pred"].notna().all() and set(plate["reason"]) == {"in stock"}
    assert plate["reason1"].str.contains("uncertainty").all()


def test_without_all_training_rows_what_the_kernel_knows_is_left_out(model: Path, library: Path, capsys) -> None:
    """Of a model without its training rows, with a sample of them, and of a kernel that has a part of them."""
    predictor = gtx.load(model, device="cpu")
    training = predictor.header.training
    few = replace(training, smiles=training.smiles[:75], rows=training.rows[:75], values={"gap": ["1"] * 75})
    words = [str(library), "--number=30", "--workers=0", "--out", str(library.with_name("plate.csv"))]
    for kept, known in ((None, 0), (few, 5)):
        predictor.with_header(replace(predictor.header, training=kept)).save(library.with_name("few.gtx"))
        assert main(["select", str(library.with_name("few.gtx")), *words]) == 0
        told = capsys.readouterr().err
        assert f"{10 - known} molecules, which the kernel cannot tell from a training molecule" in told
        assert not set(pd.read_csv(library.with_name("plate.csv"))["smiles"]) & set(TABLE["smiles"][:80])
        assert "may be among" not in told and (f"{known} molecules, known" in told) == bool(known)
    predictor.kernel_member.kernel.row += 1  # as if another molecule had been left out
    predictor.with_header(replace(predictor.header, training=few)).save(library.with_name("few.gtx"))
    assert main(["select", str(library.with_name("few.gtx")), *words]) == 0
    told = "may be among the chosen ones: the model file lists 75 of 80 training molecules, the kernel 80"
    assert told in capsys.readouterr().err


def test_a_kernel_alone_chooses_as_it_does_beside_networks(model: Path, library: Path) -> None:
    codes = []
    for name in ("model.gtx", "kernel.gtx"):
        out = library.with_name(f"{name}.csv")
        words = ["--number=4", "--workers=0", "--out", str(out)]
        assert main(["select", str(model.with_name(name)), str(library), *words]) == 0
        codes.append(pd.read_csv(out)["code"].tolist())
    assert codes[1] and len(set(codes[0]) & set(codes[1])) >= 2  # the networks' disagreement counts too


def test_a_folder_is_one_library(model: Path, library: Path, capsys) -> None:
    rows = pd.read_csv(library)
    folder = library.with_name("parts")
    (folder / "more").mkdir(parents=True)
    rows[:20].to_csv(folder / "a.csv", index=False)
    rows[20:].to_csv(folder / "more" / "b.csv", index=False)
    words = ["--number=6", "--workers=0", "--out"]
    assert main(["select", str(model), str(folder), *words, str(library.with_name("two.csv"))]) == 0
    assert main(["select", str(model), str(library), *words, str(library.with_name("one.csv"))]) == 0
    assert "--number" not in capsys.readouterr().err
    assert main(["select", str(model), str(library), "--number=96", *words[1:], str(library.with_name("all.csv"))]) == 0
    assert "--number: fewer than 96 molecules can be chosen; all 30 are" in capsys.readouterr().err
    for inside in ("a.csv", "new.csv"):
        assert main(["select", str(model), str(folder), *words, str(folder / inside)]) == 2
        assert f"{inside} is within {folder}: predictions would be taken" in capsys.readouterr().err
    two, one = pd.read_csv(library.with_name("two.csv")), pd.read_csv(library.with_name("one.csv"))
    assert two["code"].tolist() == one["code"].tolist() and set(two["file"]) == {"a.csv", "more/b.csv"}


def test_of_a_large_library_those_left_behind_are_counted(model: Path, library: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("gtx.select.selecting.CANDIDATES", 10)
    out = library.with_name("plate.csv")
    assert main(["select", str(model), str(library), "--number=6", "--workers=0", "--out", str(out)]) == 0
    told = capsys.readouterr()
    behind = re.search(r"left out: (\d+) molecules, behind those that are compared with each other", told.err)
    assert behind and "6 of 10" in told.out
    assert int(behind[1]) + ("1 molecule, repeated" in told.err) == 21  # the model says whether the pair is in front


def test_positions_of_the_library_are_read(model: Path, tmp_path) -> None:
    predictor = gtx.load(model.with_name("kernel.gtx"), device="cpu")
    featuriser = replace(predictor.header.featuriser, coordinates=True)
    TABLE[80:].to_parquet(tmp_path / "library.parquet")
    out = tmp_path / "plate.csv"
    predictor = predictor.with_header(replace(predictor.header, featuriser=featuriser))
    assert len(select(predictor, tmp_path / "library.parquet", 6, out, workers=0).picks) == 6


def test_residuals_of_a_reference_per_element_are_no_ranking(model: Path, library: Path) -> None:
    predictor = gtx.load(model, device="cpu")
    task = predictor.task
    scaler = replace(task.scaler, reference=torch.ones(ELEMENTS, 1).double())
    predictor = predictor.with_header(replace(predictor.header, task=replace(task, scaler=scaler)))
    with pytest.raises(gtx.InputError, match="gap was learned minus a reference per element"):
        select(predictor, library, 6, library.with_name("plate.csv"), goal="best")


def test_what_cannot_be_chosen_ends_in_a_line(model, library, capsys) -> None:
    for name, words, message in (
        ("model.gtx", ["--number=0"], "--number: expected 1 to 4,000, got 0"),
        ("model.gtx", ["--number=3", "--target=water"], "--target: expected one of 'gap', got 'water'"),
        ("model.gtx", ["--number=3", "--lowest"], "--lowest: expected with --for best"),
        ("model.gtx", ["--number=3", "--figure=x.bmp"], "--figure: expected a name that ends in .svg, .png, .pdf, got"),
        ("alone.gtx", ["--number=3"], "which this model lacks"),
    ):
        out = library.with_name("plate.csv")
        assert main(["select", str(model.with_name(name)), str(library), *words, "--out", str(out)]) == 2
        assert message in capsys.readouterr().err and not out.exists()
