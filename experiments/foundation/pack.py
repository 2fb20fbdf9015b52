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
from gtx.base.files import atomic_file, write_text
from gtx.prediction.foundation import read_model_card
from gtx.prediction.model_file import read_model

FOLDER = Path(gtx.__file__).parent / "prediction" / "foundation"
MOST = 10 * 2**20  # bytes
CORPUS = (
    "{molecules:,} molecules to learn from and others held out: the first of a shuffled list of 451,455 distinct "
    "neutral parents (largest fragment, 4 to 100 heavy atoms, stereochemistry kept) out of ZINC250k, MUV (PubChem) and "
    "two pieces of ChEMBL. The list itself is not passed on."
)
TRAINING = (
    "{epochs} epochs, seed {seed}, {minutes:.0f} minutes of CPU ({machine}); R² of the labels of held-out molecules, "
    "mean over labels, {r2:.3f}"
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
    card = read_model_card() | {  # what is left out, labels and licence are written there by hand
        "sha256": hashlib.sha256(content).hexdigest(),
        "corpus": CORPUS.format(**facts),
        "training": TRAINING.format(minutes=facts["cpu_seconds"] / 60, **facts),
        "weights": f"{sum(p.numel() for p in member.parameters()):,}, as float16",
    }
    with atomic_file(FOLDER / "foundation.gtx") as file:
        file.write(content)
    write_text(FOLDER / "foundation.json", json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    print((FOLDER / "foundation.gtx").relative_to(ROOT))


if __name__ == "__main__":
    main()
