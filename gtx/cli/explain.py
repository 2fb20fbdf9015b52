"""`gtx explain`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.parser import Parser

EXAMPLES = """
Draws the attention of a layer and head, scores of the atoms (attention rollout, gradient-weighted attention) and what
becomes of the prediction when the attention of the highest-scored atoms is removed, beside random atoms and beside the
same network with random weights. Atoms, layers and heads are counted from 0; atoms in the order of the SMILES.

examples:
  gtx explain run/model.gtx "CC(=O)Nc1ccc(O)cc1" --out paracetamol.svg
  gtx explain run/model.gtx "CC(=O)Nc1ccc(O)cc1" --layer 0 --head 2 --receiver 8 --out page.html
"""


def add(parser: Parser) -> None:
    """Options."""
    parser.epilog = EXAMPLES
    parser.add_argument("model", help="a model file")
    parser.add_argument("smiles", help="one molecule")
    parser.add_argument("--out", default="explanation.svg", metavar="FILE", help=".svg, or .html with the text too")
    parser.add_argument("--target", metavar="NAME", help="default: the model's first")
    parser.add_argument(
        "--layer", type=int, default=-1, metavar="N", help="whose attention is drawn; default: the last"
    )
    parser.add_argument("--head", type=int, metavar="H", help="default: the mean over heads")
    parser.add_argument("--receiver", type=int, metavar="ATOM", help="default: the atom with the least even attention")
    parser.add_argument("--member", type=int, default=0, metavar="K", help="which network of an ensemble")
    parser.add_argument("--draws", type=int, default=50, metavar="D", help="random removals per number of atoms")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights and removals")


def run(arguments: Namespace) -> int:
    """Explain, print the numbers, write the figure, which a machine may be unable to draw."""
    from gtx.explain import check_name, explain
    from gtx.prediction import load

    check_name(arguments.out)
    options = {k: getattr(arguments, k) for k in ("target", "layer", "head", "receiver", "member", "draws", "seed")}
    explanation = explain(load(arguments.model, "cpu"), arguments.smiles, **options)
    print(explanation.text())
    explanation.save(arguments.out)
    print(f"figure  {arguments.out}")
    return 0
