"""The computation of one network for one molecule, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.data import MoleculeStore
from gtx.explain.relevance import gradient_weighted, per_atom, rollout
from gtx.explain.removal import Removal, dense, faithfulness
from gtx.models import build_model
from gtx.prediction import ModelHeader

PAIRS = 50_000  # in a batch of copies of the molecule


@dataclass(frozen=True, kw_only=True, eq=False)
class Account:
    """Attention, attributions and prediction of one network for one molecule of n atoms; changes are in the target's
    unit.

    Attributes:
        prediction: of the target; for classes the probability of class 1.
        weights: float64 `[L, H, n, n]`, attention of every layer and head, receivers in rows; 0 where there is no edge.
        rollout: float64 `[n]`, attention rollout (`gtx.explain.rollout`), mean over the nodes that are read out.
        gradient: float64 `[n]`, gradient-weighted attention (`gtx.explain.gradient_weighted`), the same mean.
        faithfulness: for "rollout" and "gradient", what removing the atoms with the highest scores does beside
            removing as many random ones (`gtx.explain.faithfulness`).
        without: the change of the prediction when all attention is removed.
    """

    prediction: float
    weights: np.ndarray
    rollout: np.ndarray
    gradient: np.ndarray
    faithfulness: dict[str, list[Removal]]
    without: float


def account(
    model: nn.Module, store: MoleculeStore, header: ModelHeader, target: int, seed: int = 0, draws: int = 50
) -> Account:
    """Run a network on the one molecule of a store and collect its attention and attributions.

    Args:
        model: in float64, on the CPU, in evaluation mode.
        store: one molecule.
        header: of the model, for the target's units.
        target: number of the target.
        seed, draws: of the random removals.
    """
    batch = copies(store)
    with torch.enable_grad():
        maps = model.attention(batch)
        gradients = torch.autograd.grad(maps.out[0, target], maps.weights)
    atoms, nodes = maps.place, max(int(maps.edge_index.max()), int(maps.place.max())) + 1
    weights, gradients = (
        torch.stack([dense(layer.detach(), maps.edge_index, nodes) for layer in of]) for of in (maps.weights, gradients)
    )
    virtual = torch.arange(nodes - (0 if model.virtual is None else len(model.virtual.node)), nodes)  # they come last
    readers = virtual if model.readout is None else torch.cat([atoms, virtual])
    scores = {
        "rollout": per_atom(rollout(weights.mean(1)), atoms, readers).numpy(),
        "gradient": per_atom(gradient_weighted(weights, gradients), atoms, readers).numpy(),
    }
    whole = float(predict_without(model, store, header, target, np.zeros((1, len(atoms)), bool))[0])

    def change(sets: np.ndarray) -> np.ndarray:
        return predict_without(model, store, header, target, sets) - whole

    return Account(
        prediction=whole,
        weights=weights[:, :, atoms][:, :, :, atoms].numpy(),
        **scores,
        faithfulness=faithfulness(change, scores, draws=draws, seed=seed),
        without=float(change(np.ones((1, len(atoms)), bool))[0]),
    )


def random_model(model: nn.Module, header: ModelHeader, seed: int) -> nn.Module:
    """Build the same architecture with untrained weights, in float64; fixed tensors (known codes, scales) are copied.

    The control of Adebayo et al. 2018 (arXiv:1810.03292): a picture that random weights give as well says nothing of
    what was learnt.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = build_model(header.model).double().eval()
    learnt = dict(fresh.named_parameters())
    fresh.load_state_dict({k: learnt.get(k, v).detach().clone() for k, v in model.state_dict().items()})
    return fresh


@torch.inference_mode()
def outputs_without(model: nn.Module, store: MoleculeStore, removed: np.ndarray) -> Tensor:
    """Outputs `[m, C]` for one molecule when the attention into and out of sets of atoms, bool `[m, n]`, is removed."""
    sets = torch.from_numpy(removed)
    outputs = []
    for part in sets.split(max(1, PAIRS // sets.shape[1] ** 2)):
        batch = copies(store, len(part))
        graph = model.graph(batch)
        sender, receiver = graph.pair_index
        gone = part.flatten()
        outputs.append(model(batch, graph=graph.masked(~(gone[sender] | gone[receiver]))))
    return torch.cat(outputs)


def in_units(outputs: Tensor, store: MoleculeStore, header: ModelHeader, target: int) -> np.ndarray:
    """Predictions `[m]` of a target, of outputs `[m, C]` for one molecule."""
    molecules = store.subset(torch.zeros(len(outputs), dtype=torch.long))
    return header.task.unscaled(outputs, molecules)[:, target].numpy()


def predict_without(
    model: nn.Module, store: MoleculeStore, header: ModelHeader, target: int, removed: np.ndarray
) -> np.ndarray:
    """Predictions `[m]` of the network alone, see `outputs_without`."""
    return in_units(outputs_without(model, store, removed), store, header, target)


def copies(store: MoleculeStore, count: int = 1) -> Batch:
    """The one molecule of a store as a batch of `count` copies, in float64."""
    batch = store.batch(torch.zeros(count, dtype=torch.long))
    return batch.apply(lambda values: values.double() if values.is_floating_point() else values)
