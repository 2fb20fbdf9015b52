"""What each compiled file of `gtx/molecules/fast` takes off reading: RDKit's own function in its place.

Every file is left out alone, all others at work, with and without canonical SMILES; 1,024 molecules of ZINC-12k.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any
from unittest.mock import patch

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

from experiments.speed.harness import Work
from experiments.speed.pages import microseconds
from experiments.speed.samples import smiles_of
from gtx.molecules import Featuriser, atom_codes, bond_codes, bond_ends, featurise_texts
from gtx.molecules.descriptors import PROPERTY_NAMES
from gtx.molecules.fast import descriptors, perception
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.topology import follow
from gtx.molecules.features import ATOM_PLACE, BOND_PLACE

DEFAULTS = {"threads": 1, "clock": "cpu"}
ALL = "all files"
TABLE = "Reading {}", ["left out"], {"per molecule": microseconds, "time over all files": None}
Mols = Sequence[Chem.Mol]


def groups(options: Namespace) -> list[list[str]]:
    return [[ALL, *PLAIN]]


def make(name: str, options: Namespace) -> Work:
    texts = smiles_of("zinc12k", 64 if options.quick else 1024)

    def step(smiles: bool) -> None:
        with nullcontext() if name == ALL else without(name):
            featurise_texts(Featuriser(), texts, smiles=smiles)

    steps = {"with SMILES": partial(step, True), "without SMILES": partial(step, False)}
    return Work(steps, {"molecules": len(texts), "rival": ALL}, seconds=0.0)


@contextmanager
def without(file: str) -> Iterator[None]:
    """Within, RDKit's own function stands in for a file's."""
    module, name, function = PLAIN[file]

    def tabulate(graphs: Graphs, mols: Mols) -> np.ndarray:
        with patch.object(descriptors, name, partial(function, mols)):
            return descriptors.tabulate(graphs, mols)

    of_mols = patch.object(perception, "tabulate", tabulate)
    with of_mols if module is descriptors else patch.object(module, name, function):
        yield


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
    members = [*chain(*rings)]
    arrays = [np.ascontiguousarray(np.concatenate(parts)) for parts in (atoms, tags, bonds, ends)]
    arrays += [np.array([*chain(*members)], np.int32), *counts, np.cumsum([0, *map(len, members)])]
    graphs = Graphs(*arrays, *follow(*arrays))
    return len(read), graphs, graphs


def no_centres(graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """All stereochemistry is left to RDKit."""
    open_atoms = np.cumsum([0, *(graphs.atoms[:, ATOM_PLACE["chirality"]] == 0)])[graphs.atom_ptr]
    open_bonds = np.cumsum([0, *(graphs.bonds[:, BOND_PLACE["stereo"]] == 0)])[graphs.bond_ptr]
    left = (np.diff(open_atoms) > 0) | (np.diff(open_bonds) > 0)
    return np.zeros(len(left), bool), left


def charges(mols: Mols, *_: Any) -> np.ndarray:
    for mol in mols:
        rdPartialCharges.ComputeGasteigerCharges(mol)
    return np.array([atom.GetDoubleProp("_GasteigerCharge") for mol in mols for atom in mol.GetAtoms()])


def per_mol(function: Callable[[Chem.Mol], Sequence[float]], mols: Mols, *_: Any) -> np.ndarray:
    return np.array([list(function(mol)) for mol in mols])


def surfaces(mols: Mols, *_: Any) -> tuple[np.ndarray, np.ndarray]:
    areas = [area for mol in mols for area in rd._CalcLabuteASAContribs(mol)[0]]
    return np.array(areas), np.array([rd.CalcLabuteASA(mol) for mol in mols])


def crippen(mols: Mols, *_: Any) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([pair for mol in mols for pair in rd._CalcCrippenContribs(mol)]).T.copy())


PLAIN: dict[str, tuple[Any, str, Callable]] = {
    "binary": (perception, "_graphs", graphs_by_getters),
    "centres": (perception, "name_centres", no_centres),
    "crippen": (descriptors, "crippen", crippen),
    "charges": (descriptors, "charges", charges),
    "surface": (descriptors, "surfaces", surfaces),
    "quantum_numbers": (descriptors, "quantum_numbers", partial(per_mol, rd.MQNs_)),
    "properties": (descriptors, "properties", partial(per_mol, rd.Properties(PROPERTY_NAMES).ComputeProperties)),
}
"""By file, the function that is replaced, and by what: of the molecules, or in the place of the function itself."""
