"""Candidates for the data set xtb9: molecules of 2 to 9 heavy atoms, grown at random and filtered.

A molecule starts as a chain or a ring and grows, by single atoms, functional groups, carbonyls, ring closures
and higher bond orders, until it reaches a size drawn beforehand. Growth knows valence alone; chemistry is in
`chemistry.yaml` (patterns no chemist would bottle) and `sane_rings` (strain). What passes both is kept once, as
canonical SMILES without stereochemistry. They are written in a seeded shuffle: every prefix is a fair sample.

    python -m experiments.xtb9.generate        # writes build/xtb9/candidates.smi
"""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import yaml
from rdkit import Chem, RDLogger

from gtx.base.files import write_text

SEED = 20190514
COUNT = 11_500
CANDIDATES = Path("build/xtb9/candidates.smi")

# Heavy atoms -> share of attempts. The small sizes hold few molecules and run dry, so the outcome leans to 9.
SIZES = {2: 0.01, 3: 0.01, 4: 0.02, 5: 0.05, 6: 0.09, 7: 0.17, 8: 0.27, 9: 0.38}

ATOMS = {"C": 10, "N": 2.2, "O": 2.4, "F": 0.7, "S": 0.6, "Cl": 0.6}


CHEMISTRY = yaml.safe_load(Path(__file__).with_name("chemistry.yaml").read_text())
STARTS = {"aromatic": 0.40, "bicyclic": 0.10, "saturated": 0.22, "chain": 0.28}
STEPS = {"atom": 0.40, "group": 0.36, "oxo": 0.07, "ylidene": 0.01, "ring": 0.10, "bond": 0.06}
UNWANTED = [Chem.MolFromSmarts(smarts) for smarts in CHEMISTRY["unwanted"].values()]
FOUR_RING_DIENE = Chem.MolFromSmarts("*1=**=*1")


def pick(rng: random.Random, weights: dict):
    """Draw a key with probability in proportion to its value."""
    return rng.choices(list(weights), list(weights.values()))[0]


def open_atoms(mol: Chem.RWMol, hydrogens: int = 1) -> list[int]:
    """List the atoms that carry at least `hydrogens` implicit hydrogens."""
    mol.UpdatePropertyCache(strict=False)
    return [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetNumImplicitHs() >= hydrogens]


def attach(
    mol: Chem.RWMol, group: Chem.Mol, rng: random.Random, order: Chem.BondType = Chem.BondType.SINGLE
) -> Chem.RWMol:
    """Bond the first atom of `group` to a random atom with free valence; without one, change nothing."""
    sites = open_atoms(mol, 2 if order == Chem.BondType.DOUBLE else 1)
    if order == Chem.BondType.DOUBLE:
        sites = [site for site in sites if mol.GetAtomWithIdx(site).GetSymbol() == "C"]
    if not sites:
        return mol
    site, first = rng.choice(sites), mol.GetNumAtoms()
    grown = Chem.RWMol(Chem.CombineMols(mol, group))
    grown.AddBond(site, first, order)
    return grown


def close_ring(mol: Chem.RWMol, rng: random.Random) -> Chem.RWMol:
    """Bond two atoms with free valence that are 2 to 6 bonds apart, rings of five and six preferred."""
    distance = Chem.GetDistanceMatrix(mol, force=True)
    weights = {2: 0.5, 3: 0.5, 4: 4, 5: 4, 6: 0.6}
    pairs = {(i, j): weights.get(int(distance[i, j]), 0) for i, j in combinations(open_atoms(mol), 2)}
    if sum(pairs.values()) == 0:
        return mol
    mol.AddBond(*pick(rng, pairs), Chem.BondType.SINGLE)
    return mol


def raise_bond(mol: Chem.RWMol, rng: random.Random) -> Chem.RWMol:
    """Make a single bond between two atoms with hydrogens double, or a double bond triple."""
    sites = set(open_atoms(mol))
    bonds = [b for b in mol.GetBonds() if {b.GetBeginAtomIdx(), b.GetEndAtomIdx()} <= sites]
    if bonds:
        bond = rng.choice(bonds)
        single = bond.GetBondType() == Chem.BondType.SINGLE
        bond.SetBondType(Chem.BondType.DOUBLE if single else Chem.BondType.TRIPLE)
    return mol


def grow(rng: random.Random) -> Chem.Mol | None:
    """Grow a random molecule of a random size, sanitised but not yet judged; None where valence forbids it."""
    size = pick(rng, SIZES)
    mol = Chem.RWMol(Chem.MolFromSmiles(rng.choice(CHEMISTRY[pick(rng, STARTS)].split()), sanitize=False))
    for _ in range(30):
        left = size - mol.GetNumAtoms()
        if left <= 0:
            break
        step = pick(rng, STEPS)
        if step == "atom":
            mol = attach(mol, Chem.MolFromSmiles(pick(rng, ATOMS)), rng)
        elif step == "group":
            group = Chem.MolFromSmiles(rng.choice(CHEMISTRY["groups"].split()), sanitize=False)
            if group.GetNumAtoms() <= left:
                mol = attach(mol, group, rng)
        elif step == "oxo":
            mol = attach(mol, Chem.MolFromSmiles("O"), rng, Chem.BondType.DOUBLE)
        elif step == "ylidene":
            mol = attach(mol, Chem.MolFromSmiles("C"), rng, Chem.BondType.DOUBLE)
        elif step == "ring":
            mol = close_ring(mol, rng)
        else:
            mol = raise_bond(mol, rng)
    # Through text: implicit hydrogens, aromaticity and ring information are then those of any reader.
    return Chem.MolFromSmiles(Chem.MolToSmiles(mol)) if 2 <= mol.GetNumAtoms() <= 9 else None


def sane_rings(mol: Chem.Mol) -> bool:
    """Return True for at most three rings of three to seven atoms, fused or bridged without absurd strain."""
    rings = [set(ring) for ring in mol.GetRingInfo().AtomRings()]
    if len(rings) > 3 or any(len(ring) > 7 for ring in rings):
        return False
    if any(sum(atom in ring for ring in rings) > 2 for ring in rings for atom in ring):
        return False
    if mol.HasSubstructMatch(FOUR_RING_DIENE):
        return False
    sp2 = {a.GetIdx() for a in mol.GetAtoms() if a.GetHybridization() == Chem.HybridizationType.SP2}
    sp2_carbon = {i for i in sp2 if mol.GetAtomWithIdx(i).GetSymbol() == "C"}
    for one, other in combinations(rings, 2):
        shared, small = one & other, min(len(one), len(other))
        if not shared:
            continue
        if len(shared) == 1 and len(one) + len(other) < 7:  # spiropentane
            return False
        large = max(len(one), len(other))
        if len(shared) == 2 and (large < 5 or (small < 5 and shared & sp2_carbon)):  # bicyclobutane, bicyclohexane
            return False
        if len(shared) > 2:  # bridged: bridgeheads of large enough rings, none of them sp2 (Bredt), amide N included
            heads = {
                i
                for i in shared
                if len({n.GetIdx() for n in mol.GetAtomWithIdx(i).GetNeighbors()} & (one | other)) == 3
            }
            if small < 5 or heads & sp2:
                return False
    return True


def sane(mol: Chem.Mol) -> bool:
    """Return True for a neutral molecule that passes every pattern, the rings and the limits on composition."""
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    carbons, halogens = symbols.count("C"), symbols.count("F") + symbols.count("Cl")
    others = len(symbols) - carbons - halogens
    if carbons == 0 or others > carbons + 1 or others > 5 or halogens > 4 or symbols.count("S") > 2:
        return False
    if symbols.count("Cl") > 2 or any(a.GetFormalCharge() or a.GetNumRadicalElectrons() for a in mol.GetAtoms()):
        return False
    if len(Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False)) > 3:
        return False
    return sane_rings(mol) and not any(mol.HasSubstructMatch(pattern) for pattern in UNWANTED)


def candidates(count: int, seed: int = SEED):
    """Yield `count` distinct canonical SMILES in the order found; the same for the same seed and RDKit."""
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        mol = grow(rng)
        if mol is None:
            continue
        smiles = Chem.MolToSmiles(mol)
        if smiles not in seen and sane(mol):
            seen.add(smiles)
            yield smiles


if __name__ == "__main__":
    RDLogger.DisableLog("rdApp.error")  # valence errors of rejected attempts
    found = list(candidates(COUNT))
    random.Random(SEED).shuffle(found)
    write_text(CANDIDATES, "\n".join(found) + "\n")
    print(f"{len(found)} candidates in {CANDIDATES}")
