"""Quantum chemistry with coordinates: gtx's graph transformers and PyG's SchNet on the same rows.

    python -m experiments.qm --sets qm9-gap qm9-u0 qm7-energy --models gtx schnet --jobs 2

The sets: `qm9-gap` is the HOMO-LUMO gap and `qm9-u0` the atomisation energy at 0 K (QM9's own, U0 minus the atoms')
of 3,000 molecules of QM9, every 40th; `qm7-energy` is the atomisation energy (PBE0) of 7,101 molecules of QM7. All
models get atomic numbers and coordinates, nothing else; gtx finds bonds from the distances. Beside `gtx` and `schnet`
there are named models of gtx, of their usual size, which predict atom by atom; those that use no coordinates see the
bonds alone. The splits 80/10/10 are random, by seeds 0, 1 and 2, which are also the seeds of the runs. All models are
trained on the absolute error for as many epochs, with AdamW (peak rate 1e-3, SchNet 5e-4), a cosine schedule and
averaged weights; the best epoch on the validation rows is kept. For energies, a reference for each element is fitted to
the training rows by least squares and subtracted. SchNet has the layers of its paper. Energies are sums over atoms, the
gap is a mean. The scores cannot be compared with published tables of QM9: there are 2,400 training rows, and the sample
is not random. A run has one thread.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from experiments.coordinate_models import FAMILY, make
from experiments.models import fit_network
from experiments.qm_sets import SETS, SIZES
from experiments.recipe import options_of, print_scores, run_all
from experiments.runs import Run, execute
from gtx.training import TrainSettings

SETTINGS = {"epochs": 200, "jitter": 0.2, "batch_molecules": 32, "ema": 0.999, "threads": 1}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "gtx": {"channels": 96, "layers": 2, "pair_channels": 64, "dropout": 0.0},
    "schnet": {},
    **{name: {} for name in FAMILY},
}
TITLES = {"gtx": "gtx, full attention in space", "schnet": "SchNet of PyG"}


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; the exit status is 1 if one failed."""
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(ARGUMENTS), choices=list(ARGUMENTS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2], choices=range(3))
    parser.add_argument("--settings", type=json.loads, default={}, help=f"JSON, beside {json.dumps(SETTINGS)}")
    options = parser.parse_args(words)
    own = f" --settings {shlex.quote(json.dumps(options.settings))}" if options.settings else ""
    runs = []
    for split, name, model in product(options.splits, options.sets, options.models):
        command = f"python -m experiments.qm --sets {name} --models {model}{own} --splits {split}"
        runs.append(Run(SETS[name], model, split, 0, options.runs, command=command))
    work = partial(execute, fit=partial(fit_model, options=options), results=options.out)
    failed = run_all(runs, work, options)
    print_scores(runs, options.out)
    return int(failed)


def fit_model(run: Run, options: argparse.Namespace) -> tuple[np.ndarray, dict[str, Any]]:
    """Train one of the models on the absolute error, and predict all molecules."""
    arguments = {**SIZES, "extensive": run.public_set.target.extensive, **ARGUMENTS[run.model]}
    rate = {"lr": 5e-4} if run.model == "schnet" else {}
    settings = TrainSettings(**SETTINGS | rate | options.settings, seed=run.split, progress=False)
    title = TITLES.get(run.model, f"{run.model} of gtx")
    spec = {"name": run.model, "arguments": arguments}
    return fit_network(run, settings, spec, partial(make, run.model, **arguments), title)


if __name__ == "__main__":
    sys.exit(main())
