"""ZINC-12k (Dwivedi et al. 2020, arXiv:2003.00982): mean absolute error of penalised logP, without descriptors.

    python -m experiments.zinc --sets graphs --seeds 0 --hours 3
    python -m experiments.zinc --sets graphs --seeds 0 --hours 0.5 --settings '{"batch_molecules": 128}'    # on a GPU
    python -m experiments.zinc --sets smiles --seeds 0 1 2 --epochs 300
    python -m experiments.zinc --sets smiles --rivals mean ridge-counts forest-counts gine gps chemprop

`graphs` are the graphs of the benchmark: 28 atom types and 3 bond types, nothing else; gtx computes common rings and
counts of substructures from them. `smiles` has gtx's own features of atoms and bonds, from the SMILES of the same
molecules. Descriptors are not allowed, because logP is a term of the label. The model has at most 500,000 weights, as
the benchmark demands, is trained on the absolute error, and its batches hold molecules of similar size. The epoch is
chosen on the validation rows; the test rows are scored once, at the end.

On a GPU, if there is one, the same commands train there. `--hours` trains on a few batches to find the number of
epochs for this time, with the given number of threads. A run that was stopped continues with the same command, a
finished one is not repeated. The losses and validation scores of all epochs so far are in
`runs/<set>/<run>/members/0/log.csv`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from experiments import archive, recipe
from experiments.jobs import Job, job_options, run_jobs
from experiments.on_store import Molecules, Study, execute
from experiments.public_sets import PublicSet, Run
from experiments.time_budget import epochs_for
from experiments.zinc_graphs import SIZES, graphs
from gtx.data.named_sets import load_set
from gtx.dataset import load
from gtx.models import ARCHITECTURES
from gtx.tasks import Regression
from gtx.training import TrainSettings

SETS = {
    "graphs": PublicSet("zinc12k", "mae", ("split",), "zinc12k-graphs"),
    "smiles": PublicSet("zinc12k", "mae", ("split",), "zinc12k", featuriser={"descriptors": False}),
}
MOST = 500_000  # weights
RIVALS = ("mean", "ridge-counts", "forest-counts", "boosting-counts", "gine", "gps", "chemprop")
"""Of `experiments.contenders`, those that can do without descriptors."""
ARGUMENTS = {"channels": 64, "layers": 8, "heads": 8, "steps": 16, "dropout": 0.0, "attention_dropout": 0.2}
SEES = {
    "graphs": {
        "encodings": ["bonds", "path", "walk", "degree", "ring"],
        "substructures": {"folded": 1024, "dropout": 0.5},
    },
    "smiles": {},
}
"""What else the model is shown: the atoms of the benchmark's own graphs say nothing of rings."""
SETTINGS = {"jitter": 0.2, "batch_molecules": 32, "ema": 0.999}


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; the exit status is 1 if one failed."""
    options = _read(words)
    requested = list(product(options.seeds, options.sets, options.rivals or [options.name]))
    failed = run_jobs([_job(*one, options) for one in requested], options, ["--no-progress"])
    for seed, name, model in requested:
        if (result := archive.run_named(options.out, SETS[name].folder, f"{model}-{seed}")) is not None:
            scores = " ".join(f"{part} {result[part]['mae']:.4f}" for part in ("train", "val", "test"))
            title = f"{SETS[name].folder:15} {model}-{seed}"
            print(f"{title}  MAE {scores}  {result['seconds'] / 3600:.2f} h")
    return bool(failed)


def _job(seed: int, name: str, model: str, options: argparse.Namespace) -> Job:
    run, command = Run(SETS[name], model, 0, seed), _command(name, model, seed, options)

    def work() -> None:
        if not options.rivals:
            execute(study(name, seed, options), options.out, options.runs)
        elif archive.run_named(options.out, *run.key) is None:
            recipe.execute(run, command, options.out, options.runs)

    return Job(" ".join(run.key), command, work)


def study(name: str, seed: int, options: argparse.Namespace) -> Study:
    """The run of one set and seed."""
    run = Run(SETS[name], options.name, 0, seed)
    molecules, sizes = (of_graphs if name == "graphs" else of_smiles)(options.runs)
    arguments = ({**ARGUMENTS, **SEES[name]} if options.model == "standard" else {}) | options.model_arguments
    spec = {"name": options.model, "arguments": {"out_channels": 1, **sizes, **arguments}}
    task = Regression(molecules.names, loss="mae")
    make = partial(ARCHITECTURES[options.model].make, **spec["arguments"])
    chosen = {**SETTINGS, **options.settings, "seed": seed, "threads": options.threads, "progress": options.progress}
    settings = TrainSettings(**chosen)
    epochs = options.epochs
    if epochs is None:
        train = molecules.store.subset(molecules.split["train"])
        epochs = epochs_for(options.hours, run.folder(options.runs), train, make, task, settings)
    settings = TrainSettings(**chosen, epochs=epochs)
    shape = ", ".join(f"{k} {v}" for k, v in arguments.items() if k in ("layers", "channels"))
    title = f"gtx, {options.model}, {shape}, {epochs} epochs, {options.threads} thread{'s' * (options.threads > 1)}"
    return Study(run, molecules, task, make, spec, settings, title, _command(name, options.name, seed, options), MOST)


def of_graphs(runs: Path) -> tuple[Molecules, dict[str, Any]]:
    """The benchmark's graphs, and how many codes there are."""
    return graphs(load_set("zinc12k").path), SIZES


def of_smiles(runs: Path) -> tuple[Molecules, dict[str, Any]]:
    """The same molecules with gtx's own features, no descriptors."""
    data = SETS["smiles"].data(0)
    dataset = load(data, runs / "cache")
    sizes = {"atom_sizes": list(data.featuriser.atom_sizes), "bond_sizes": list(data.featuriser.bond_sizes)}
    return Molecules(dataset.store, dataset.split, dataset.rows, ["y"], Path(data.data)), sizes


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rivals", nargs="+", default=[], choices=RIVALS, help="in place of gtx; from SMILES alone")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--hours", type=float, default=3.0, help="of wall time a run; default 3")
    length.add_argument("--epochs", type=int, help="in place of hours")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", default="gtx", help="of the model, in results; default gtx")
    parser.add_argument(
        "--model", type=_architecture, default="standard", help="a function of gtx.models; default standard"
    )
    beside = f"{json.dumps(ARGUMENTS)} and, for graphs, {json.dumps(SEES['graphs'])}"
    parser.add_argument("--model-arguments", type=json.loads, default={}, help=f"JSON, beside {beside}")
    parser.add_argument("--settings", type=json.loads, default={}, help=f"JSON, beside {json.dumps(SETTINGS)}")
    parser.add_argument("--no-progress", dest="progress", action="store_false", help="show no bar")
    job_options(parser)
    options = parser.parse_args(words)
    options.here |= options.jobs == 1  # so that the bar is seen
    if options.rivals and options.sets != ["smiles"]:
        parser.error("--rivals read SMILES: expected --sets smiles")
    return options


def _architecture(name: str) -> str:
    if name not in ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(ARCHITECTURES)}, got {name!r}")
    return name


def _command(name: str, model: str, seed: int, options: argparse.Namespace) -> str:
    if options.rivals:
        return f"python -m experiments.zinc --sets {name} --rivals {model} --seeds {seed}"
    length = f"--hours {options.hours:g}" if options.epochs is None else f"--epochs {options.epochs}"
    words = [f"python -m experiments.zinc --sets {name} {length} --threads {options.threads}"]
    words += [f"--name {options.name}"] * (options.name != "gtx")
    words += [f"--model {options.model}"] * (options.model != "standard")
    given = {"model-arguments": options.model_arguments, "settings": options.settings}
    words += [f"--{word} '{json.dumps(value)}'" for word, value in given.items() if value]
    return " ".join([*words, f"--seeds {seed}"])  # last, where the page of results replaces it


if __name__ == "__main__":
    sys.exit(main())
