"""Candidates for the data set xtb9: molecules of 2 to 9 heavy atoms, grown at random and filtered.

A molecule starts as a chain or a ring and grows, by single atoms, functional groups, carbonyls, ring closures
and higher bond orders, until it reaches a size drawn beforehand. Growth knows valence alone; chemistry is in
`UNWANTED` (patterns no chemist would bottle) and `sane_rings` (strain). What passes both is kept once, as
canonical SMILES without stereochemistry. They are written in a seeded shuffle: every prefix is a fair sample.

    python -m experiments.xtb9.generate        # writes build/xtb9/candidates.smi
"""

from __future__ import annotations

import argparse
import random
from itertools import combinations
from pathlib import Path

from rdkit import Chem, RDLogger

SEED = 20190514
COUNT = 11_500

# Heavy atoms -> share of attempts. The small sizes hold few molecules and run dry, so the outcome leans to 9.
SIZES = {2: 0.01, 3: 0.01, 4: 0.02, 5: 0.05, 6: 0.09, 7: 0.17, 8: 0.27, 9: 0.38}

ATOMS = {"C": 10, "N": 2.2, "O": 2.4, "F": 0.7, "S": 0.6, "Cl": 0.6}


def words(text: str) -> list[str]:
    """The words of a text; a word that comes twice is drawn twice as often."""
    return text.split()


# Kekulé SMILES, so that growth need not know aromaticity.
AROMATIC = words("""
C1=CC=CC=C1 C1=CC=CC=C1 C1=CC=CC=C1 C1=CC=NC=C1 C1=CC=NC=C1 C1=CN=CN=C1 C1=CN=CC=N1 C1=CC=NN=C1
C1=COC=C1 C1=CSC=C1 C1=CNC=C1 C1=CN=CN1 C1=CNN=C1 C1=COC=N1 C1=CSC=N1 C1=CON=C1 C1=CSN=C1
C1=NN=CN1 C1=CNN=N1 C1=NN=CO1 C1=NN=CS1 C1=NOC=N1 C1=NSC=N1
""")
BICYCLIC = words("""
C1=CC=C2C(=C1)C=CN2 C1=CC=C2C(=C1)C=CO2 C1=CC=C2C(=C1)C=CS2 C1=CC=C2C(=C1)N=CN2 C1=CC=C2C(=C1)C=NN2
C1=CC=C2C(=C1)N=CO2 C1=CC=C2C(=C1)N=CS2 C1=CC=C2C(=C1)CCN2 C1=CC=C2C(=C1)CCO2 C1=CC=C2C(=C1)CCC2
C1=CN=C2C(=C1)C=CN2 C1=CC2=CN=CN2C=C1 C1=CC2=NC=CN2C=C1 C1=CC=C2C(=C1)OCO2 C1=CN2C=CSC2=N1
C1=CSC2=C1SC=C2 C1=CNC2=C1SC=C2 C1CN2C=CC=C2C1 C1CN2C=CN=C2C1 C1CCN2CCCC2C1 C1CCC2CCCC2C1 C1CC2CCC1C2
C1CC2CCC1N2 C1CC2CCC1O2 C1CN2CCC1CC2 C1CC2CCC1CC2
""")
SATURATED = words("""
C1CC1 C1CO1 C1CN1 C1CCC1 C1COC1 C1CNC1 C1CSC1 C1CCCC1 C1CCNC1 C1CCOC1 C1CCSC1 C1CC=CC1 C1CCCCC1 C1CCNCC1
C1CCOCC1 C1CNCCN1 C1COCCN1 C1COCCO1 C1CC=CCC1 C1CSCCN1 C1COCO1 C1CCCCCC1 C1CCNCCC1 C1=CCC=C1
O=C1CCCC1 O=C1CCCN1 O=C1CCCO1 O=C1CCCCN1 O=C1CCN1 O=C1NCCO1 O=C1CCC(=O)N1 O=C1NCCN1 O=C1C=CCCC1 C1=NCCN1
C1=NCCO1 O=C1C=CC=CN1 O=C1C=CNC=C1 O=C1C=CNC(=O)N1 O=C1C=CC=CO1 O=C1C=CN=CN1
""")
CHAIN = words("C C C CC CCC C=C C#C CC=O CC(N)=O CC(=O)O CC#N COC CSC CN CC(=O)OC")

# Attached by their first atom.
GROUPS = words("""
C C C CC C(C)C CCC C=C C#C C#N C#N C=O C(C)=O C(C)=O C(N)=O C(NC)=O C(=O)O C(=O)OC OC OC OCC O O N NC N(C)C CO
CN COC CC#N F F Cl Cl S SC S(C)(=O)=O S(N)(=O)=O S(C)=O C(F)(F)F C(F)F CF CCl OC(C)=O NC=O NC(C)=O NC(N)=O
NS(C)(=O)=O C=NO OC(F)(F)F C1CC1 C1CCC1 C1COC1 N1CCC1 C(=O)Cl SC#N N=C=O N=C=S C(N)=S C(N)=N C(C)(C)C
C=CC CC=C CC#C
""")

UNWANTED = {
    name: Chem.MolFromSmarts(smarts)
    for name, smarts in {
        # tautomers of something more stable
        "enol": "[#6;!a]=[#6;!a]-[OX2H,SX2H]",
        "enamine with N-H": "[#6;!a]=[#6;!a;!$(C=O)]-[NX3;!H0;!$(N-C=[O,S])]",
        "imidic acid": "[#7;X2]~[#6]-[OX2H,SX2H]",
        "thioacid": "C(=[O,S])[SX2H]",
        "imine with N-H": "[CX3;!$(C-[NX3])]=[NX2H]",
        "acyl imine with N-H": "[NX2H]=C-C=[O,N]",
        "tautomer of phenol": "O=C1[CX4;!H0]C=CC=C1",
        "tautomer of phenol, para": "O=C1C=C[CX4;!H0]C=C1",
        "tautomer of toluene": "C=C1[CX4,NX3;!H0]*=**=*1",
        "tautomer of toluene, para": "C=C1*=*[CX4,NX3;!H0]*=*1",
        "tautomer of azine": "[#6,#7]1=[#6,#7][#6,#7]=[#6,#7][CX4;!H0][CX4;!H0]1~[#7;X2]",
        "tautomer of azole": "[CX4;!H0]1[#7]=**=*1",
        "tautomer of azole, beta": "[CX4;!H0]1*=[#7]*=*1",
        "tautomer of azole, exocyclic": "C=C1[CX4,NX3;!H0]*=*[CX4,NX3,OX2,SX2]1",
        "ketene or ketenimine": "C=C=[N,O,S]",
        "tautomer of furanone": "[o,s,nX3]c-[OX2H,SX2H]",
        "tautomer of hydroquinone": "O=C1[CX4;!H0][#6]C(=O)C=C1",
        "aminofuran": "[NX3;!$(N-C=O)]-c1occc1",
        # loses water, ammonia, hydrogen halide or carbon dioxide
        "hemiacetal": "[CX4]([OX2H,SX2H])[OX2,NX3,SX2]",
        "aminal with N-H": "[CX4]([NX3;!H0;!$(N-[C,S]=O)])[OX2,NX3,SX2;!$(N-[C,S]=O)]",
        "aminomethyl ether": "[CX4;!R]([NX3;!$(N-[C,S]=O)])[OX2,NX3,SX2]",
        "orthoester": "[CX4]([OX2,NX3,SX2])([OX2,NX3,SX2])[OX2,NX3,SX2,F,Cl]",
        "geminal halogen and heteroatom": "[CX4;!$(C(F)F)]([F,Cl])[O,N,S,n]",
        "geminal chlorine and heteroatom": "[CX4](Cl)[O,N,S,n]",
        "fluoroalkyl amine": "[CX4](F)[NX3;!$(N-[C,S]=O)]",
        "carbamic or carbonic acid": "[O,N,S]-C(=[O,S,N])-[OX2H]",
        "acyl fluoride or haloimine": "[#6;!a](=[O,N,S])F",
        "acyl chloride on a heteroatom": "[#6;!a](=[O,N,S])([O,N,S,n])Cl",
        "formyl or imidoyl chloride": "[$([CX3;H1]=O),$(C=[N,S])]Cl",
        "acyl chloride with a nucleophile": "[C](=O)Cl.[N,O,S;!H0]",
        "isocyanate with a nucleophile": "N=C=[O,S].[N,O,S;!H0]",
        "vinyl halide next to heteroatom": "[#6;!a]([F,Cl])(=[#6;!a])[N,O,S]",
        "formic anhydride": "[CX3;H1](=O)[O,S]C=O",
        "carbamic anhydride": "[N,O,S]-C(=O)-[O,S]-C=O",
        "acyl sulfide of an acid": "C(=[O,S])-[SX2]-C=[O,S]",
        "acyl or geminal thiocyanate": "[$(C=[O,N]),$([CX4][O,N,S,F,Cl]),N,O,S]-S-C#N",
        "acyl sulfone": "[$(S=O)]-C=[O,S,N]",
        "alpha-hetero sulfone": "[$(S=O)]-[CX4]-[OX2H,NX3,SX2,Cl]",
        "N-acyl aldimine": "[CX3;H1;!$(C-[N,O,S])]=N-C=O",
        "N-O-C-N": "[#7]-O-[CX4]-[N,O,S,F,Cl]",
        "cyanohydrin twice": "[CX4](C#N)(C#N)[O,N,S]",
        "tricarbonyl": "C(=O)C(=O)C(=O)",
        "bisformyl": "[CX3;H1](=O)[CX3;H1]=O",
        "aldehyde and primary amine": "[CX3;H1;!$(C-[N,O])](=O).[NX3;H2;!$(N-[C,S]=[O,N,S])]",
        "triacylamine": "[NX3](C=O)(C=O)C=O",
        # bonds between heteroatoms
        "peroxide": "O-O",
        "N-N-N": "[#7;!a]~[#7]~[#7]",
        "N4": "[#7]~[#7]~[#7]~[#7]",
        "three N-N": "[N;!a]-[#7].[N;!a]-[#7].[N;!a]-[#7]",
        "N-S or O-S outside sulfonyl": "[SX2;!a]~[#7,O]",
        "thionitroso": "[#16X1]~[#7]",
        "S-S-S": "[#16]~[#16]~[#16]",
        "disulfane": "[SX2H]-[#16]",
        "halogen on a heteroatom": "[F,Cl]-[#7,O,$([#16;!$(S(=O)=O)])]",
        "O-N-O": "O~N~O",
        "N-O-N": "N-O-[#7,S]",
        "N-O-C=O": "[#7]-O-C=[O,N,S]",
        "O-N-N": "[OX2]-[#7;!a]-[#7]",
        "O on aromatic N": "[OX2,NX3,S;!a]-[n]",
        "hydroxylamine": "[NX3;!$(N-C=O)]-[OX2H]",
        "nitroso": "N=O",
        "hydrazine twice": "[NX3;!$(N-C=O)]-[NX3;!$(N-C=O)]-*-[#7,O]",
        "azo": "N=N",
        "sulfur(IV) but sulfoxide": "[#16;v4;!$([SX3](=O)([#6])[#6])]",
        "sulfur(VI) but sulfone": "[#16;v6;!$([SX4](=O)(=O)[#6])]",
        "sulfonyl with two halogens": "[#16](=O)(=O)([F,Cl])[F,Cl,O,N]",
        "thiocarbonyl but thioamide": "[#6;!$(C-[#7]);!a]=S",
        "exocyclic aromatic thione": "c=S",
        "thiocarbonyl twice": "C=S.C=S",
        # unsaturation out of place
        "heteroatom on a triple bond": "C#C-[N,O,S,n,F,Cl]",
        "cyanate": "N#C-[O,F,Cl,n]",
        "allene": "C=C=C",
        "diyne": "C#CC#C",
        "carbodiimide": "N=C=N",
        "isocyanate on a heteroatom": "[N,O,S,n]-N=C=[O,S]",
        "triple bond in a ring": "[R]#[R]",
        "cumulene in a ring": "[R]=[R]=*",
        "cyclopentadienone": "O=C1C=CC=C1",
        "fulvene": "*=C1[C,N]=[C,N]*=*1",
        "azadiene N=C-C=N open": "[NX2;!R]=[CX3;!R]-[CX3;!R]=[NX2;!R]",
        "1H-azepine": "[NX3,OX2,SX2]1-*=*-*=*-*=*1",
        "dihydrodiazine antiaromatic": "[NX3,OX2,SX2]1-*=*-[NX3,OX2,SX2]-*=*1",
        "acyclic imine of formaldehyde": "[CX3;H2]=N",
        "N-vinyl imine": "C=C-[NX2]=C",
        "amidine twice": "[NX2]=C.[NX2]=C.[NX2]=C",
        # strain
        "sp2 in a three-ring": "[r3]=*",
        "aromatic three- or four-ring": "[a;r3,r4]",
        "two heteroatoms in a three-ring": "[!#6]1~[!#6]~*1",
        "adjacent heteroatoms in a four-ring": "[!#6]1~[!#6]~*~*1",
        "unsaturated four-ring with heteroatom": "*1=*~*~[!#6]1",
        "C=N in a four-ring": "[#6]1=[#7]~*~*1",
        "crowded unsaturated four-ring": "*=*1~*(=*)~*~*1",
        "heteroatom and sp2 in a four-ring": "[O,S]1~C(=*)~*~*1",
        "three-ring acetal": "[N,O,S;r3]1[#6]([N,O,S,F,Cl])[#6]1",
    }.items()
}
FOUR_RING_DIENE = Chem.MolFromSmarts("*1=**=*1")


def pick(rng: random.Random, weights: dict):
    """A key drawn with probability in proportion to its value."""
    return rng.choices(list(weights), list(weights.values()))[0]


def open_atoms(mol: Chem.RWMol, hydrogens: int = 1) -> list[int]:
    """Indices of atoms that carry at least `hydrogens` implicit hydrogens."""
    mol.UpdatePropertyCache(strict=False)
    return [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetNumImplicitHs() >= hydrogens]


def attach(
    mol: Chem.RWMol, group: Chem.Mol, rng: random.Random, order: Chem.BondType = Chem.BondType.SINGLE
) -> Chem.RWMol:
    """Bonds the first atom of `group` to a random atom with free valence; without one, changes nothing."""
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
    """Bonds two atoms with free valence that are 2 to 6 bonds apart, rings of five and six preferred."""
    distance = Chem.GetDistanceMatrix(mol, force=True)
    weights = {2: 0.5, 3: 0.5, 4: 4, 5: 4, 6: 0.6}
    pairs = {(i, j): weights.get(int(distance[i, j]), 0) for i, j in combinations(open_atoms(mol), 2)}
    if sum(pairs.values()) == 0:
        return mol
    mol.AddBond(*pick(rng, pairs), Chem.BondType.SINGLE)
    return mol


def raise_bond(mol: Chem.RWMol, rng: random.Random) -> Chem.RWMol:
    """Makes a single bond between two atoms with hydrogens double, or a double bond triple."""
    sites = set(open_atoms(mol))
    bonds = [b for b in mol.GetBonds() if {b.GetBeginAtomIdx(), b.GetEndAtomIdx()} <= sites]
    if bonds:
        bond = rng.choice(bonds)
        single = bond.GetBondType() == Chem.BondType.SINGLE
        bond.SetBondType(Chem.BondType.DOUBLE if single else Chem.BondType.TRIPLE)
    return mol


def grow(rng: random.Random) -> Chem.Mol | None:
    """One random molecule of a random size, sanitised but not yet judged; None where valence forbids it."""
    size = pick(rng, SIZES)
    start = pick(rng, {"aromatic": 0.40, "bicyclic": 0.10, "saturated": 0.22, "chain": 0.28})
    cores = {"aromatic": AROMATIC, "bicyclic": BICYCLIC, "saturated": SATURATED, "chain": CHAIN}[start]
    mol = Chem.RWMol(Chem.MolFromSmiles(rng.choice(cores), sanitize=False))
    for _ in range(30):
        left = size - mol.GetNumAtoms()
        if left <= 0:
            break
        step = pick(rng, {"atom": 0.40, "group": 0.36, "oxo": 0.07, "ylidene": 0.01, "ring": 0.10, "bond": 0.06})
        if step == "atom":
            mol = attach(mol, Chem.MolFromSmiles(pick(rng, ATOMS)), rng)
        elif step == "group":
            group = Chem.MolFromSmiles(rng.choice(GROUPS), sanitize=False)
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
    """At most three rings of three to seven atoms, fused or bridged without absurd strain."""
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
    """True for a neutral molecule that passes every pattern, the rings and the limits on composition."""
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    carbons, halogens = symbols.count("C"), symbols.count("F") + symbols.count("Cl")
    others = len(symbols) - carbons - halogens
    if carbons == 0 or others > carbons + 1 or others > 5 or halogens > 4 or symbols.count("S") > 2:
        return False
    if symbols.count("Cl") > 2 or any(a.GetFormalCharge() or a.GetNumRadicalElectrons() for a in mol.GetAtoms()):
        return False
    if len(Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False)) > 3:
        return False
    return sane_rings(mol) and not any(mol.HasSubstructMatch(pattern) for pattern in UNWANTED.values())


def candidates(count: int, seed: int = SEED):
    """Yields `count` distinct canonical SMILES in the order found; the same for the same seed and RDKit."""
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        mol = grow(rng)
        if mol is None:
            continue
        smiles = Chem.MolToSmiles(mol)
        if smiles not in seen and sane(mol):
            seen.add(smiles)
            yield smiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path("build/xtb9/candidates.smi"))
    args = parser.parse_args()
    RDLogger.DisableLog("rdApp.error")  # valence errors of rejected attempts
    found = list(candidates(args.count, args.seed))
    random.Random(args.seed).shuffle(found)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("\n".join(found) + "\n")
    print(f"{len(found)} candidates in {args.out}")


if __name__ == "__main__":
    main()
