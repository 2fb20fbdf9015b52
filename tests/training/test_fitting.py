"""Training learns, and what it gives back is what it says."""

import gc
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import AttentiveFP

import gtx
from gtx.base.errors import InputError
from gtx.prediction import Predictor
from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.metrics import masked_mean
from gtx.training import TrainSettings, fit, fitting
from gtx.training.fitting import Problem, try_step
from gtx.training.module import TrainingModule
from tests.tables import read

from .task import FEATURISER, LOGP, SMALL, SMILES, SPLIT, model, store, train

pytestmark = pytest.mark.slow

VAL = SPLIT["val"]
UNTAUGHT = np.where(np.isin(np.arange(len(LOGP)), SPLIT["train"])[:, None], np.nan, LOGP)  # training rows blank


def predictions(member, y: np.ndarray = LOGP, rows: np.ndarray = VAL) -> torch.Tensor:
    with torch.no_grad():
        return member.task.objective.unscale(member.model(store(y).batch(rows)), store(y).subset(rows))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def members(run: Path) -> list:
    return train(run, epochs=16, lr=1e-2, folds=2)


def test_learns(members: list) -> None:
    scores = Regression(["y"]).objective.evaluate(LOGP[SPLIT["test"]], predictions(members[0], rows=SPLIT["test"]))
    assert scores["r2"] > 0.8


def test_the_member_is_the_best_epoch_of_its_history(members: list) -> None:
    for member in members:
        assert [row["epoch"] for row in member.history] == list(range(1, 17))
        best = min(row["val_score"] for row in member.history[8:])  # of the second half
        assert member.best_score == best == member.history[member.best_epoch - 1]["val_score"]
        rmse = Regression(["y"]).objective.evaluate(LOGP[VAL], predictions(member))["rmse"]
        assert rmse == pytest.approx(member.history[member.best_epoch - 1]["val_rmse"], rel=1e-5)
        # one target: the score is the RMSE in standard deviations
        assert member.best_score == pytest.approx(rmse / member.task.scaler.sd.item(), rel=1e-5)


def test_every_molecule_has_the_same_say(tmp_path) -> None:
    """Whatever the batches: 48 molecules in two of 20 and one of 8."""
    still = {"lr": 1e-12, "ema": 0.0, "epochs": 1, "model_arguments": {"dropout": 0.0}}
    (member,) = train(tmp_path, **still, batch_molecules=20)
    rows = SPLIT["train"]
    z = member.task.scaler.scale(store().y[rows])
    with torch.no_grad():
        loss = masked_mean(member.task.objective.elementwise, member.model(store().batch(rows)), z)
    assert member.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-4)


def test_targets_are_scaled_on_training_rows_alone(members: list) -> None:
    assert members[0].task.scaler.mean.item() == pytest.approx(LOGP[SPLIT["train"]].mean(), rel=1e-6)


def test_the_log_is_the_history_and_nothing_is_left_over(members: list, run: Path) -> None:
    rows = read(run / "members" / "1" / "log.csv")
    assert [{k: float(v) for k, v in row.items()} for row in rows] == members[1].history
    assert sorted(p.name for p in (run / "members" / "1").iterdir()) == ["log.csv", "trained.pt"]
    assert sorted(p.name for p in run.iterdir()) == [".gtx.json", "config.yaml", "members"]
    assert not Path("lightning_logs").exists()


def test_one_class_in_validation_is_judged_by_the_loss(tmp_path) -> None:
    y = (np.median(LOGP) < LOGP).astype(float)
    y[VAL] = 1.0
    (member,) = train(tmp_path, y, BinaryClassification(["a"]), epochs=2)
    assert member.best_score == member.history[member.best_epoch - 1]["val_loss"]
    assert "val_roc_auc" not in member.history[0] and "val_accuracy" in member.history[0]


def test_without_validation_the_last_epoch_is_kept(tmp_path) -> None:
    (member,) = train(tmp_path, epochs=3, split={"train": SPLIT["train"]}, patience=1)
    assert member.best_epoch == 3 and len(member.history) == 3 and "val_score" not in member.history[0]


def test_what_joins_a_trained_model_learns_its_scales(members: list) -> None:
    task, molecules = members[0].task, store().subset(SPLIT["train"])
    bare = replace(members[0], model=model(task, num_descriptors=0))
    counted = {"substructures": {"folded": 64}}
    fresh = Problem(lambda: model(task, **counted), task, molecules, molecules, TrainSettings())
    joined, further = (replace(fresh, start=start).make_model(0, molecules) for start in ([bare], members))
    for part in ("readout.descriptors.mean", "readout.descriptors.scale", "readout.substructures.used"):
        assert joined.state_dict()[part].equal(fresh.make_model(0, molecules).state_dict()[part]), part
    half = replace(fresh, start=members).make_model(0, molecules.subset(np.arange(9)))
    assert half.readout.descriptors.mean.equal(members[0].model.readout.descriptors.mean)
    assert half.embedding.vocabularies.atoms.seen.equal(further.embedding.vocabularies.atoms.seen)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"split": {"train": SPLIT["train"][:0]}}, "no training molecules"),
        ({"y": np.where(np.arange(2), UNTAUGHT, LOGP)}, "'y1' has no value"),
        ({"logger": "tensorbord"}, "did you mean 'tensorboard'"),
        ({"logger": "no.such.Logger"}, "logger no.such.Logger: No module named 'no'"),
        ({"logger": "gtx.nn.MoleculeModel"}, "logger gtx.nn.MoleculeModel: expected a class of Lightning loggers"),
        ({"logger": "csv", "logger_arguments": {"nosuch": 1}}, "logger csv: .*nosuch"),
        ({"rates": {"heads": 1}}, "rates: the model has no module 'heads'; it has embedding, layers"),
        ({"lr": 1e30, "clip": 0.0}, "training diverged"),
        ({"accelerator": "abacus"}, "abacus"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_input_at_fault_is_named(changes: dict, said: str, tmp_path) -> None:
    with pytest.raises(InputError, match=said):
        train(tmp_path, **changes)


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_target_that_would_spoil_the_others_is_refused_before_training(part: str, tmp_path) -> None:
    y = np.hstack([LOGP, LOGP])
    y[SPLIT["test"], 0] = 1e200  # nobody looks at it
    y[SPLIT[part][3], 1] = -1e200
    with pytest.raises(InputError, match=r"target 'y1' of molecule 3, .*, is -1e\+200, .* 1e\+30;"):
        train(tmp_path, y)
    assert not list(tmp_path.glob("members/*/*"))


def test_nothing_is_said_and_nothing_outside_is_changed(tmp_path, capfd) -> None:
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    train(tmp_path, epochs=1, threads=1)
    assert torch.equal(torch.rand(1), expected) and torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_one_bar_tells_of_all_epochs(tmp_path, capfd) -> None:
    (member,) = train(tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and err.count("member 1/1 epoch 4/4") == 1
    kept = member.history[member.best_epoch - 1]
    assert f" ({kept['val_rmse']:.4g} in epoch {member.best_epoch}, kept so far)\n" in err


def test_another_logger_gets_every_epoch(tmp_path) -> None:
    train(tmp_path, logger="csv", logger_arguments={"name": "other", "version": "0"})
    (file,) = (tmp_path / "members" / "0").glob("**/metrics.csv")
    rows = read(file)
    assert "lr: " in (file.parent / "hparams.yaml").read_text()
    for column in ("val_score", "train_loss"):
        assert sum(bool(row[column]) for row in rows) == SMALL["epochs"]


def test_other_precisions_train_nearly_alike(tmp_path) -> None:
    usual, *others = (
        train(tmp_path / str(precision), epochs=2, precision=precision)[0]
        for precision in ("32-true", "bf16-mixed", "64-true")
    )
    for member in others:
        assert member.best_score != usual.best_score and member.best_score == pytest.approx(usual.best_score, rel=0.05)
        torch.testing.assert_close(predictions(member), predictions(usual), rtol=0, atol=0.3)


@pytest.mark.usefixtures("forks")
def test_members_trained_at_the_same_time_are_those_trained_in_turn(tmp_path, monkeypatch, capfd) -> None:
    """To the last bit on one thread each; a member that fails ends the others."""
    monkeypatch.setattr(fitting, "MOLECULES_WORTH_PROCESSES", 0)
    in_turn = train(tmp_path / "turn", epochs=2, folds=2, threads=1)
    at_once = train(tmp_path / "once", epochs=2, folds=2, threads=2, progress=True)
    said = capfd.readouterr().err
    for k, member in enumerate(at_once, 1):  # the same line as of a member that is trained alone
        last, kept = member.history[-1], member.history[member.best_epoch - 1]
        line = f"member {k}/2 epoch 2/2: loss {last['train_loss']:.4f}, val rmse {last['val_rmse']:.4g}"
        assert said.count(f"{line} ({kept['val_rmse']:.4g} in epoch {member.best_epoch}, kept so far)\n") == 1
    for one, other in zip(in_turn, at_once, strict=True):
        assert {**one.model.state_dict()}.keys() == other.model.state_dict().keys()
        assert all(w.equal(other.model.state_dict()[name]) for name, w in one.model.state_dict().items())
        assert one.best_score == other.best_score
    with pytest.raises(InputError, match="diverged"):
        train(tmp_path / "bad", epochs=2, folds=2, threads=2, lr=1e30, clip=0.0)


# --- A batch too large for the memory is made smaller before training starts, and the trial leaves no trace.


@pytest.fixture
def module() -> TrainingModule:
    torch.manual_seed(0)
    task = Regression(["y"])
    return TrainingModule(model(task, layers=4), task)


def every() -> Batch:
    return store().batch(torch.arange(len(LOGP)))


def test_a_trial_leaves_everything_as_it_was(module: TrainingModule) -> None:
    module.eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    try_step(module, every)
    assert torch.equal(torch.get_rng_state(), state) and not module.model.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())


def test_activations_are_gone_when_a_trial_has_failed(module: TrainingModule, monkeypatch) -> None:
    """Without waiting for Python to collect cycles: an exponential keeps its own result for the backward pass."""
    cut, alive = TrainingModule.loss, []
    module.model.layers[0].register_forward_hook(lambda *given: alive.append(weakref.ref(given[2][0])))

    def loss(self: TrainingModule, batch: Batch) -> torch.Tensor:
        kept = cut(self, batch).exp()
        raise torch.OutOfMemoryError(f"CUDA out of memory, after {len(kept.shape)}")

    monkeypatch.setattr(TrainingModule, "loss", loss)
    gc.disable()
    try:
        with suppress(torch.OutOfMemoryError):
            try_step(module, every)
        assert alive and all(activation() is None for activation in alive)
    finally:
        gc.enable()


@pytest.fixture
def room(monkeypatch) -> dict[str, int]:
    """A memory with room for a number of pairs."""
    cut, room = TrainingModule.loss, {"pairs": 1500, "largest": 0}

    def loss(self: TrainingModule, batch: Batch) -> torch.Tensor:
        pairs = batch.graph.num_pairs if "graph" in batch else int(batch.ptr.diff().square().sum())
        if sys.exc_info()[0] is not None or pairs > room["pairs"]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        room["largest"] = max(room["largest"], pairs)
        return cut(self, batch)

    monkeypatch.setattr(TrainingModule, "loss", loss)
    monkeypatch.setattr("gtx.training.fitting.check_capture", lambda *_: None)
    return room


@pytest.mark.parametrize("capture", [False, True])
def test_a_trial_that_runs_out_of_memory_takes_smaller_batches(capture, room, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(sys.exc_info()[0]))
    emptied: list[Any] = []
    (member,) = train(tmp_path / "less", epochs=1, progress=True, capture=capture)
    assert 100 < member.batch_pairs <= 1500 and room["largest"] <= 1500
    assert f"memory is short: batches of {member.batch_pairs:,} pairs instead" in capsys.readouterr().err
    assert emptied and set(emptied) == {None}  # not while the error holds what did not fit
    room["pairs"] = 0
    with pytest.raises(InputError, match=r"does not hold one training step of the largest molecule, of 13 atoms"):
        train(tmp_path / "none", epochs=1, capture=capture)


def test_a_run_that_goes_on_keeps_its_batches(room: dict[str, int], tmp_path, monkeypatch, capsys) -> None:
    (whole,) = train(tmp_path / "whole", epochs=3)
    assert 100 < whole.batch_pairs <= 1500
    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "on_train_epoch_start", stopped_in_epoch(2))
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", epochs=3)
    room["pairs"] = 10**9
    (member,) = train(tmp_path / "run", epochs=3)
    assert [row["batch_pairs"] for row in member.history] == [whole.batch_pairs] * 3
    for name, weight in member.model.state_dict().items():
        assert torch.equal(weight, whole.model.state_dict()[name])


def stopped_in_epoch(number: int) -> Callable[[TrainingModule], None]:
    start = TrainingModule.on_train_epoch_start

    def started(self: TrainingModule) -> None:
        start(self)
        if self.current_epoch == number:
            raise KeyboardInterrupt

    return started


# --- A model, a loss and a task of one's own are trained into a model file that is read again.


class Fingerprint(nn.Module):
    """PyG's AttentiveFP on the codes of atoms and bonds."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        sizes = len(FEATURISER.atom_sizes), hidden, 1, len(FEATURISER.bond_sizes)
        self.net = AttentiveFP(*sizes, num_layers=2, num_timesteps=1)

    def forward(self, batch: Batch) -> Tensor:
        return self.net(batch.x.float(), batch.edge_index, batch.edge_attr.float(), batch.batch)


def log_cosh(output: Tensor, target: Tensor) -> Tensor:
    return torch.log(torch.cosh(output - target))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[nn.Module, Path]:
    torch.manual_seed(0)  # the module is handed over with its first weights
    folder, model = tmp_path_factory.mktemp("own"), Fingerprint()
    train, val = (store().subset(SPLIT[part]) for part in ("train", "val"))
    task = Regression("logP", loss=log_cosh, element_reference=False)
    settings = TrainSettings(**SMALL | {"epochs": 8, "lr": 1e-2})
    members = fit(model, task, train, val, settings, folder / "run")
    assert members[0].model is model
    Predictor.of(members, FEATURISER).save(folder / "model.gtx")
    return model, folder


def test_its_file_predicts_the_same(trained: tuple[nn.Module, Path]) -> None:
    model, folder = trained
    opened = gtx.load(folder / "model.gtx", "cpu", model=Fingerprint)
    frame = opened.predict(SMILES)
    assert frame.error.isna().all()
    with torch.no_grad():
        output = model(store().batch(np.arange(len(SMILES))))
    np.testing.assert_allclose(
        frame.logP_pred, opened.task.objective.unscale(output, store())[:, 0], rtol=1e-4, atol=1e-4
    )
    assert "log_cosh" in (folder / "run" / "config.yaml").read_text()


def test_a_file_of_another_model_needs_the_model(trained: tuple[nn.Module, Path]) -> None:
    _, folder = trained
    with pytest.raises(InputError, match=r"'Fingerprint' is not one of gtx's \(.*\): give gtx.load\(..., model=...\)"):
        gtx.load(folder / "model.gtx")
    with pytest.raises(InputError, match="has no method embed"):
        gtx.load(folder / "model.gtx", model=Fingerprint()).embed(["CCO"])


@pytest.mark.parametrize(
    ("targets", "loss", "message"),
    [
        (2, "mse", r"expected outputs \[molecules, 2\] for the task regression, got \[\d+, 1\] from the model"),
        (1, nn.MSELoss(), r"expected a loss of each entry, \[\d+, 1\], got \[\]"),
    ],
)
def test_shapes_that_a_loss_would_broadcast_are_refused(targets: int, loss, message: str, tmp_path) -> None:
    molecules = store()
    molecules = molecules.with_targets(molecules.y.repeat(1, targets))
    train, val = (molecules.subset(SPLIT[part]) for part in ("train", "val"))
    task = Regression([f"y{t}" for t in range(targets)], loss=loss)
    with pytest.raises(InputError, match=message):
        fit(Fingerprint(), task, train, val, TrainSettings(**SMALL), tmp_path / "run")


def test_folds_need_a_function_that_makes_their_networks(tmp_path) -> None:
    molecules, none = store(), store().subset(SPLIT["val"][:0])
    settings = TrainSettings(**SMALL | {"folds": 2, "epochs": 1})
    with pytest.raises(InputError, match="expected the rows of each as folds, got 0"):
        fit(Fingerprint, Regression("y"), molecules, none, settings, tmp_path)
    with pytest.raises(InputError, match="2 folds need a function that makes a model"):
        fit(Fingerprint(), Regression("y"), molecules, none, settings, tmp_path, folds=[SPLIT] * 2)
    members = fit(Fingerprint, Regression("y"), molecules, none, settings, tmp_path, folds=[SPLIT] * 2)
    one, other = (member.model.state_dict()["net.lin1.weight"] for member in members)
    assert len(members) == 2 and not torch.equal(one, other)
