"""Pretrain the foundation on a labelled corpus, and write it as a model file.

    OMP_NUM_THREADS=1 python -m experiments.foundation.pretrain corpus.smi.xz --first 220000 --epochs 3

It reads what `experiments.foundation.labels` wrote. The same command goes on from the last whole epoch, so that
`timeout 9m` before it makes pieces of nine minutes. The encoder is the default graph transformer without descriptors or
counts at its readout, of which models that start from it have their own.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from experiments.foundation.labels import LABELS, OUT, read_corpus, read_labels
from experiments.runs import machine
from gtx.data import MoleculeStore, featurise
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, save_model
from gtx.tasks import Regression
from gtx.training import TrainSettings, fit

HELD_OUT = 2_000
TUNING = {"rates": {"all": 0.1, "head": 1.0, "readout.substructures": 1.0}}
"""The default of fine-tuning, see `gtx.workflow.PretrainedModel`: new weights have the whole rate."""


def labelled(args: argparse.Namespace) -> tuple[MoleculeStore, Regression]:
    """Read the molecules with their labels, as far as these reach, and make the task."""
    labels = read_labels(args.out / "labels", args.first)
    texts, bare = read_corpus(args.corpus, len(labels.error)), Featuriser(descriptors=False)
    found = featurise(bare, texts, cache=args.out / "cache", workers=0, progress=True, smiles=False)
    y = labels.molecule.astype(float)[found.good]
    varies = np.nanstd(y, 0) > 0
    return found.store.with_targets(y[:, varies]), Regression(
        tuple(np.array(LABELS)[varies].tolist()), element_reference=False
    )


def winsorised(y: Tensor, task: Regression, limit: float = 6.0) -> Tensor:
    """Clip labels `[M, T]` to `limit` standard deviations from their mean; NaN stays NaN."""
    scaler = task.scaler
    return y.clamp(scaler.mean - limit * scaler.sd, scaler.mean + limit * scaler.sd)


def main() -> None:
    """Pretrain, and write the model file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--first", type=int, default=10**9, help="molecules from the top of the corpus")
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--name", default="foundation")
    args = parser.parse_args()
    store, task = labelled(args)
    order = np.random.default_rng(0).permutation(len(store))  # the corpus is shuffled, this is for one that is not
    aside = min(HELD_OUT, len(store) // 10)
    val, train = store.subset(order[:aside]), store.subset(order[aside:])
    featuriser = Featuriser(descriptors=False)
    task = task.fit(train)
    train, val = (part.with_targets(winsorised(part.y, task)) for part in (train, val))
    arguments = {
        "out_channels": task.objective.out_channels,
        "atom_sizes": list(featuriser.atom_sizes),
        "bond_sizes": list(featuriser.bond_sizes),
        "coordinates": False,
        "num_descriptors": 0,
        "channels": args.channels,
        "layers": args.layers,
        "substructures": None,
        "zero_head": True,
    }
    spec = {"name": "standard", "arguments": arguments}
    settings = TrainSettings(
        epochs=args.epochs,
        batch_molecules=args.batch,
        batch_pairs=200_000,
        lr=args.lr,
        clip=0.5,
        ema=0.999,
        seed=args.seed,
        threads=args.threads,
        warmup=0.02,
    )
    marks = {"model": spec, "molecules": len(train)}
    (member,) = fit(partial(build_model, spec), task, train, val, settings, args.out / args.name, marks=marks)
    facts = {
        "molecules": len(train),
        "epochs": args.epochs,
        "seed": args.seed,
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in member.history)),
        "machine": machine(args.threads)["processor"],
        "r2": member.history[member.best_epoch - 1]["val_r2"],
    }
    header = ModelFileHeader(
        task, featuriser, spec, settings=settings.decisive() | {"tuning": TUNING, "pretraining": facts}
    )
    save_model(args.out / f"{args.name}.gtx", [member.model], header, half=True)
    print(f"epoch {member.best_epoch}, score {member.best_score:.4f}: {args.out / args.name}.gtx")


if __name__ == "__main__":
    main()
