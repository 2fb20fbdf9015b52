"""`gtx explain`."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gtx.base.errors import InputError
from gtx.cli import importing
from gtx.cli.parser import options_of
from gtx.cli.predict import check_order
from gtx.cli.printing import say
from gtx.settings import option, word
from gtx.settings.training import Arguments

if TYPE_CHECKING:
    from gtx.explain import Attribution, Explanation

EXAMPLES = """
examples:
  gtx explain run/model.gtx "CC(=O)Nc1ccc(O)cc1" --out paracetamol.svg
  gtx explain run/model.gtx "CCOC(C)=O" --method substructures --out p.svg
  gtx explain run/model.gtx "CCOC(C)=O" --layer 0 --head 2 --out page.html
  gtx explain pairs/model.gtx "CCOC(C)=O" "ClCCl" --out solute-and-solvent.svg
"""
NOTES = """
The figure shows the attention of one layer and head, and two scores of the atoms: attention rollout and
gradient-weighted attention. It also shows how the prediction changes when the attention of the highest-scored atoms is
removed, beside the same for random atoms and for a network with random weights. Atoms, layers and heads are counted
from 0; the order of the atoms is that of the SMILES.

With --method shapley the figure is the molecule, each atom coloured by its Shapley value: the mean change of the
prediction when the atom is removed, over all orders of removal. In the network, an atom is removed by masking its
attention; the kernel is explained by its exact contributions. The values sum to the prediction minus a baseline; the
output lists the contributions of network and kernel. With --method substructures, whole substructures are removed: the
fragments between BRICS bonds. Up to 10 atoms or substructures, all sets of them are evaluated; with more, --draws
orders and their reverses are drawn, and each value has a standard error.

Below the numbers stand the most similar training molecules with their measured values, if the model file contains
training rows. For a kernel model (--model kernel), gtx explain prints only these.
"""
USAGE = "gtx explain MODEL SMILES [options]"


@dataclass(frozen=True)
class ExplainOptions:
    """Options of the command."""

    model: str = word("MODEL", "a model file, such as run/model.gtx")
    smiles: list[str] = word("SMILES", "one molecule or reaction, or a word for each molecule that a row has")
    out: str = option("explanation.svg", ".svg, or .html with the numbers as text", metavar="FILE")
    method: Literal["attention", "shapley", "substructures"] = option(
        "attention",
        "attention: the attention weights, and a test of them; shapley: the contribution of each atom (Shapley "
        "value); substructures: the contribution of each substructure",
    )
    target: str | None = option(None, "the target to explain; default: the first")
    layer: int = option(-1, "the layer to draw; default: the last")
    head: int | None = option(None, "the head to draw; default: the mean over heads")
    receiver: int | None = option(
        None,
        "number of the atom whose attention is drawn; default: that with the most uneven weights",
        metavar="ATOM",
    )
    features: Arguments = option(
        {}, "for a model with feature columns: their values, such as temperature=298 charge=[0.1,-0.2,0.1]"
    )
    member: int = option(0, "number of the network, from 0")
    draws: int = option(
        50,
        "number of random sets of atoms that are removed for comparison; for Shapley values, number of random orders",
    )
    seed: int = option(0, "random seed of the random weights and the random atoms")


OPTIONS = options_of(ExplainOptions, "options")


def run(arguments: Namespace) -> int:
    """Explain, print the numbers, write the figure, which a machine may be unable to draw."""
    with importing():
        from gtx.explain import compute_attribution, explain_prediction
        from gtx.explain.explanation import check_figure_name
        from gtx.models.catalogue import CLOSED_FORM_MODELS
        from gtx.prediction import load_predictor
        from gtx.prediction.domain import neighbour_lines

    check_order(arguments.model, arguments.smiles[0])
    check_figure_name(arguments.out)
    if files := list(filter(os.path.isfile, arguments.smiles)):
        raise InputError(f"{files[0]} is a file: gtx explain takes SMILES; gtx predict takes tables")
    predictor = load_predictor(arguments.model, "cpu")
    names, count = predictor.header.featuriser.components, len(arguments.smiles)
    if count != max(1, len(names)):
        expected = f"a SMILES for each of {', '.join(names)}" if names else "one SMILES"
        raise InputError(f"gtx explain takes {expected}, got {count}: {', '.join(arguments.smiles)}")
    smiles = tuple(arguments.smiles) if names else arguments.smiles[0]
    if predictor.header.model["name"] in CLOSED_FORM_MODELS:
        for line in neighbour_lines(predictor, smiles):
            say(line)
        return 0
    options = {k: getattr(arguments, k) for k in ("target", "member", "draws", "seed", "features")}
    explanation: Attribution | Explanation
    if arguments.method == "attention":
        drawn = {k: getattr(arguments, k) for k in ("layer", "head", "receiver")}
        explanation = explain_prediction(predictor, smiles, **options, **drawn)
    else:
        to = {"shapley": "atoms"}.get(arguments.method, arguments.method)
        explanation = compute_attribution(predictor, smiles, to=to, **options)
    for line in explanation.text().split("\n"):
        say(line)
    explanation.save(arguments.out)
    say(f"figure  {arguments.out}")
    return 0
