"""What each compiled file of `gtx/molecules/fast` takes off reading ZINC-12k: RDKit's own function in its place.

    python -m experiments.speed.compiled_reading

Every file is left out alone, all others at work; outcomes are compared first. All ways take turns with 128 molecules of
a sample of 1,024; of each 128 the least user seconds of many turns count.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

from gtx.data.named_sets import load_set
from gtx.molecules import Featuriser, atom_codes, bond_codes, bond_ends, featurise_texts
from gtx.molecules.descriptors import PROPERTY_NAMES
from gtx.molecules.fast import descriptors, perception
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.topology import follow
from gtx.molecules.features import ATOM_PLACE, BOND_PLACE

TURNS = 15
PROPERTIES = rd.Properties(PROPERTY_NAMES)
_mols: Sequence[Chem.Mol] = ()  # whose descriptors are computed


def graphs_by_getters(settings: Featuriser, read: Sequence[perception.Read]) -> tuple[int, Graphs, Graphs]:
    atoms, tags, bonds, ends, rings = [], [], [], [], []
    for mol in (one.mol for one in read):
        atoms.append(atom_codes(mol))
        tags.append(np.array([int(atom.GetChiralTag()) for atom in mol.GetAtoms()], np.uint8))
        atoms[-1][tags[-1] > 0, ATOM_PLACE["chirality"]] = 0
        bonds.append(bond_codes(mol)[::2])
        bonds[-1][[bond.GetStereo() != Chem.BondStereo.STEREONONE for bond in mol.GetBonds()], BOND_PLACE["stereo"]] = 0
        ends.append(bond_ends(mol)[:, ::2].T)
        rings.append(mol.GetRingInfo().AtomRings())
    counts = [np.cumsum([0, *map(len, parts)]) for parts in (atoms, bonds, rings)]
    members = [ring for some in rings for ring in some]
    arrays = (
        *(np.concatenate(parts) for parts in (atoms, tags, bonds, ends)),
        np.array([atom for ring in members for atom in ring], np.int32),
        *counts,
        np.cumsum([0, *map(len, members)]),
    )
    graphs = Graphs(*map(np.ascontiguousarray, arrays), *follow(*map(np.ascontiguousarray, arrays)))
    return len(read), graphs, graphs


def no_centres(graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """All stereochemistry is left to RDKit."""
    open_atoms = np.cumsum([0, *(graphs.atoms[:, ATOM_PLACE["chirality"]] == 0)])[graphs.atom_ptr]
    open_bonds = np.cumsum([0, *(graphs.bonds[:, BOND_PLACE["stereo"]] == 0)])[graphs.bond_ptr]
    left = (np.diff(open_atoms) > 0) | (np.diff(open_bonds) > 0)
    return np.zeros(len(left), bool), left


def charges(*_: Any) -> np.ndarray:
    for mol in _mols:
        rdPartialCharges.ComputeGasteigerCharges(mol)
    return np.array([atom.GetDoubleProp("_GasteigerCharge") for mol in _mols for atom in mol.GetAtoms()])


def table(function: Callable[[Chem.Mol], Sequence[float]], columns: int) -> Callable[..., np.ndarray]:
    return lambda *_: np.array([list(function(mol)) for mol in _mols]).reshape(-1, columns)


def surfaces(*_: Any) -> tuple[np.ndarray, np.ndarray]:
    areas = [area for mol in _mols for area in rd._CalcLabuteASAContribs(mol)[0]]
    return np.array(areas), np.array([rd.CalcLabuteASA(mol) for mol in _mols])


def crippen(*_: Any) -> tuple[np.ndarray, np.ndarray]:
    pairs = [pair for mol in _mols for pair in rd._CalcCrippenContribs(mol)]
    return tuple(np.ascontiguousarray(np.array(pairs).reshape(-1, 2).T))


PLAIN: dict[str, tuple[Any, str, Callable]] = {
    "binary": (perception, "_graphs", graphs_by_getters),
    "centres": (perception, "name_centres", no_centres),
    "crippen": (descriptors, "crippen", crippen),
    "charges": (descriptors, "charges", charges),
    "surface": (descriptors, "surfaces", surfaces),
    "quantum_numbers": (descriptors, "quantum_numbers", table(rd.MQNs_, 42)),
    "properties": (descriptors, "properties", table(PROPERTIES.ComputeProperties, len(PROPERTY_NAMES))),
}
"""By file, the function that is replaced, and by what."""


@contextmanager
def without(file: str | None) -> Iterator[None]:
    """Within, RDKit's own function stands in for a file's."""
    tabulate = descriptors.tabulate

    def watched(graphs: Graphs, mols: Sequence[Chem.Mol]) -> np.ndarray:
        global _mols
        _mols = mols
        return tabulate(graphs, mols)

    with patch.object(perception, "tabulate", watched):
        if file is None:
            yield
        else:
            with patch.object(*PLAIN[file]):
                yield


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    entry = load_set("zinc12k")
    texts = random.Random(0).sample(pd.read_csv(entry.path)[entry.smiles_column].tolist(), 1024)
    parts = [texts[i : i + perception.TOGETHER] for i in range(0, len(texts), perception.TOGETHER)]
    ways, featuriser = [None, *PLAIN], Featuriser()
    whole = featurise_texts(featuriser, texts)
    for way in PLAIN:
        with without(way), rdBase.BlockLogs():
            for ours, theirs in zip(whole, featurise_texts(featuriser, texts), strict=True):
                np.testing.assert_equal(ours, theirs, err_msg=way)
    for smiles in (True, False):
        least = np.full((len(ways), len(parts)), np.inf)
        for _ in range(TURNS):
            for k, part in enumerate(parts):
                for i, way in enumerate(ways):
                    with without(way):
                        before = user_seconds()
                        featurise_texts(featuriser, part, smiles=smiles)
                        least[i, k] = min(least[i, k], user_seconds() - before)
        micro = 1e6 * least.sum(1) / len(texts)
        print(f"\nµs a molecule {'with' if smiles else 'without'} canonical SMILES: {micro[0]:.0f}; without the file:")
        for way, time in zip(PLAIN, micro[1:], strict=True):
            print(f"{way:16s} {time:6.0f}   the file saves {1 - micro[0] / time:.0%}")


if __name__ == "__main__":
    main()
