"""A molecule's graph is read, its canonical SMILES written.

    python -m experiments.sequence.smiles --set xtb9
    python -m experiments.sequence.smiles --set zinc12k

The network reads gtx's atom and bond codes, whose stereochemistry is CIP labels, and nothing tells the order of the
atoms in the text. An answer counts if it is the same molecule: the same canonical SMILES with stereochemistry. How many
are the same without it, how many are the very text, and how many are no molecule is written down beside it.

SMILES need no labels, so besides the training rows of a set the network learns from their mirror images and from others
that are made: for xtb9 by the set's own generator from another seed, none of whose constitutions is among the rows of
validation or test; for ZINC-12k by hydrolysing the training molecules and condensing the products anew, after one pass
through the small molecules. Draws its learning curves to `experiments/results/sequence/smiles-<set>.svg`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from rdkit import Chem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

from experiments.sequence.hydrolysis import condensed
from experiments.sequence.hydrolysis_rule import products
from experiments.sequence.judging import canonical
from experiments.sequence.molecules import SETTING, MoleculePairs, Pair, train_and_write
from experiments.sequence.running import kept, options, publish
from experiments.xtb9.generate import candidates
from gtx.data import open_table
from gtx.data.named_sets import load_set
from gtx.molecules import read_smiles
from gtx.molecules.stereo import quietly

COLUMN = {"xtb9": "split_random", "zinc12k": "split"}
EPOCHS = {"xtb9": 12, "zinc12k": 10}
GROWN, CONDENSED = 40_000, 30_000  # molecules that are made, some of which are left out
LARGEST = 32  # heavy atoms of those that are condensed
STEREO, FLAT = "with stereochemistry", "without stereochemistry"
SEED = 20261121  # of the generator; that of xtb9 is another


def spelled(name: str) -> dict[str, list[str]]:
    """The canonical SMILES of each part of a set."""
    found = load_set(name)
    table = open_table(found.path, found.smiles_column)
    column = table.index(COLUMN[name])
    parts: dict[str, list[str]] = {}
    for row in table.rows:
        parts.setdefault(row.cells[column], []).append(canonical(row.text))
    return parts


def mirrored(smiles: str) -> str:
    """The canonical SMILES of the mirror image; of a molecule without handedness the same."""
    mol = read_smiles(smiles)
    with quietly():
        for atom in mol.GetAtoms():
            atom.InvertChirality()
        return canonical(Chem.MolToSmiles(mol))


def isomers(smiles: str, most: int, seed: int) -> list[str]:
    """Canonical SMILES of some stereoisomers of a constitution, drawn by the seed."""
    with quietly():
        options = StereoEnumerationOptions(onlyUnassigned=False, unique=True, maxIsomers=most, rand=seed)
        drawn = [Chem.MolToSmiles(each) for each in EnumerateStereoisomers(Chem.MolFromSmiles(smiles), options)]
    return sorted({canonical(each) for each in drawn})


def grown(count: int, forbidden: Iterable[str]) -> Iterator[str]:
    """Molecules as those of xtb9, two stereoisomers each where there are as many.

    Args:
        count: constitutions that are grown; those that are forbidden, or have been grown already, are left out.
        forbidden: SMILES; what shares a constitution with one of them.
    """
    out = {canonical(each, stereo=False) for each in forbidden}
    with quietly():
        found = list(candidates(count, SEED))
    for i, each in enumerate(found):
        if each not in out:
            yield from isomers(each, 2, i)


def task(name: str, runs: Path, rows: int | None = None) -> MoleculePairs:
    """What is learned on a set.

    Args:
        name: "xtb9" or "zinc12k".
        runs: folder to keep molecules in that are made.
        rows: of training, of the set's own; None for all.
    """
    parts = spelled(name)
    own, held = parts["train"][:rows], {*parts["val"], *parts["test"]}

    def condense() -> Iterator[str]:
        return condensed([each for each in map(products, own) if each], CONDENSED, SEED, LARGEST)

    small = kept(runs / f"grown-{GROWN}.smi", lambda: grown(GROWN, chain(*parts.values())))
    if name == "zinc12k":
        first = [*_with_mirrored(spelled("xtb9")["train"]), *small]
        texts = [*_with_mirrored(own), *kept(runs / f"condensed-{len(own)}-{CONDENSED}.smi", condense)]
    else:
        texts, first = [*_with_mirrored(own), *small], []
    kinds = [STEREO if set("@/\\") & set(each) else FLAT for each in parts["test"]]
    return MoleculePairs(_pairs(texts, held), _pairs(parts["val"]), _pairs(parts["test"]), kinds, _pairs(first, held))


def _with_mirrored(texts: Sequence[str]) -> Iterator[str]:
    yield from texts
    yield from map(mirrored, texts)


def _pairs(texts: Iterable[str], but: Container[str] = ()) -> list[Pair]:
    return [(each, each) for each in dict.fromkeys(texts) if each not in but]


def main() -> None:
    parser = options(__doc__, epochs=None)
    parser.add_argument("--set", choices=COLUMN, default="xtb9")
    read = parser.parse_args()
    read.epochs = read.epochs or EPOCHS[read.set]
    name = f"smiles-{read.set}"
    runs = read.runs / name
    found = train_and_write(task(read.set, runs, read.rows), SETTING.given(read), runs)
    test = found["test"]
    print(f"{name}: {test['same']:.1%} the same molecule, {test['same_constitution']:.1%} apart from stereochemistry")
    publish(name, f"smiles --set {read.set}", {read.set: found}, read)


if __name__ == "__main__":
    main()
