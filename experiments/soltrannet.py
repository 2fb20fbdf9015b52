"""Weights that others trained, in layers of gtx: the Molecule Attention Transformer of SolTranNet.

    pip install --no-deps soltrannet==1.0.0
    python -m experiments.soltrannet "c1ccccc1" "[Zn+2]" "[Na+].[Cl-]"
    python -m experiments.soltrannet --compare molecules.smi      # beside the package's own predictions

SolTranNet (Francoeur and Koes 2021, doi:10.1021/acs.jcim.1c00331; Apache License) predicts the solubility log S of a
molecule with MAT (Maziarka et al. 2020, arXiv:2002.08264) and publishes its weights in its wheel. Only that file is
read; the package itself, which needs setuptools' pkg_resources, is imported for `--compare` alone.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import torch
from rdkit import Chem
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from gtx.attention import DistanceAdjacencyBlend
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention, GraphTransformerLayer

ELEMENTS = {5: 0, 6: 1, 7: 2, 8: 3, 9: 4, 15: 5, 16: 6, 17: 7, 35: 8, 53: 9}
OTHER_ELEMENT, NEIGHBOURS, HYDROGENS, CHARGE, RING, AROMATIC = 10, 11, 17, 23, 25, 26
CHANNELS, HEADS, LAYERS, FEATURES = 8, 2, 8, 28


class SampleNorm(nn.Module):
    r"""\(a (x - \bar x) / (s + 10^{-6}) + b\) over the channels; s divides by n - 1, as in the code of MAT."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class SolTranNet(nn.Module):
    r"""MAT of 8 layers, 8 channels and 2 heads, whose attention is half a softmax and half the adjacency matrix.

    \[ w_{rs} = \tfrac12 \operatorname{softmax}_s(q_r \cdot k_s / \sqrt d)
       + \tfrac12 A_{rs} / (\textstyle\sum_s A_{rs} + 10^{-6}) \]

    A has self-loops. A dummy node without neighbours stands before the atoms; the readout is the mean over all nodes.

    Shapes:
        x `[N, 28]`, features of dummy nodes and atoms; adjacency `[P, 1]`, the normalised adjacency of every pair of a
        molecule, receiver-major; ptr `[B + 1]`, first node of each molecule. Output `[B]`, log S (mol/L).
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(FEATURES, CHANNELS)
        self.layers = nn.ModuleList(_layer() for _ in range(LAYERS))
        self.norm, self.head = SampleNorm(CHANNELS), nn.Linear(CHANNELS, 1)

    def forward(self, x: Tensor, adjacency: Tensor, ptr: Tensor) -> Tensor:
        graph = CompleteGraph.from_ptr(ptr)
        no_distance = torch.zeros_like(adjacency)
        pairs = torch.cat([no_distance, adjacency, no_distance], 1)
        x = self.embedding(x)
        for layer in self.layers:
            x, _ = layer(x, graph, pairs)
        molecule = torch.repeat_interleave(torch.arange(len(ptr) - 1), ptr.diff())
        return self.head(global_mean_pool(self.norm(x), molecule)).squeeze(-1)


def _layer() -> GraphTransformerLayer:
    blend = DistanceAdjacencyBlend((0.5, 0.0, 0.5))
    attention = EdgeAttention(
        CHANNELS, CHANNELS // HEADS, HEADS, edge_dim=3, normaliser=blend, edge_bias=False, project=True
    )
    layer = GraphTransformerLayer(attention, None, CHANNELS)
    layer.norm_attention, layer.norm_mlp = SampleNorm(CHANNELS), SampleNorm(CHANNELS)
    layer.mlp = nn.Sequential(nn.Linear(CHANNELS, CHANNELS), nn.ReLU())
    return layer


def new_name(name: str) -> str:
    """Return gtx's name of a weight that SolTranNet calls `name`."""
    for old, new in {
        "src_embed.lut.": "embedding.",
        "generator.proj.": "head.",
        "encoder.norm.": "norm.",
        "encoder.layers.": "layers.",
        "self_attn.linears.0.": "attention.lin_query.",
        "self_attn.linears.1.": "attention.lin_key.",
        "self_attn.linears.2.": "attention.lin_value.",
        "self_attn.linears.3.": "attention.lin_out.",
        "feed_forward.linears.0.": "mlp.0.",
        "sublayer.0.norm.": "norm_attention.",
        "sublayer.1.norm.": "norm_mlp.",
        "a_2": "weight",
        "b_2": "bias",
    }.items():
        name = name.replace(old, new)
    return name


def load_published() -> SolTranNet:
    """Load the weights that the installed package `soltrannet` brings along; no code of it runs."""
    spec = importlib.util.find_spec("soltrannet")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no weights of SolTranNet here: pip install --no-deps soltrannet==1.0.0")
    file = Path(spec.origin).parent / "soltrannet_aqsol_trained.weights"
    weights = torch.load(file, map_location="cpu", weights_only=True)
    model = SolTranNet()
    model.load_state_dict({new_name(name): weight for name, weight in weights.items()})
    return model.eval()


def atom_features(atom: Chem.Atom) -> Tensor:
    """One-hot element, neighbours, hydrogens and charge, and whether the atom is in a ring and aromatic, `[28]`."""
    features = torch.zeros(FEATURES)
    atoms = features[1:]  # the first is for the dummy node
    atoms[ELEMENTS.get(atom.GetAtomicNum(), OTHER_ELEMENT)] = 1
    atoms[NEIGHBOURS + min(atom.GetDegree(), 5)] = 1
    atoms[HYDROGENS + min(atom.GetTotalNumHs(), 4)] = 1
    charge = atom.GetFormalCharge()
    atoms[CHARGE + (charge > 0) - (charge < 0)] = 1
    atoms[RING], atoms[AROMATIC] = atom.IsInRing(), atom.GetIsAromatic()
    return features


def read(smiles: str) -> tuple[Tensor, Tensor]:
    """Features of dummy node and atoms, `[n + 1, 28]`, and rows of the adjacency matrix divided by their sums."""
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        raise ValueError(f"expected SMILES, got {smiles!r}")
    n = mol.GetNumAtoms()
    dummy = torch.zeros(FEATURES)
    dummy[0] = 1
    adjacency = torch.zeros(n + 1, n + 1)
    adjacency[1:, 1:] = torch.from_numpy(Chem.GetAdjacencyMatrix(mol)) + torch.eye(n)
    adjacency = adjacency / (adjacency.sum(1, keepdim=True) + 1e-6)
    return torch.stack([dummy, *map(atom_features, mol.GetAtoms())]), adjacency


@torch.no_grad()
def predict(model: SolTranNet, smiles: list[str]) -> Tensor:
    """Predict log S of each molecule, `[B]`."""
    features, matrices = zip(*map(read, smiles), strict=True)
    ptr = torch.tensor([0, *map(len, features)]).cumsum(0)
    return model(torch.cat(features), torch.cat([matrix.reshape(-1, 1) for matrix in matrices]), ptr)


def main() -> None:
    """Print predictions, or the largest difference to the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("smiles", nargs="+", help="molecules, or with --compare a file of SMILES, one a line")
    parser.add_argument("--compare", action="store_true", help="run the package too, and print the largest difference")
    args = parser.parse_args()
    texts = args.smiles
    if args.compare:
        texts = [line.split()[0] for line in Path(args.smiles[0]).read_text(encoding="utf-8").splitlines()]
    found = predict(load_published(), texts)
    if not args.compare:
        for text, value in zip(texts, found.tolist(), strict=True):
            print(f"{value:9.5f}  {text}")
        return
    import soltrannet

    theirs = torch.tensor([value for value, *_ in soltrannet.predict(texts)])
    print(f"{len(texts):,} molecules, largest difference {(found - theirs).abs().max():.1e}")


if __name__ == "__main__":
    main()
