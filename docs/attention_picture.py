"""The picture at the head of the README: where three atoms of a molecule look, in a trained model.

python docs/attention_picture.py run/model.gtx docs/pictures/attention.svg
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import torch

import gtx
from gtx.data import MoleculeStore
from gtx.graph import CompleteGraph
from gtx.molecules import draw_attention, featurise_texts

SMILES = "CC(=O)Nc1ccc(O)cc1"  # paracetamol
ATOMS = {2: "the carbonyl oxygen", 3: "the nitrogen", 8: "the hydroxyl oxygen"}
SIZE = (340, 250)


def attention(path: str) -> np.ndarray:
    """Weights `[layers, heads, receivers, senders]` of the molecule in a model file's first member."""
    predictor = gtx.load(path, device="cpu")
    model = predictor.members[0]
    batch = MoleculeStore.from_flat([featurise_texts(predictor.header.featuriser, [SMILES])]).batch(torch.tensor([0]))
    graph, layers = CompleteGraph.from_batch(batch.batch), []
    with torch.no_grad():
        x, pairs = model.embed_graph(batch, graph)
        bonds = model.bond_embedding(model.bond_vocabulary(batch.edge_attr))
        for layer in model.layers:
            _, (_, weights) = layer.attention(layer.norm_attention(x), graph, pairs, return_attention_weights=True)
            layers.append(weights.view(graph.num_nodes, graph.num_nodes, -1).permute(2, 0, 1))
            x = layer(x, graph, pairs, batch.edge_index, bonds)
    return torch.stack(layers).numpy()


def main() -> None:
    """Three pictures side by side: the last layer's attention, mean over heads."""
    path, out = sys.argv[1:]
    weights = attention(path)[-1].mean(0)
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
