"""How large a batch may be, and how the learning rate follows it: scores on validation rows, test rows are not used.

    python -m experiments.batch_rate --jobs 2
    python -m experiments.batch_rate --factors 1 2 4 8 16 32 --repeats 0 1 2 3 4

A GPU is fastest with large batches. Each run holds `factor` times the molecules of the default batch, and as many times
its pairs of atoms. For the same epochs it has as many times fewer steps. The peak of the learning rate is the default
times factor^p: `same` (p = 0), `root` (p = 1/2, as the noise of Adam's steps asks for; Malladi et al. 2022,
arXiv:2205.10287) or `linear` (p = 1; Goyal et al. 2017, arXiv:1706.02677). `--average follows` also takes the decay of
the averaged weights to the power of the factor, so that the average is over as many epochs as before.

Everything else is the default of `gtx train`; `--size small` takes a small model, for want of a GPU. A repeat is the
seed and, of MAT's sets, the split; of ZINC-12k it draws the training rows. The score is of the epoch kept, the best
of the second half. A factor is compared with factor 1 of the same repeat: the difference is the geometric mean of the
ratios ± its standard error over the repeats, and above 0 is worse. A finished run is not repeated. `--table` writes the
page without training.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import archive, mat, zinc
from experiments.archive import RESULTS, ROOT
from experiments.jobs import Job, at_least_one, job_options, run_jobs
from experiments.on_store import predict
from experiments.public_sets import LoadedRun, PublicSet, Run
from experiments.record import circumstances

FACTORS = (1, 4, 8, 16)
"""How many times the default batch."""
RATES = {"same": 0.0, "root": 0.5, "linear": 1.0}
"""The power of the factor by which the learning rate grows."""
AVERAGES = {"stays": False, "follows": True}
"""Whether the decay of the averaged weights is taken to the power of the factor."""
SIZES = {"default": {}, "small": {"layers": 2, "channels": 32, "heads": 4}}
"""Of the model: that of `gtx train`, or one that is quick without a GPU."""
REPEATS = (0, 1)
FOUND = """## What the runs say

With the same epochs no larger batch is safe. ZINC-12k, whose 675 steps are too few already, has an error higher by 20
to 62 % with × 4 and by 59 to 103 % with × 8 (one repeat); there `linear` is the best rate and `same` the worst.
FreeSolv has 2 to 6 % more with × 4, which is within the scatter, 5 to 11 % more with × 8 and 15 % more with × 16. ESOL
has no difference beyond the scatter up to × 8. So the default batch stays, on a GPU too. No one rate suits a larger
batch: on FreeSolv `same` is the least bad with × 8. Whether more epochs make up for it was not measured. `batch_pairs`
must grow with the batch, or it is what limits the batch.

The runs are of the small model (`--size small`, one thread of a CPU; runs.csv has the machine), with one or two
repeats. The default model, the average that follows and more repeats were not run. The grid has gaps: which
runs to make last, and that ZINC-12k has one repeat, was decided with the first scores in sight. All runs were made on
the way to this recipe; `commit` in runs.csv is the one it was begun from, put there afterwards.
"""
"""A person's reading of the runs at hand, for the page."""


class Budget(NamedTuple):
    """A public set, and how long a model learns it."""

    public_set: PublicSet
    rows: int  # training rows at most
    epochs: int


SETS = {
    "freesolv": Budget(mat.SETS["freesolv"], 2000, 60),
    "esol": Budget(mat.SETS["esol"], 2000, 60),
    "zinc12k": Budget(zinc.SETS["smiles"], 2000, 15),
}


class Choice(NamedTuple):
    """How batch, learning rate and average are changed."""

    factor: int
    rate: str
    average: str

    @property
    def name(self) -> str:
        """For the tables of results."""
        return f"{self.factor}-{self.rate}" + f"-{self.average}" * (self.average != "stays")

    @property
    def order(self) -> tuple[int, bool, float]:
        """Of the lines of a table."""
        return self.factor, AVERAGES[self.average], RATES[self.rate]

    def settings(self, rows: int, **others: Any) -> Any:
        """The settings of training, for so many training rows; `others` as in `gtx.training.TrainSettings`."""
        from gtx.training import TrainSettings

        usual = TrainSettings(**others)
        return replace(
            usual,
            batch_molecules=self.factor * usual.molecules_per_batch(rows),
            batch_pairs=self.factor * usual.batch_pairs,
            lr=usual.lr * self.factor ** RATES[self.rate],
            ema=usual.ema**self.factor if AVERAGES[self.average] else usual.ema,
        )


def train_and_record(
    name: str, size: str, choice: Choice, repeat: int, results: Path = RESULTS, runs: Path = ROOT / "runs"
) -> None:
    """Train one model in this process, and keep its score on the validation rows; goes on where it was stopped.

    Args:
        name: of the set, see `SETS`.
        size: of the model, see `SIZES`.
        choice: the batch and what follows it.
        repeat: the seed, and the split or the sample of training rows.
        results: the folder of all results.
        runs: where runs keep what they need to go on.
    """
    from gtx.models import build_model
    from gtx.training import fit
    from gtx.workflow.specs import model_spec

    public_set, rows, epochs = SETS[name]
    several = len(public_set.splits) > 1
    loaded = LoadedRun.of(Run(public_set, "gtx", repeat if several else 0, repeat), runs)
    dataset, metric = loaded.dataset, public_set.metric
    drawn = np.random.default_rng(repeat).permutation(dataset.split["train"])[:rows]
    train, val = (dataset.store.subset(part) for part in (np.sort(drawn), dataset.split["val"]))
    given = {"model_arguments": SIZES[size], "epochs": epochs, "seed": repeat, "threads": 1, "progress": False}
    settings = choice.settings(len(train), **given)
    spec = model_spec(settings, loaded.data.featuriser, dataset.task, len(train))
    folder = runs / "batch_rate" / public_set.folder / _name(size, choice, repeat)
    begun = time.process_time()
    marks = {"train": drawn.tolist(), "model": spec}
    (member,) = fit(partial(build_model, spec), dataset.task, train, val, settings, folder, marks=marks)
    seconds = time.process_time() - begun
    score = dataset.task.evaluate(dataset.y[dataset.split["val"]], predict(member, val))[metric]
    result = {
        "recipe": "batch_rate",
        "folder": public_set.folder,
        "name": _name(size, choice, repeat),
        "set": public_set.name,
        "split": loaded.run.public_set.splits[loaded.run.split],
        "model": "gtx",
        "seed": repeat,
        "metric": metric,
        "rows": {"train": len(train), "val": len(val)},
        "val": {metric: score},
        "seconds": round(seconds, 1),
        "best_epoch": member.best_epoch,
        "settings": choice._asdict()
        | {"size": size}
        | {k: getattr(settings, k) for k in ("epochs", "batch_molecules", "batch_pairs", "lr", "ema")},
        **circumstances(_command(name, size, choice, repeat)),
    }
    archive.put(results, result)


class Line(NamedTuple):
    """A choice on one set, beside factor 1 of the same repeats.

    Attributes:
        choice: the batch and what follows it.
        scores: on the validation rows, one per repeat.
        excess: the logarithm of each score over that of factor 1; above 0 is worse.
        seconds: of the processor, the mean.
        steps: of the optimiser, of the first repeat, if all batches are full.
    """

    choice: Choice
    scores: list[float]
    excess: list[float]
    seconds: float
    steps: int


def compared(folder: str, size: str, results: Path = RESULTS) -> list[Line]:
    """What there is of a set and a size; runs whose repeat lacks factor 1 are left out."""
    found: dict[Choice, dict[int, dict[str, Any]]] = {}
    for run in archive.runs(results, "batch_rate", folder):
        if run["settings"]["size"] != size:
            continue
        choice = Choice(*(run["settings"][field] for field in Choice._fields))
        found.setdefault(choice, {})[run["seed"]] = run
    usual = found.get(Choice(1, "same", "stays"), {})
    lines = []
    for choice, each in found.items():
        both = [(each[repeat], usual[repeat]) for repeat in sorted(each.keys() & usual.keys())]
        if both:
            scores = [(_score(one), _score(other)) for one, other in both]
            excess = [math.log(one / other) for one, other in scores]
            seconds = statistics.mean(one["seconds"] for one, _ in both)
            settings, rows = both[0][0]["settings"], both[0][0]["rows"]["train"]
            steps = settings["epochs"] * math.ceil(rows / settings["batch_molecules"])
            lines.append(Line(choice, [one for one, _ in scores], excess, seconds, steps))
    return sorted(lines, key=lambda line: line.choice.order)


def _score(run: dict[str, Any]) -> float:
    return run["val"][run["metric"]]


def percent(excess: Sequence[float]) -> str:
    """The mean of logarithms of ratios as a percentage, ± its standard error."""
    mean = f"{100 * math.expm1(statistics.mean(excess)):+.1f} %"
    return mean + (f" ± {100 * statistics.stdev(excess) / math.sqrt(len(excess)):.1f}" if len(excess) > 1 else "")


def batch_table(results: Path) -> str:
    """What has been measured, as Markdown."""
    return "\n".join(line for size in SIZES for line in _size_section(size, results))


def _size_section(size: str, results: Path) -> list[str]:
    """The sets apart, since a set that lacks steps has quite another answer than one that is learnt by heart."""
    text = []
    for public_set, rows, epochs in SETS.values():
        lines = compared(public_set.folder, size, results)
        if not lines:
            continue
        text += [
            f"### {public_set.name}",
            "",
            f"At most {rows:,} training rows, {epochs} epochs. The validation {public_set.metric.upper()} of each "
            "repeat; lower is better.",
            "",
            "| batch | rate | average | steps, about | validation | against factor 1 | CPU seconds |",
            "|--:|---|---|--:|---|--:|--:|",
        ]
        for line in lines:
            factor, rate, average = line.choice
            each = " ".join(f"{score:.3f}" for score in line.scores)
            gap = percent(line.excess) if factor > 1 else ""
            text.append(f"| × {factor} | {rate} | {average} | {line.steps} | {each} | {gap} | {line.seconds:.0f} |")
        text.append("")
    changed = " ".join(f"{name} {value}" for name, value in SIZES[size].items())
    return [f"## The {size} model" + f" ({changed})" * bool(changed), "", *text] if text else []


def choices(factors: Sequence[int], rates: Sequence[str], averages: Sequence[str]) -> Iterator[Choice]:
    """The grid; factor 1 changes nothing, so it stands there once."""
    if 1 in factors:
        yield Choice(1, "same", "stays")
    for factor, average, rate in product(factors, averages, rates):
        if factor != 1:
            yield Choice(factor, rate, average)


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; then the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--size", default="default", choices=list(SIZES), help="of the model")
    parser.add_argument("--factors", nargs="+", type=at_least_one, default=list(FACTORS))
    parser.add_argument("--rates", nargs="+", default=list(RATES), choices=list(RATES))
    parser.add_argument("--average", nargs="+", default=["stays"], choices=list(AVERAGES))
    parser.add_argument("--repeats", nargs="+", type=int, default=list(REPEATS))
    parser.add_argument("--table", action="store_true", help="write the page of what there is, and train nothing")
    job_options(parser)
    options = parser.parse_args(words)
    done = {(run["folder"], run["name"]) for run in archive.runs(options.out, "batch_rate")}
    jobs = [
        _job(name, choice, repeat, options)
        for repeat, choice, name in product(
            options.repeats, choices(options.factors, options.rates, options.average), options.sets
        )
        if (SETS[name].public_set.folder, _name(options.size, choice, repeat)) not in done
    ]
    failed = [] if options.table else run_jobs(jobs, options)
    head = f"# The batch and the learning rate\n\n{__doc__.strip()}\n\n{FOUND}\n"
    (options.out / "batch_rate.md").write_text(head + batch_table(options.out))
    print(batch_table(options.out))
    return bool(failed)


def _job(name: str, choice: Choice, repeat: int, options: argparse.Namespace) -> Job:
    work = partial(train_and_record, name, options.size, choice, repeat, options.out, options.runs)
    return Job(f"{name} {_name(options.size, choice, repeat)}", _command(name, options.size, choice, repeat), work)


def _name(size: str, choice: Choice, repeat: int) -> str:
    return f"{size}-{choice.name}-{repeat}"


def _command(name: str, size: str, choice: Choice, repeat: int) -> str:
    words = f"--sets {name} --size {size} --factors {choice.factor} --rates {choice.rate} --average {choice.average}"
    return f"python -m experiments.batch_rate {words} --repeats {repeat}"


if __name__ == "__main__":
    sys.exit(main())
