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
PROPERTIES = rd.Properties(PROPERTY_NAMES)
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
    mols = [one.mol for one in read]
    parts = [[atom_codes(mol) for mol in mols], [bond_codes(mol)[::2] for mol in mols]]
    atoms, bonds = map(np.concatenate, parts)
    tags = np.array([int(atom.GetChiralTag()) for mol in mols for atom in mol.GetAtoms()], np.uint8)
    named = [bond.GetStereo() != Chem.BondStereo.STEREONONE for mol in mols for bond in mol.GetBonds()]
    atoms[tags > 0, ATOM_PLACE["chirality"]] = bonds[named, BOND_PLACE["stereo"]] = 0
    ends = np.concatenate([bond_ends(mol)[:, ::2].T for mol in mols])
    rings = [mol.GetRingInfo().AtomRings() for mol in mols]
    members = [*chain(*rings)]
    counts = [np.cumsum([0, *map(len, each)]) for each in (*parts, rings, members)]
    arrays = [atoms, tags, bonds, np.ascontiguousarray(ends), np.array([*chain(*members)], np.int32), *counts]
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


def surfaces(mols: Mols, *_: Any) -> tuple[np.ndarray, np.ndarray]:
    areas = [rd._CalcLabuteASAContribs(mol)[0] for mol in mols]
    return np.array([*chain(*areas)]), np.array([rd.CalcLabuteASA(mol) for mol in mols])


def crippen(mols: Mols, *_: Any) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([pair for mol in mols for pair in rd._CalcCrippenContribs(mol)]).T.copy())


PLAIN: dict[str, tuple[Any, str, Callable]] = {
    "binary": (perception, "_graphs", graphs_by_getters),
    "centres": (perception, "name_centres", no_centres),
    "crippen": (descriptors, "crippen", crippen),
    "charges": (descriptors, "charges", charges),
    "surface": (descriptors, "surfaces", surfaces),
    "quantum_numbers": (descriptors, "quantum_numbers", lambda mols, *_: np.array([[*rd.MQNs_(mol)] for mol in mols])),
    "properties": (
        descriptors,
        "properties",
        lambda mols, *_: np.array([[*PROPERTIES.ComputeProperties(mol)] for mol in mols]),
    ),
}
"""By file, the function that is replaced, and by what: of the molecules, or in the place of the function itself."""
