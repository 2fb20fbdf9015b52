"""What an average over tautomers changes, as a page: the drawings of a molecule, the test error, the cost.

    OMP_NUM_THREADS=1 python -m experiments.extrapolation --blend     # trains the models
    OMP_NUM_THREADS=1 python -m experiments.tautomers

The models are those of `gtx train --kernel-parts substructures descriptors` on all rows of each set. For every test
molecule with several tautomers, two drawings are compared: as in the table, and the best other tautomer by RDKit's
score.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from experiments.runs import read_set
from experiments.summary import markdown
from gtx.data.public_datasets import load_public_dataset
from gtx.molecules.tautomers import enumerate_tautomers
from gtx.prediction import TautomerAveragingPredictor, load_predictor

SETS = (
    *("scaffold/esol", "scaffold/freesolv"),
    *(f"moleculeace/CHEMBL{number}_Ki" for number in (2835, 1862, 2034, 262, 231)),
    "moleculeace/CHEMBL4616_EC50",
)
MODELS = Path("build/extrapolation")
PAGE = Path(__file__).parent / "results" / "tautomers.md"
HEAD = """# What an average over tautomers changes

`gtx predict --average tautomers` with the models of `gtx train --kernel-parts substructures descriptors` (seed 0, one
core of an AMD EPYC) on the test molecules of each set. *Several*: share of the molecules with several tautomers. *Two
drawings*: root mean square difference of the predictions of two drawings of these molecules, that of the table and the
best other tautomer by RDKit's score. *Plain*: without the option. *Likeliest*: with it, the mean over the tautomers of
the highest score. *All*: the mean over all listed tautomers, 16 at most, which is what the option does not do. *ms*:
CPU time a molecule.

    OMP_NUM_THREADS=1 python -m experiments.extrapolation --blend
    OMP_NUM_THREADS=1 python -m experiments.tautomers

"""
HEADS = (
    "set | test molecules | several | two drawings, plain | two drawings, likeliest | RMSE, plain | RMSE, likeliest | "
    "RMSE, all | ms, plain | ms, likeliest"
)


def row(name: str) -> list[str]:
    """Measure a set."""
    known, table = load_public_dataset(name), read_set(name)
    tested = table[table["split"] == "test"]
    smiles, y = tested[known.smiles_column].tolist(), tested[known.targets[0]].to_numpy(float)
    plain = load_predictor(MODELS / name / "all" / "model.gtx", device="cpu")
    averaged, column = TautomerAveragingPredictor(plain), f"{known.targets[0]}_pred"
    found = [enumerate_tautomers(plain.header.featuriser, text) for text in smiles]
    several = np.array([len(each.texts) > 1 for each in found])
    drawings = [next((text for text in each.texts if text != each.smiles), each.texts[0]) for each in found]
    differences, errors, times = [], [], []
    for predictor in (plain, averaged):
        predictor.predict(smiles[:50])
        begin = time.process_time()
        first = predictor.predict(smiles)[column].to_numpy()
        times.append(f"{1000 * (time.process_time() - begin) / len(y):.1f}")
        second = predictor.predict(drawings)[column].to_numpy()
        differences.append(f"{rms((first - second)[several]):.2g}")
        errors.append(f"{rms(first - y):.3f}")
    owner = np.repeat(np.arange(len(y)), [len(each.texts) for each in found])
    each = plain.predict([text for one in found for text in one.texts])[column].to_numpy()
    errors.append(f"{rms(np.bincount(owner, each) / np.bincount(owner) - y):.3f}")
    return [name, f"{len(y):,}", f"{several.mean():.0%}", *differences, *errors, *times]


def rms(values: np.ndarray) -> float:
    """Compute the root mean square."""
    return float(np.sqrt(np.square(values).mean()))


def main() -> None:
    """Measure all sets and write the page."""
    cells = []
    for name in SETS:
        cells.append(row(name))
        print(*cells[-1], flush=True)
    PAGE.write_text(HEAD + "\n".join([*markdown(HEADS, "l" + "r" * 9, cells), ""]))


if __name__ == "__main__":
    main()
