"""A molecule's graph is read, the SMILES of what water makes of its esters and amides is written.

    python -m experiments.sequence.hydrolysis

The rule is `hydrolysis_rule.py`. The molecules are those of public sets (xtb9, ZINC-12k, Tox21, BBBP, ESOL, FreeSolv)
with at least one ester or amide, one component and at most 14 heavy atoms, so that a network learns to write them in
minutes, without stereochemistry, which the rule does not touch; 500 of them, drawn at random, are the test, and 250
others the validation. An answer counts if every product is right: the same canonical SMILES. The network learns from
the rest and from molecules made of their products: an acid of one and an amine or alcohol of another, condensed; the
rule gives the answer. Nothing that is held out is among them.

Draws its learning curves to `experiments/results/sequence/hydrolysis.svg`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from rdkit import Chem

from experiments.sequence.hydrolysis_rule import products
from experiments.sequence.judging import canonical
from experiments.sequence.molecules import SETTING, MoleculePairs, Pair, train_and_write
from experiments.sequence.running import kept, options, publish
from gtx.data import open_table
from gtx.data.named_sets import load_set

SETS = ("xtb9", "zinc12k", "scaffold/tox21", "scaffold/bbbp", "scaffold/esol", "scaffold/freesolv")
LARGEST, TEST, VAL = 14, 500, 250
ACID = Chem.MolFromSmarts("[CX3](=O)[OX2H]")
BASE = Chem.MolFromSmarts("[$([NX3;!H0;+0;!$(N[C,S]=[O,N,S])]),$([OX2H][#6;!$([#6]=[O,N,S])])]")
"""An amine that is no amide, or an alcohol or phenol."""


def pool(sets: Sequence[str] = SETS) -> dict[str, str]:
    """Canonical SMILES, without stereochemistry, of all molecules of some sets that may serve, and their set."""
    found: dict[str, str] = {}
    for name in sets:
        entry = load_set(name)
        for row in open_table(entry.path, entry.smiles_column).rows:
            smiles = canonical(row.text, stereo=False)
            if smiles and "." not in smiles and serves(smiles):
                found.setdefault(smiles, name.split("/")[-1])
    return found


def serves(smiles: str) -> bool:
    """Whether a molecule is small enough and has something to hydrolyse."""
    return Chem.MolFromSmiles(smiles).GetNumAtoms() <= LARGEST and products(smiles) is not None


def condensed(answers: Sequence[str], count: int, seed: int, largest: int = LARGEST) -> Iterator[str]:
    """Esters and amides made of products: an acid of one answer and a base of another, drawn by the seed.

    Args:
        answers: SMILES of products, with dots between, as the rule gives them.
        count: how many to make.
        seed: of the draws.
        largest: heavy atoms, at most.
    """
    draw = random.Random(seed)
    parts = [Chem.MolFromSmiles(part) for part in sorted({part for answer in answers for part in answer.split(".")})]
    acids, bases = ([mol for mol in parts if mol.HasSubstructMatch(kind)] for kind in (ACID, BASE))
    made: set[str] = set()
    while len(made) < count:
        acid, base = draw.choice(acids), draw.choice(bases)
        if acid.GetNumAtoms() + base.GetNumAtoms() - 1 > largest:
            continue
        carbon, _, hydroxyl = draw.choice(acid.GetSubstructMatches(ACID))
        (atom,) = draw.choice(base.GetSubstructMatches(BASE))
        joined = Chem.RWMol(Chem.CombineMols(acid, base))
        joined.AddBond(carbon, acid.GetNumAtoms() + atom, Chem.BondType.SINGLE)
        joined.RemoveAtom(hydroxyl)
        smiles = canonical(Chem.MolToSmiles(joined))
        if smiles and smiles not in made:
            made.add(smiles)
            yield smiles


def task(more: int, runs: Path, rows: int | None = None, seed: int = 0) -> MoleculePairs:
    """What is learned.

    Args:
        more: molecules to make of the products.
        runs: folder to keep them in.
        rows: of training, of the sets' own; None for all.
        seed: decides which molecules are held out, and what is made.
    """
    found = pool()
    order = sorted(found)
    random.Random(seed).shuffle(order)
    test, val, own = order[:TEST], order[TEST : TEST + VAL], order[TEST + VAL :][:rows]
    known = {*test, *val, *own}
    file = runs / f"condensed-{len(own)}-{more}-{seed}.smi"
    made = kept(file, lambda: condensed([products(each) for each in own], more, seed))
    texts = [*own, *(each for each in made if each not in known and serves(each))]
    random.Random(seed).shuffle(texts)
    return MoleculePairs(*(_answered(some) for some in (texts, val, test)), [found[each] for each in test])


def _answered(texts: Sequence[str]) -> list[Pair]:
    return [(each, products(each)) for each in texts]


def main() -> None:
    parser = options(__doc__, epochs=12)
    parser.add_argument("--more", type=int, default=40_000, help="molecules to make of the products")
    read = parser.parse_args()
    runs = read.runs / "hydrolysis"
    found = train_and_write(task(read.more, runs, read.rows), SETTING.given(read), runs)
    print(f"hydrolysis: {found['test']['same']:.1%} of unseen molecules' products all right")
    publish("hydrolysis", f"hydrolysis --more {read.more}", {"hydrolysis": found | {"made": read.more}}, read)


if __name__ == "__main__":
    main()
