"""What an explanation says in words."""

from __future__ import annotations

from gtx.explain.account import Account
from gtx.explain.explanation import Explanation

CAVEAT = "Attention weights are a picture of the computation, not a proof of reasons."


def which(explanation: Explanation) -> str:
    """The chosen layer and head, counted from 0."""
    layers, heads = explanation.weights.shape[:2]
    head = f"mean of {heads} heads" if explanation.head is None else f"head {explanation.head} of {heads}"
    return f"layer {explanation.layer} of {layers}, {head if heads > 1 else 'one head'}"


def quantity(explanation: Explanation) -> str:
    """The target as the predictions give it."""
    return f"probability of {explanation.target}" if explanation.task == "classification" else explanation.target


def report(explanation: Explanation) -> str:
    """The whole text, for a terminal."""
    e = explanation
    lines = [
        f"{e.smiles}: {len(e.atoms)} atom{'s' * (len(e.atoms) > 1)}",
        f"predicted {quantity(e)}: {e.prediction:.4g} (random weights: {e.random.prediction:.4g})",
        f"drawn: {which(e)}; receiver {e.atoms[e.receiver]}",
        "",
        f"{'atom':>6}  {'rollout':>9}  {'gradient':>9}",
        *(f"{a:>6}  {r:>9.4f}  {g:>9.2e}" for a, r, g in zip(e.atoms, e.rollout, e.gradient, strict=True)),
        "",
        f"Change of {quantity(e)} when the attention into and out of the k highest-scored atoms is removed,",
        "beside the size of the change for k random atoms, and the share of these that change it less:",
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
        "",
    ]
    return "\n".join(lines[:-1])


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


def caption(explanation: Explanation) -> list[str]:
    """Sentences under the figure, for a chemist."""
    e = explanation
    kept = f" {_sentence(note)}" if (note := "; ".join(e.notes)) else ""
    return [
        f"Attention: each atom takes in a weighted sum of what all atoms offer; drawn is {which(e)}, counted from 0. "
        f"The ringed atom {e.atoms[e.receiver]} takes in the shaded ones.",
        "Rollout multiplies attention through all layers, half of it and half of the atom itself in each (Abnar & "
        f"Zuidema 2020). Gradient counts only the weights that raise {quantity(e)}, by how much they do (Chefer et al. "
        "2021). Both are one number per atom; rings mark the atoms with the highest.",
        "The check: the attention into and out of the k highest-scored atoms is removed, and the prediction changes "
        "(lines); k random atoms change it as the grey band shows (mean ± sd). Numbers below the axis: the share of "
        "random removals that change it less; chance is about half.",
        "Right: the same network with random weights, where nothing was learnt. What looks alike on both sides says "
        f"little about what was learnt (ρ: rank correlation of the scores with those on the left). {CAVEAT}{kept}",
    ]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
