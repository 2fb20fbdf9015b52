"""Forecasts of the error with twice the rows, checked by adding the rows, as a page.

    OMP_NUM_THREADS=1 python -m experiments.extrapolation             # the kernel alone
    OMP_NUM_THREADS=1 python -m experiments.extrapolation --blend     # network and kernel too, half an hour

A random half of the rows that are not test rows trains, and its learning curve forecasts the error on the test rows
after training on all of them; then all of them train.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import mat, moleculeace, scaffold
from experiments.models import WITHOUT_EMBEDDINGS
from experiments.runs import Run, read_set
from experiments.summary import markdown
from gtx.data import MoleculeStore, featurise
from gtx.data.public_datasets import PUBLIC_DATASETS, load_public_dataset
from gtx.kernel import KernelRidge, measure_learning_curves
from gtx.models import kernel_ridge
from gtx.molecules import Featuriser
from gtx.report.context import FACTOR
from gtx.tasks import Regression
from gtx.tasks.closed_form import fit_closed_form, outputs_of
from gtx.training import TrainSettings
from gtx.workflow import train_model

SHARED = "1862 2034 204 214 219 231 234 236 237 262 2835 2971 4005".split()  # noqa: SIM905
SETS = (
    *("scaffold/esol", "scaffold/freesolv", "mat/esol", "mat/freesolv", "xtb9", "zinc12k"),
    *(f"moleculeace/CHEMBL{number}_Ki" for number in SHARED),
    *(f"moleculeace/CHEMBL{number}_EC50" for number in ("239", "4616")),
)
BLENDED = (*SETS[:4], *(f"moleculeace/CHEMBL{name}" for name in ("2835_Ki", "1862_Ki", "2034_Ki", "262_Ki", "231_Ki")))
BLENDED += ("moleculeace/CHEMBL4616_EC50",)
DRAWS, MOST = 3, 3_000
PAGE = Path(__file__).parent / "results" / "learning-curve.md"
HEAD = """# How good forecasts of the error are

A random half of the rows that are not test rows trains. The learning curve of the kernel on this half
(`gtx.kernel.measure_learning_curves`) forecasts the ratio of the errors after training on all of them; then all of them
train.
Both errors are RMSE on the same test rows: those of the set's split, of xtb9 a random fifth. Of sets with more than
{most:,} rows, {most:,} are drawn. One core of an AMD EPYC.

    {command}

*Miss*: the measured error over the forecast, minus 1; positive where the forecast was too good. The lines below the
tables sum up the logarithms of this ratio. *No gain*: the same for the forecast that twice the rows change nothing. The
factor of the interval was chosen on the forecasts of the kernel alone.
"""


def network_sets() -> dict[str, Any]:
    """Collect the sets of the other recipes by name."""
    return {each.name: each for recipe in (mat, scaffold, moleculeace) for each in recipe.SETS.values()}


def kernel_pairs(name: str) -> Iterator[dict[str, float]]:
    """Yield, draw by draw, the errors of the kernel with half the rows and with all, and the forecast between."""
    known, table = load_public_dataset(name), read_set(name)
    table = table.sample(min(MOST, len(table)), random_state=0).sort_index()
    done = featurise(Featuriser(), table[known.smiles_column].tolist())
    store = done.store.with_targets(table[known.targets[0]].to_numpy(float)[done.good, None])
    column = next((each for each in ("split", "split_random_0") if each in table), None)
    random = np.random.default_rng(1).random(len(store))
    tested = random < 0.2 if column is None else table[column].to_numpy()[done.good] == "test"
    test, rest = store.subset(np.flatnonzero(tested)), np.flatnonzero(~tested)
    task, whole = fitted(store.subset(rest))
    after = test_error(task, whole, test)
    for draw in range(DRAWS):
        task, half = fitted(store.subset(np.random.default_rng(draw).permutation(rest)[: len(rest) // 2]))
        (curve,) = measure_learning_curves(half)
        if curve is not None:
            before = test_error(task, half, test)
            yield {"rows": len(rest) // 2, "before": before, "forecast": before * curve.ratio(2 * curve.rows[-1])} | {
                "after": after
            }


def fitted(train: MoleculeStore) -> tuple[Regression, KernelRidge]:
    """Fit a task of one target and a kernel to training molecules."""
    task = Regression(("y",)).fitted(train)
    model = kernel_ridge(1, num_descriptors=train.descriptors.shape[1])
    fit_closed_form(model, task, train)
    return task, model


def test_error(task: Regression, model: KernelRidge, test: MoleculeStore) -> float:
    """Compute the RMSE of a kernel on test molecules."""
    error = task.unscaled(outputs_of(model, test), test) - test.y
    return float(error.square().mean().sqrt())


def blend_pair(name: str, folder: Path) -> dict[str, float]:
    """Train network and kernel on half of the training and validation rows and on all, and forecast."""
    run = Run(network_sets()[name], "gtx-mix", runs=folder)
    table, scores = pd.read_csv(run.data.data, dtype=str), {}
    column = run.data.split_column
    half, random = table.copy(), np.random.default_rng(0)
    for part in ("train", "val"):
        rows = np.flatnonzero(table[column] == part)
        half.loc[random.permutation(rows)[len(rows) // 2 :], column] = ""
    for which, rows in (("half", half), ("all", table)):
        file = folder / name / f"{which}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(file, index=False)
        settings = TrainSettings(threads=1, progress=False, **WITHOUT_EMBEDDINGS)
        data, out = replace(run.data, data=str(file)), file.with_suffix("")
        outcome = train_model(data, settings, out, baselines=False, report=False)
        if outcome is None:
            raise RuntimeError("expected to train in one process")
        scores[which] = outcome.metrics["test"]["rmse"]
    trained = half[half[column] == "train"]
    done = featurise(Featuriser(), trained[run.data.smiles_column].tolist())
    train = done.store.with_targets(trained[run.targets[0]].to_numpy(float)[done.good, None])
    (curve,) = measure_learning_curves(fitted(train)[1])
    if curve is None:
        raise ValueError(f"{name}: too few rows for a learning curve")
    before = scores["half"]
    ratio = curve.ratio(2 * curve.rows[-1])
    return {"rows": len(train), "before": before, "forecast": before * ratio, "after": scores["all"]}


def lines(found: dict[str, list[dict[str, float]]]) -> list[str]:
    """Write a table of sets, and how often the interval held."""
    cells, misses, plain = [], [], []
    for name, pairs in found.items():
        means = {key: float(np.mean([pair[key] for pair in pairs])) for key in pairs[0]}
        own = [math.log(pair["after"] / pair["forecast"]) for pair in pairs]
        misses += own
        plain += [math.log(pair["after"] / pair["before"]) for pair in pairs]
        values = [f"{means[key]:.3g}" for key in ("before", "forecast", "after")]
        cells.append([name, f"{means['rows']:,.0f}", *values, f"{np.expm1(np.mean(own)):+.1%}"])
    sizes, flat = np.abs(misses), np.abs(plain)
    table = markdown(
        "set | rows | RMSE | forecast for twice the rows | RMSE with twice the rows | miss", "lrrrrr", cells
    )
    return [
        *table,
        "",
        f"{len(misses)} forecasts: mean size of the miss {sizes.mean():.1%} (no gain: {flat.mean():.1%}), mean "
        f"{np.mean(misses):+.1%}, nine of ten within {np.quantile(sizes, 0.9):.1%}, the largest {sizes.max():.1%}; "
        f"{np.mean(sizes <= math.log(FACTOR)):.0%} lie in the report's interval, a factor of {FACTOR:g}.",
        "",
    ]


def main() -> None:
    """Measure, and write the page once all sets are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blend", action="store_true", help="also train network and kernel")
    parser.add_argument("--out", type=Path, default=Path("build/extrapolation.json"), help="errors, as they are found")
    args = parser.parse_args()
    found = json.loads(args.out.read_text()) if args.out.exists() else {"kernel": {}, "blend": {}}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for kind, names in (("kernel", SETS), ("blend", BLENDED if args.blend else ())):
        for name in (each for each in names if each in PUBLIC_DATASETS and each not in found[kind]):
            pairs = kernel_pairs(name) if kind == "kernel" else [blend_pair(name, args.out.parent / "extrapolation")]
            found[kind][name] = list(pairs)
            args.out.write_text(json.dumps(found, indent=1))
            print(kind, name, found[kind][name], flush=True)
    page = [HEAD.format(most=MOST, command=__doc__.splitlines()[3].split("#")[0].strip())]
    page += ["## The kernel alone", "", *lines(found["kernel"])]
    if found["blend"]:
        page += [
            "## Network and kernel, `gtx train --kernel-parts substructures descriptors`",
            "",
            *lines(found["blend"]),
        ]
    PAGE.write_text("\n".join(page))
    print(PAGE)


if __name__ == "__main__":
    main()
