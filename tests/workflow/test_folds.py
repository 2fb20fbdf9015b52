"""`gtx train --folds`: every row that is not test is predicted once, by models that never saw its molecule."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data.splits import SPLIT_METHODS
from gtx.molecules import murcko_scaffold
from gtx.tasks import Regression
from gtx.tasks.uncertainty import LEVEL
from gtx.training import TrainSettings
from gtx.training_data import Dataset, DataSettings, load_training_table
from gtx.workflow import train_model
from gtx.workflow.blending import fitted_kernel
from gtx.workflow.run import Run
from tests.tables import ALONE, TINY, TINY_ESTIMATOR, bundled, molecules, read

pytestmark = pytest.mark.slow

FOLDS = 3
SETTINGS = TrainSettings(**TINY, folds=FOLDS, accelerator="cpu")


def table(path: Path, count: int = 90) -> Path:
    """A table in which every fifth molecule fills a second row, with the laboratory and the year of each row."""
    frame = molecules(count)[["smiles", "gap", "dipole"]]
    frame = pd.concat([frame, frame[::5]], ignore_index=True)
    frame["lab"] = [f"lab {i % 7}" for i in range(len(frame))]
    frame["year"] = 2000 + np.arange(len(frame)) // 10
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataSettings:
    return DataSettings(str(table(tmp_path_factory.mktemp("folds") / "t.csv")), ("gap",), workers=0)


def in_folds(data: DataSettings) -> Dataset:
    return load_training_table(data).in_folds(FOLDS, data)


# --- The division of the rows.

LABELS = {
    "random": lambda rows: rows.smiles,
    "scaffold": lambda rows: [murcko_scaffold(text) for text in rows.smiles],
    "cluster": SPLIT_METHODS["cluster"].groups,
    "group": lambda rows: rows.values.tolist(),
    "time": lambda rows: rows.values.tolist(),
}


@pytest.mark.parametrize("split", LABELS)
def test_each_row_is_in_one_fold_together_with_those_of_its_group(split: str, data: DataSettings) -> None:
    data = replace(data, split=split, split_by={"group": "lab", "time": "year"}.get(split))
    plain, found = load_training_table(data), in_folds(data)
    rows = np.union1d(plain.split["train"], plain.split["val"])
    np.testing.assert_array_equal(np.sort(np.concatenate(found.folds)), rows)
    np.testing.assert_array_equal(found.split["test"], plain.split["test"])
    assert len(found.folds) == FOLDS
    _, values = found.rows_to_split(data, np.arange(len(found.smiles)))
    labels = LABELS[split](values)
    groups = [{labels[i] for i in fold} for fold in found.folds]
    assert not set.intersection(groups[0], groups[1]) | set.intersection(groups[1], groups[2])
    if split == "time":
        assert max(groups[0]) < min(groups[1]) and max(groups[1]) < min(groups[2])
    for network, fold in zip(found.networks, found.folds, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([network["train"], fold])), rows)


def test_rows_called_val_are_in_a_fold(tmp_path, data: DataSettings) -> None:
    frame = pd.read_csv(data.data).assign(part="train")
    frame.loc[:19, "part"], frame.loc[20:39, "part"] = "val", "test"
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = in_folds(replace(data, data=str(tmp_path / "t.csv"), split_column="part"))
    assert sum(map(len, found.folds)) == len(frame) - 20


# --- Predictions.


def test_the_network_of_a_fold_is_that_of_the_other_rows_alone(data: DataSettings) -> None:
    """To the last bit: what the first network learned from does not hold its fold."""
    with Run.load(data, SETTINGS) as run:
        members, _ = run.fit()
    found = in_folds(data)
    alone = load_training_table(data).with_split({**found.networks[0], "test": found.split["test"]}, "the first fold")
    with Run.load(data, replace(SETTINGS, folds=1), read=lambda _: alone) as run:
        ((member,), _), scaler = replace(run, task=members[0].task).fit(), members[0].task.scaler
    assert scaler.mean.item() == pytest.approx(found.y[found.split["train"]].mean())
    for name, weight in member.model.state_dict().items():
        assert weight.equal(members[0].model.state_dict()[name]), name


@pytest.fixture(scope="module")
def network(data: DataSettings, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("network") / "run"
    train_model(data, replace(SETTINGS, blend="no"), out, baselines=False)
    return out


def test_each_row_is_predicted_by_the_network_of_its_fold_and_others_by_the_mean(network: Path) -> None:
    rows = pd.read_csv(network / "predictions.csv")
    each = gtx.load(network / "model.gtx", "cpu").predict(rows.smiles.tolist(), members=True)
    members = each[[f"gap_pred_{k}" for k in range(1, FOLDS + 1)]].to_numpy()
    assert rows["split"].value_counts().keys().sort_values().tolist() == ["fold 1", "fold 2", "fold 3", "test"]
    for part, own in rows.groupby("split"):
        expected = members[own.index].mean(1) if part == "test" else members[own.index, int(part[-1]) - 1]
        np.testing.assert_allclose(own.gap_pred, expected, rtol=1e-5)
        assert own.gap_std.isna().all() == (part != "test")  # one network does not disagree
    np.testing.assert_array_equal(pd.read_csv(network / "split.csv").fold.notna(), rows["split"] != "test")


def test_files_say_out_of_fold(network: Path) -> None:
    metrics, report = (network / "metrics.json").read_text(), (network / "report.html").read_text()
    assert '"folds": 3' in metrics and '"val_predictions": "out-of-fold"' in metrics
    assert "Out-of-fold" in report and "in 3 folds" in report
    assert "of validation molecules" not in report and "(validation)" not in report


def test_scores_and_intervals_are_of_the_out_of_fold_predictions(network: Path) -> None:
    rows, model = pd.read_csv(network / "predictions.csv"), gtx.load(network / "model.gtx", "cpu")
    held_out = rows[rows["split"] != "test"]
    error = (held_out.gap - held_out.gap_pred).abs()
    assert model.header.metrics["val"]["mae"] == pytest.approx(error.mean(), rel=1e-6)
    assert model.header.metrics["train"]["mae"] != pytest.approx(error.mean(), rel=1e-3)
    position = int(np.ceil((len(error) + 1) * LEVEL)) - 1
    assert model.task.interval["half_width"][0] == pytest.approx(np.sort(error)[position], rel=1e-5)
    assert sum(model.domain.rows[band][0] for band in model.domain.rows) == len(held_out)


KERNEL = TrainSettings(model="kernel", kernel_parts=["substructures"], folds=FOLDS, threads=2, progress=False)


def test_the_kernel_of_a_fold_is_fitted_to_the_others(data: DataSettings, monkeypatch) -> None:
    monkeypatch.setattr("gtx.training.fitting.MOLECULES_WORTH_PROCESSES", 0)
    monkeypatch.setattr("gtx.training.fitting.open_process_pool", None)  # which starts longer than a kernel takes
    with Run.load(data, KERNEL) as run:
        blended = run.blend(*run.fit())
    molecules, task = run.molecules, run.task
    for each in molecules.networks:
        kernel = fitted_kernel(run.spec, task, molecules.store.subset(each["train"]))
        with torch.no_grad():
            own = task.objective.unscale(kernel(molecules.store.batch(torch.from_numpy(each["val"]))), molecules.store)
        np.testing.assert_allclose(blended.predictions.mean[each["val"]], own, rtol=1e-4)
    (kernel,) = blended.predictor.members
    assert len(kernel.row) == len(molecules.split["train"])


@pytest.mark.parametrize("settings", [KERNEL, replace(SETTINGS, blend="no")], ids=["kernel", "network"])
def test_a_model_of_a_fold_needs_a_value_of_every_target(settings, data: DataSettings, tmp_path) -> None:
    frame = pd.read_csv(data.data).assign(lab=lambda t: t.index % FOLDS)
    frame.loc[frame.lab > 0, "dipole"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = replace(data, data=str(tmp_path / "t.csv"), target_columns=("gap", "dipole"))
    by_lab = replace(table, split="group", split_by="lab", split_sizes=(0.9, 0.1, 0.0))
    with pytest.raises(
        InputError, match=r"member \d/3, trained without fold \d: target 'dipole' has no value .*; take fe"
    ):
        train_model(by_lab, settings, tmp_path / "run", **ALONE)


def test_the_blend_is_weighed_on_all_rows_and_its_kernel_learns_them_all(data: DataSettings, tmp_path) -> None:
    result = train_model(replace(data, target_columns=("gap", "dipole")), SETTINGS, tmp_path / "run", **ALONE)
    model = gtx.load(tmp_path / "run" / "model.gtx", "cpu")
    rows = sum(row["split"] != "test" for row in read(tmp_path / "run" / "predictions.csv"))
    assert model.kernel_member is not None and len(model.kernel_member.kernel.row) == rows
    assert any(f"weights chosen on {rows} out-of-fold predictions" in note for note in result.notes)
    assert any("3 networks, 1 at a time, each trained on 67% of the rows" in note for note in result.notes)
    alone = result.metrics["alone"]
    assert set(alone) == {"network", "kernel"} and result.metrics["folds"] == SETTINGS.folds
    assert alone["kernel"]["train"]["mae"] < 0.2 * alone["kernel"]["val"]["mae"]


def test_an_estimator_with_folds_is_the_command_line(data: DataSettings, tmp_path) -> None:
    settings = replace(SETTINGS, epochs=1, folds=2)
    train_model(replace(data, split_sizes=(0.9, 0.1, 0)), settings, tmp_path / "run", **ALONE)
    frame = pd.read_csv(data.data)
    estimator = gtx.MoleculeRegressor(**TINY_ESTIMATOR, epochs=1, folds=2, workers=0)
    estimator.fit(frame.smiles, frame.gap)
    model, new = gtx.load(tmp_path / "run" / "model.gtx", "cpu"), molecules(200).smiles[1::9]
    told = model.predict(new)
    np.testing.assert_array_equal(estimator.predict(new), told.gap_pred)
    np.testing.assert_array_equal(estimator.predict_interval(new), told[["gap_low", "gap_high"]])
    assert estimator.predict(new, return_std=True)[1].min() > 0


def test_atoms_are_predicted_by_the_network_of_their_fold(tmp_path) -> None:
    smiles = molecules(60).smiles
    store = gtx.data.featurise(gtx.molecules.Featuriser(), smiles.tolist(), workers=0).store
    charges = [np.arange(int(size)) % 3 / 3 for size in store.sizes]
    frame = pd.DataFrame({"smiles": smiles, "charge": [str(each.tolist()) for each in charges]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    task = Regression(("charge",), level="atom")
    settings = replace(SETTINGS, epochs=1)
    with Run.load(DataSettings(str(tmp_path / "t.csv"), task=task, workers=0), settings) as run:
        members, header = run.fit()
        blended = run.blend(members, header)
    for k, each in enumerate(run.molecules.networks):
        alone = gtx.prediction.Predictor([members[k].model], header, "cpu").predict_store(run.molecules.store)
        for row in each["val"]:
            np.testing.assert_allclose(blended.answers.mean[row], alone.mean[row], rtol=1e-5, atol=1e-6)


# --- Coverage.


def test_intervals_of_ninety_percent_hold_nine_of_ten_new_molecules() -> None:
    """The mean over random splits; the theorem for CV+ allows 80 %."""
    frame, inside, rows = bundled()[["smiles", "gap"]], [], 50
    for seed in range(4):
        some = frame.sample(rows + 300, random_state=seed)
        how = {"model": "kernel", "folds": 5, "workers": 0, "settings": {"kernel_parts": ["substructures"]}}
        estimator = gtx.MoleculeRegressor(**how, random_state=seed)
        estimator.fit(some.smiles[:rows], some.gap[:rows])
        low, high = estimator.predict_interval(some.smiles[rows:]).T
        inside.append(((low <= some.gap[rows:]) & (some.gap[rows:] <= high)).mean())
    assert 0.86 < np.mean(inside) < 0.95, inside


def test_folds_without_test_rows_have_neither_empty_figures_nor_notes_of_no_molecules(data, tmp_path, capsys) -> None:
    every = replace(data, split_sizes=(0.9, 0.1, 0))
    result = train_model(every, replace(SETTINGS, epochs=1), tmp_path / "run", baselines=False)
    assert not any("could not be drawn" in note or "test rows" in note for note in result.notes), result.notes
    report = (tmp_path / "run" / "report.html").read_text()
    assert "Error of gap by domain" in report and "Error of gap by similarity" not in report
    main(["info", str(tmp_path / "run" / "model.gtx")])
    told = capsys.readouterr().out
    assert "val scores" in told and "test scores" not in told
