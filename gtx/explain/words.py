"""The sentences of an explanation."""

from __future__ import annotations

import numpy as np

from gtx.data.ledger import counted
from gtx.explain.account import Account
from gtx.explain.findings import Findings

CAVEAT = "Attention weights show the computation; they do not prove a cause."


def which(explanation: Findings) -> str:
    """The chosen layer and head, counted from 0."""
    layers, heads = explanation.weights.shape[:2]
    head = f"mean of {heads} heads" if explanation.head is None else f"head {explanation.head} of {heads}"
    return f"layer {explanation.layer} of {layers}, {head if heads > 1 else 'one head'}"


def headline(
    smiles: str, atoms: int, quantity: str, prediction: float, mix: str | None = None, beside: str = ""
) -> list[str]:
    """State the molecule and its prediction; for a blend, the prediction of the whole model first."""
    told = f"predicted {quantity}: {prediction:.4g}"
    if mix is not None:
        told = f"{quantity}: {mix}\nexplained is the network alone, which predicts {prediction:.4g}"
    return [f"{smiles}: {counted(atoms, 'atom')}", *f"{told}{beside}".split("\n")]


def report(explanation: Findings) -> str:
    """The whole text, for a terminal."""
    e = explanation
    random = f" (random weights: {e.random.prediction:.4g})"
    lines = [
        *headline(e.smiles, len(e.atoms), e.quantity, e.prediction, e.mix, random),
        f"drawn: {which(e)}; receiver {e.atoms[e.receiver]}",
        "",
        f"{'atom':>6}  {'rollout':>9}  {'gradient':>9}",
        *(f"{a:>6}  {r:>9.4f}  {g:>9.2e}" for a, r, g in zip(e.atoms, e.rollout, e.gradient, strict=True)),
        "",
        f"Check: the change of {e.quantity} when the attention to and from the k atoms with the highest numbers is",
        "removed; its size for k random atoms; the share of random sets of atoms that change it less (50% is chance):",
        "",
        *_table("trained", e),
        "",
        *_table("random weights", e.random),
        "",
        *(
            f"{name}: rank correlation with random weights {rho:.2f}"
            for name, rho in e.agreement().items()
            if rho == rho
        ),
        *(f"note: {note}" for note in e.notes),
        CAVEAT,
        *e.neighbours,
    ]
    return "\n".join(lines)


def _table(name: str, account: Account) -> list[str]:
    lines = [f"{name:<15}  {'score':<8}  {'k':>3}  {'change':>10}  {'random, mean ± sd':>22}  change less"]
    for score, table in account.faithfulness.items():
        for r in table:
            random = f"{r.mean:.3g} ± {r.sd:.2g} ({len(r.random)})"
            lines.append(f"{'':<15}  {score:<8}  {r.k:>3}  {r.change:>+10.3g}  {random:>22}  {r.less:>11.0%}")
    if len(lines) == 1:
        lines = [f"{name:<15}  a single atom: nothing to compare with"]
    lines.append(f"{'':<15}  {'all atoms':<13}  {account.without:>+10.3g}")
    return lines


def caption(explanation: Findings) -> list[str]:
    """Sentences under the figure, for a chemist."""
    e = explanation
    told = [*e.notes] if e.mix is None else [f"this is the network alone; {e.mix}", *e.notes]
    notes = "".join(f" {_sentence(note)}" for note in told)
    apart = " ∞: no path of bonds connects the two atoms." if np.isinf(e.distance).any() else ""
    return [
        "Attention: every atom reads other atoms, each with its own weight. The pictures show the weights of "
        f"{which(e)}, counted from 0. The ringed atom {e.atoms[e.receiver]} reads the shaded atoms.{apart}",
        "Rollout multiplies the attention of all layers; in every layer, half comes from the atom itself (Abnar & "
        f"Zuidema 2020). Gradient-weighted attention adds up the weights that raise {e.quantity}, each times "
        "how much it raises it (Chefer et al. 2021). Both give one number per atom; rings mark the highest numbers.",
        "Check: the attention to and from the k atoms with the highest numbers is removed, and the prediction changes "
        "(coloured lines). The grey band is the change for k random atoms (mean ± sd), the dotted line the change for "
        "all atoms. The percentages are the share of random sets that change the prediction less (chance: 50%).",
        "Random weights: the same network before training. Where its pictures look like those of the trained network, "
        "they say little about what the network learned. ρ is the rank correlation of its numbers with the trained "
        f"network's. {CAVEAT}{notes}",
    ]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
