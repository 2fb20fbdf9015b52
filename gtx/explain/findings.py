"""The findings of an explanation: attention and scores of atoms in numbers, and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gtx.data.row_log import plural
from gtx.explain.relevance import (
    AtomRemovalEffect,
    attention_rollout,
    gradient_weighted_attention,
    measure_faithfulness,
    rank_correlation,
    score_atoms_by_attention,
    to_dense_attention,
)
from gtx.explain.subject import Subject, copies, predict_without
from gtx.models import GraphTransformer, build_model

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionAnalysis:
    """Analysis of the attention of one network for one molecule: attention weights, atom scores and removal tests.

    Changes are in the target's unit.

    Attributes:
        prediction: prediction for the target; for classes the probability of class 1.
        weights: float64 `[L, H, n, n]`, attention of every layer and head, receivers in rows; 0 where there is no edge.
        rollout: attention rollout of each atom (`attention_rollout`), float64 `[n]`, averaged over the
            nodes that the readout uses.
        gradient: gradient-weighted attention of each atom (`gradient_weighted_attention`), float64 `[n]`,
            averaged in the same way.
        faithfulness: for "rollout" and "gradient", the effect of removing the atoms with the highest scores, and of
            removing as many random ones (`measure_faithfulness`).
        without: change of the prediction when all attention is removed.
    """

    prediction: float
    weights: np.ndarray
    rollout: np.ndarray
    gradient: np.ndarray
    faithfulness: dict[str, list[AtomRemovalEffect]]
    without: float


def account(subject: Subject, model: GraphTransformer, seed: int = 0, draws: int = 50) -> AttentionAnalysis:
    """Run a network on the molecule of a subject and collect its attention and the scores of its atoms.

    Args:
        subject: the molecule and target.
        model: in float64, on the CPU, in evaluation mode.
        seed: seed of the random removals.
        draws: random removals per number of atoms.
    """
    with torch.enable_grad():
        maps = model.attention(copies(subject.store))
        slopes = torch.autograd.grad(maps.out[0, subject.column], maps.weights)
    atoms, nodes = maps.place, max(int(maps.edge_index.max()), int(maps.place.max())) + 1

    def matrices(layers: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
        return torch.stack([to_dense_attention(layer.detach(), maps.edge_index, nodes) for layer in layers])

    weights, gradients = matrices(maps.weights), matrices(slopes)
    num_virtual = 0 if model.embedding.virtual is None else len(model.embedding.virtual.node)
    virtual = torch.arange(nodes - num_virtual, nodes)  # the last nodes
    readers = virtual if model.readout.pool is None else torch.cat([atoms, virtual])
    scores = {
        "rollout": score_atoms_by_attention(attention_rollout(weights.mean(1)), atoms, readers).numpy(),
        "gradient": score_atoms_by_attention(gradient_weighted_attention(weights, gradients), atoms, readers).numpy(),
    }
    whole = float(predict_without(subject, model, np.zeros((1, len(atoms)), bool))[0])

    def change(sets: np.ndarray) -> np.ndarray:
        return predict_without(subject, model, sets) - whole

    return AttentionAnalysis(
        prediction=whole,
        weights=weights[:, :, atoms][:, :, :, atoms].numpy(),
        rollout=scores["rollout"],
        gradient=scores["gradient"],
        faithfulness=measure_faithfulness(change, scores, draws=draws, seed=seed),
        without=float(change(np.ones((1, len(atoms)), bool))[0]),
    )


def random_model(subject: Subject, seed: int) -> GraphTransformer:
    """Build the same architecture with untrained weights, in float64; fixed tensors (known codes, scales) are copied.

    The untrained network is the control of Adebayo et al. 2018 (arXiv:1810.03292): scores that random weights also give
    show nothing of what the network learned.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = build_model(subject.header.model).double().eval()
    learnt = dict(fresh.named_parameters())
    state = subject.model.state_dict()
    fresh.load_state_dict({name: learnt.get(name, value).detach().clone() for name, value in state.items()})
    if not isinstance(fresh, GraphTransformer):
        raise TypeError(f"expected a GraphTransformer, got {type(fresh).__name__}")
    return fresh


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Findings(AttentionAnalysis):
    """Attention analysis of a trained network, beside the analysis of the same network with random weights.

    Attributes:
        smiles: the molecule as given.
        mol: the RDKit molecule whose atoms are the n atoms.
        atoms: `[n]`, symbol and number of each, as "O2".
        distance: float64 `[n, n]`, bonds between atoms, infinite where nothing connects them.
        target: name of the target.
        quantity: name of the predicted quantity.
        layer, head, receiver: layer, head and receiver in the figures, counted from 0; head None is the mean over
            heads.
        seed: seed of the random weights and of the random removals.
        random: analysis of the network with random weights.
        blend: the prediction of the whole model in words, if a kernel is blended with the network.
        notes: notes on the model and the molecule, for the reader.
        neighbours: lines of text about the most similar training molecules.
    """

    smiles: str
    mol: Mol
    atoms: list[str]
    distance: np.ndarray
    target: str
    quantity: str
    layer: int
    head: int | None
    receiver: int
    seed: int
    random: AttentionAnalysis
    blend: str | None
    notes: list[str]
    neighbours: list[str]

    def shown(self, account: AttentionAnalysis | None = None) -> np.ndarray:
        """Return the attention of the chosen layer and head, `[n, n]`, of this network or of another account."""
        return chosen((account or self).weights, self.layer, self.head)

    def agreement(self) -> dict[str, float]:
        """Compute Spearman's rank correlation of each score with that of random weights.

        It is NaN where either score is the same for all atoms, or n < 3.
        """
        return {
            "rollout": rank_correlation(self.rollout, self.random.rollout),
            "gradient": rank_correlation(self.gradient, self.random.gradient),
        }


def chosen(weights: np.ndarray, layer: int, head: int | None) -> np.ndarray:
    """Select the attention `[n, n]` of a layer and head from `[L, H, n, n]`; for None, the mean over heads."""
    return weights[layer].mean(0) if head is None else weights[layer, head]


# --- The findings in sentences.

CAVEAT = "Attention weights show the computation; they do not prove a cause."


def name_layer(findings: Findings) -> str:
    """Name the chosen layer and head, counted from 0."""
    layers, heads = findings.weights.shape[:2]
    head = f"mean of {heads} heads" if findings.head is None else f"head {findings.head} of {heads}"
    return f"layer {findings.layer} of {layers}, {head if heads > 1 else 'one head'}"


def headline(
    smiles: str, atoms: int, quantity: str, prediction: float, blend: str | None = None, beside: str = ""
) -> list[str]:
    """Name the molecule and its prediction; for a blend, the prediction of the whole model first."""
    lines = [f"{smiles}: {plural(atoms, 'atom')}"]
    if blend is None:
        return [*lines, f"predicted {quantity}: {prediction:.4g}{beside}"]
    lines.append(f"{quantity}: {blend}")
    return [*lines, f"this explanation is of the network alone, which predicts {prediction:.4g}{beside}"]


def describe(findings: Findings) -> str:
    """Write all findings as text, for a terminal."""
    e = findings
    random = f" (random weights: {e.random.prediction:.4g})"
    lines = [
        *headline(e.smiles, len(e.atoms), e.quantity, e.prediction, e.blend, random),
        f"drawn: {name_layer(e)}, counted from 0; receiver {e.atoms[e.receiver]}",
        "",
        f"{'atom':>6}  {'rollout':>9}  {'gradient':>9}",
        *(f"{a:>6}  {r:>9.4f}  {g:>9.2e}" for a, r, g in zip(e.atoms, e.rollout, e.gradient, strict=True)),
        "",
        f"Removal test: the change of {e.quantity} when the attention to and from the k atoms with the highest scores",
        "is removed; the mean size of the change for k random atoms; and the share of random sets of k atoms that",
        "change the prediction less (chance: 50%):",
        "",
        *_table("trained", e),
        "",
        *_table("random weights", e.random),
        "",
        *(
            f"{name}: rank correlation with random weights {rho:.2f}"
            for name, rho in e.agreement().items()
            if np.isfinite(rho)
        ),
        *(f"note: {note}" for note in e.notes),
        CAVEAT,
        *e.neighbours,
    ]
    return "\n".join(lines)


def _table(name: str, account: AttentionAnalysis) -> list[str]:
    lines = [f"{name:<15}  {'score':<8}  {'k':>3}  {'change':>10}  {'random, mean ± sd':>22}  change less"]
    for score, table in account.faithfulness.items():
        for r in table:
            random = f"{r.mean:.3g} ± {r.sd:.2g} ({len(r.random)})"
            lines.append(f"{'':<15}  {score:<8}  {r.k:>3}  {r.change:>+10.3g}  {random:>22}  {r.less:>11.0%}")
    if len(lines) == 1:
        lines = [f"{name:<15}  a single atom: nothing to compare with"]
    lines.append(f"{'':<15}  {'all atoms':<13}  {account.without:>+10.3g}")
    return lines


def caption(findings: Findings) -> list[str]:
    """Write the sentences under the figure, for a chemist."""
    e = findings
    remarks = [*e.notes] if e.blend is None else [f"this is the network alone; {e.blend}", *e.notes]
    notes = "".join(f" {remark[0].upper()}{remark[1:]}." for remark in remarks)
    apart = " ∞: no path of bonds connects the two atoms." if np.isinf(e.distance).any() else ""
    return [
        "Attention: every atom reads other atoms, each with its own weight. The pictures show the weights of "
        f"{name_layer(e)}, counted from 0. The ringed atom {e.atoms[e.receiver]} reads the shaded atoms.{apart}",
        "Rollout multiplies the attention of all layers; in every layer, half comes from the atom itself (Abnar & "
        f"Zuidema 2020). Gradient-weighted attention adds up the weights that raise {e.quantity}, each multiplied by "
        "how much it raises it (Chefer et al. 2021). Both give one score per atom; rings mark the highest scores.",
        "Removal test: the attention to and from the k atoms with the highest scores is removed, and the prediction "
        "changes (coloured lines). The grey band is the change for k random atoms (mean ± sd), the dotted line the "
        "change for all atoms. The percentages are the share of random sets that change the prediction less "
        "(chance: 50%).",
        "Random weights: the same network before training. Where its pictures look like those of the trained network, "
        "they show little of what the network learned. ρ is the rank correlation of its scores with the trained "
        f"network's. {CAVEAT}{notes}",
    ]
