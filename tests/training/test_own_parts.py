"""A model, a loss and a task of one's own are trained into a model file that is read again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import AttentiveFP

import gtx
from gtx.base.errors import InputError
from gtx.prediction import Predictor
from gtx.tasks import Regression
from gtx.training import TrainSettings, fit

from .task import FEATURISER, SMALL, SMILES, SPLIT, store

pytestmark = pytest.mark.slow


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
