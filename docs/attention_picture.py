"""The picture in the README: the atoms that three atoms of a molecule attend to, in a trained model.

python docs/attention_picture.py run/model.gtx docs/pictures/attention.svg
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gtx
from gtx.explain import explain
from gtx.molecules import draw_attention

SMILES = "CC(=O)Nc1ccc(O)cc1"  # paracetamol
ATOMS = {2: "the carbonyl oxygen", 3: "the nitrogen", 8: "the hydroxyl oxygen"}
SIZE = (340, 250)


def main() -> None:
    """Three pictures side by side: the last layer's attention, mean over heads."""
    path, out = sys.argv[1:]
    weights = explain(gtx.load(path, device="cpu"), SMILES).shown()
    panels = []
    for k, (atom, name) in enumerate(ATOMS.items()):
        svg = draw_attention(SMILES, weights, atom, title=f"{name} attends to", size=SIZE)
        panels.append(svg.replace("<svg", f'<svg x="{k * SIZE[0]}"', 1))
    height = int(re.search(r'height="(\d+)"', panels[0])[1])
    width = SIZE[0] * len(panels)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>"
    Path(out).write_text(f"{head}<rect width='100%' height='100%' fill='white'/>{''.join(panels)}</svg>\n")


if __name__ == "__main__":
    main()
