"""The script that a user starts from: the best epoch, scores in the target's own units, a model file."""

import pickle
import runpy
import sys
import traceback
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
from pytorch_lightning import Trainer

import gtx
from gtx.data import FeatureColumns
from gtx.models import standard
from gtx.molecules import Featuriser, read_smiles
from gtx.tasks import Regression
from gtx.training import MoleculeDataModule, TrainingModule, TrainSettings
from tests.tables import TINY, molecules, write

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
main = runpy.run_path(str(EXAMPLES / "lightning_script.py"))["main"]
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
QUIET |= {"enable_model_summary": False, "accelerator": "cpu"}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rows = molecules(120)[["smiles", "solvation_water"]].to_numpy().tolist()
    return write(tmp_path_factory.mktemp("script") / "data.csv", rows, ["smiles", "y"])


def parts(table: Path) -> tuple[TrainingModule, MoleculeDataModule]:
    settings = TrainSettings(batch_molecules=16)
    data = MoleculeDataModule.from_table(table, "y", settings=settings)
    read = Featuriser()
    sizes = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "num_descriptors": read.num_descriptors}
    model = standard(data.task.objective.out_channels, **sizes, **TINY["model_arguments"])
    model.observe(data.train)
    return TrainingModule(model, data.task, settings), data


def test_it_learns_scores_and_writes_a_file(table: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"precision": "bf16-mixed", "gradient_clip_val": 1.0, "accelerator": "cpu", "enable_progress_bar": False}
    scores = main(str(table), "y", str(tmp_path / "model.gtx"), max_epochs=4, **options)
    assert {"test_rmse", "test_mae", "test_r2", "test_loss"} <= scores.keys()
    assert 0 < scores["test_mae"] <= scores["test_rmse"] < 4  # kcal/mol; the mean alone has about 3
    model = gtx.load(tmp_path / "model.gtx")
    assert np.isfinite(model.predict(["CCO"]).y_pred).all()
    rows = pd.read_csv(table)
    test = MoleculeDataModule.from_table(table, "y").test.y[:, 0].numpy()
    smiles = rows.smiles[[int(np.abs(rows.y - y).argmin()) for y in test]]
    error = model.predict(list(smiles)).y_pred - test
    assert np.sqrt((error**2).mean()) == pytest.approx(scores["test_rmse"], rel=0.05)  # of the epoch that was kept


def test_lightnings_command_line_trains_what_a_yaml_file_says(table: Path, tmp_path, monkeypatch) -> None:
    monitored = (EXAMPLES / "lightning.yaml").read_text().replace("examples/solvation.csv", str(table))
    (tmp_path / "lightning.yaml").write_text(monitored.replace("dG_water", "y").replace("  split: scaffold\n", ""))
    words = ["fit", "--config", "lightning.yaml", "--trainer.max_epochs=1", "--trainer.accelerator=cpu"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["lightning_cli.py", *words, "--model.channels=16"])
    runpy.run_path(str(EXAMPLES / "lightning_cli.py"), run_name="__main__")
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    weights = torch.load(checkpoint, weights_only=True)["state_dict"]
    assert sum(weight.numel() for weight in weights.values()) < 50_000  # 16 channels; 64 have 231,000
    assert "val_rmse" in next(tmp_path.rglob("metrics.csv")).read_text()


def test_predictions_are_in_the_units_of_the_test_and_in_order(table: Path) -> None:
    module, data = parts(table)
    trainer = Trainer(max_epochs=2, **QUIET)
    trainer.fit(module, data)
    (scores,) = trainer.test(module, data, verbose=False)
    predicted = torch.cat(trainer.predict(module, data))
    error = predicted - data.test.y
    assert float(error.square().mean().sqrt()) == pytest.approx(scores["test_rmse"], rel=1e-4)
    values = set(np.float32(pd.read_csv(table).y).tolist())
    for molecules_of_part in (data.train, data.val, data.test):
        assert set(np.float32(molecules_of_part.y[:, 0]).tolist()) <= values
    half = torch.arange(len(predicted))[:, None] % 2
    test, few = data.test.with_targets(predicted + 1 + half), TrainSettings(batch_molecules=4)
    other = MoleculeDataModule(data.task, data.train, data.val, test, settings=few)
    (scores,) = trainer.test(module, other, verbose=False)  # by the molecules of this call
    assert scores["test_mae"] == pytest.approx(1.5, rel=1e-4)
    (scores,) = Trainer(limit_test_batches=1, **QUIET).test(module, other, verbose=False)
    (first, *_) = other.test_dataloader()
    assert scores["test_mae"] == pytest.approx(1 + float(half[first.row].float().mean()), rel=1e-4)


def test_predictions_of_atoms_are_a_list_for_each_molecule(tmp_path) -> None:
    smiles = molecules(60).smiles
    degrees = [[atom.GetDegree() for atom in read_smiles(text).GetAtoms()] for text in smiles]
    file = write(tmp_path / "atoms.csv", list(zip(smiles, map(str, degrees), strict=True)), ["smiles", "degree"])
    settings, task = TrainSettings(batch_molecules=16), Regression(("degree",), level="atom")
    data = MoleculeDataModule.from_table(file, "degree", settings=settings, task=task)
    module = TrainingModule.from_data(data, **TINY["model_arguments"])
    trainer = Trainer(max_epochs=1, **QUIET)
    trainer.fit(module, data)
    predicted = [values for batch in trainer.predict(module, data) for values in batch]
    assert [values.shape for values in predicted] == [(size, 1) for size in data.test.sizes.tolist()]
    assert 0 < torch.cat(predicted).mean() < 4  # bonds of an atom


def test_a_named_model_reads_feature_columns_and_batches_have_the_seed_of_the_settings(tmp_path) -> None:
    frame = molecules(60)[["smiles", "gap"]].assign(ph=np.arange(60))
    frame.to_csv(tmp_path / "t.csv", index=False)
    features, settings = FeatureColumns(("ph",)), TrainSettings(seed=5)
    data = MoleculeDataModule.from_table(tmp_path / "t.csv", "gap", settings=settings, features=features)
    module = TrainingModule.from_data(data, **TINY["model_arguments"])
    assert data.seed == module.seed == 5
    Trainer(max_epochs=1, **QUIET).fit(module, data)
    mean = float(module.model.readout.descriptors.mean[-1])
    assert mean == pytest.approx(float(data.train.descriptors[:, -1].mean()))
    data.featuriser = Featuriser(coordinates=True)
    assert TrainingModule.from_data(data, **TINY["model_arguments"]).spec["arguments"]["coordinates"]


def test_what_lightning_would_say_cryptically(table: Path, monkeypatch) -> None:
    module, data = parts(table)
    with pytest.raises(gtx.InputError, match=r"holds weights alone: give model= and task= too.*Predictor\.of"):
        TrainingModule.load_from_checkpoint("last.ckpt")
    with pytest.raises(gtx.InputError, match=r"came from a DataLoader.*expected trainer\.fit\(module, data\)"):
        Trainer(max_epochs=1, **QUIET).fit(module, [data.train.batch()])
    without = MoleculeDataModule(data.task, data.train, data.val)
    with pytest.raises(gtx.InputError, match=r"expected a data module of MoleculeDataModule\.from_table"):
        TrainingModule.from_data(without)
    with pytest.raises(gtx.InputError, match="keep_by: expected one of rmse, mae, r2, loss for regression, got 'rsme'"):
        TrainingModule(module.model, module.task, TrainSettings(keep_by="rsme"))
    with pytest.raises(gtx.InputError, match="give the Trainer max_epochs or max_steps"):
        Trainer(max_epochs=-1, max_time="00:00:00:01", **QUIET).fit(module, data)
    for call in (Trainer(**QUIET).test, Trainer(**QUIET).predict):
        with pytest.raises(gtx.InputError, match="the data module has no test molecules"):
            call(module, without)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", ModuleType("lightning.pytorch"))
    with pytest.warns(UserWarning, match="import Trainer from there, not from lightning"):
        TrainingModule(module.model, module.task)


def test_a_damaged_checkpoint_is_told_without_torchs_advice(table: Path, tmp_path) -> None:
    module, data = parts(table)
    trainer = Trainer(max_epochs=1, **QUIET)
    trainer.fit(module, data)
    file = tmp_path / "last.ckpt"
    trainer.save_checkpoint(file)
    whole, given = file.read_bytes(), {"model": module.model, "task": module.task}
    assert TrainingModule.load_from_checkpoint(file, **given).task == module.task
    for content in (b"", whole[: len(whole) // 2], b"hello world", pickle.dumps({"a": print}), pickle.dumps([1])):
        file.write_bytes(content)
        with warnings.catch_warnings(), pytest.raises(gtx.InputError, match=r"last\.ckpt is damaged") as error:
            warnings.simplefilter("error")
            TrainingModule.load_from_checkpoint(str(file), **given)
        assert "arbitrary code" not in "".join(traceback.format_exception(error.value))
