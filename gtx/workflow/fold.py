"""Folds of a benchmark, one after the other or several at a time: gtx and baselines learn from the same rows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from gtx.baselines import beside, predict_baselines
from gtx.data import process_pool, stop_workers
from gtx.files import write_text
from gtx.folders import read_plain
from gtx.report.comparison import IN_UNITS, MEAN, compare
from gtx.report.kinds import score
from gtx.tasks import NumberTask
from gtx.training import RunFolder, TrainSettings
from gtx.workflow.plan import Plan

OWN = "gtx"
PATIENCE = 0.5  # seconds between looks at how far the splits have come

Results = list[dict[str, Any] | None]

# --- One fold.


@dataclass(frozen=True)
class Fold:
    """One fold of a benchmark, with all it takes to run it in a process of its own.

    Attributes:
        plan: how gtx trains; the seed of its settings also decides the forest.
        folder: where its run lies.
    """

    plan: Plan
    folder: Path

    def found(self) -> dict[str, Any] | None:
        """Return the scores that an earlier `run` found, if it was completed.

        Raises:
            InputError: the folder holds a run of other settings, data or rows.
        """
        run = RunFolder(self.folder)
        run.open(self.plan.config)
        found = read_plain(self.result_file) if run.finished else None
        return found if isinstance(found, dict) and {"test", "scores", "predictions"} <= found.keys() else None

    def run(self) -> dict[str, Any]:
        """Train and score; called again after an interruption it goes on.

        Returns:
            `rows` (how many of each part), `test` (their molecule indices), `scores` (by method, of the test rows, as
            of `NumberTask.evaluate`), `predictions` (by method `[rows][outputs]`, None where there is no finite
            number), `seconds`, `parameters` and `batch_pairs` (as trained with, of each member) of gtx.

        Raises:
            InputError: the folder holds a run of other settings, data or rows, or training is impossible.
        """
        begun, plan = time.perf_counter(), self.plan
        members, header = plan.fit(self.folder)
        both = plan.blend(members, header)
        molecules, task, test = plan.molecules, plan.task, plan.molecules.split["test"]
        predictions = {OWN: both.answers.mean[test]}
        seconds = time.perf_counter() - begun
        y, more = molecules.y, {"seed": plan.settings.seed, **beside(molecules.store, task), "kernel": both.kernel}
        for name, prediction, _ in predict_baselines(molecules.smiles, y, molecules.split, task, **more):
            predictions[name] = prediction[test]
        result = {
            "rows": molecules.counts,
            "test": test.tolist(),
            "scores": {name: task.evaluate(y[test], prediction) for name, prediction in predictions.items()},
            "predictions": {name: _plain(prediction) for name, prediction in predictions.items()},
            "seconds": round(seconds, 1),
            "parameters": sum(p.numel() for p in members[0].model.parameters()),
            "batch_pairs": [member.batch_pairs for member in members],
        }
        write_text(self.result_file, json.dumps(result, allow_nan=False))
        RunFolder(self.folder).finish()
        return result

    @property
    def result_file(self) -> Path:
        """Where its result lies."""
        return self.folder / "result.json"

    def epochs_done(self) -> int:
        """Epochs that gtx has come through, of `epochs` times `ensemble` of the settings; all where it is done."""
        if self.result_file.exists():
            return self.plan.settings.epochs * self.plan.settings.ensemble
        logs = self.folder.glob("members/*/log.csv")
        return sum(max(0, len(log.read_bytes().splitlines()) - 1) for log in logs)


def seeded(settings: TrainSettings, number: int) -> TrainSettings:
    """The settings of split `number`: another seed for each, and nothing on the terminal."""
    return replace(settings, seed=settings.seed + number, progress=False)


def _plain(prediction: np.ndarray) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in prediction.tolist()]


# --- All folds, and one bar for them.


def run_all(folds: Sequence[Fold], jobs: int, progress: bool) -> list[dict[str, Any]]:
    """Run every fold that has no result yet; the results of all, in their order.

    A split that fails stops the rest, and so does Ctrl-C; when this process is killed, those it started end too, or two
    would write to one folder later.

    Args:
        folds: the splits.
        jobs: how many at a time; 1 works in this process, more start one each.
        progress: show a progress bar.

    Raises:
        InputError: a folder holds a run of other settings or data (said before anything is trained), or training is
            impossible.
    """
    results: Results = [fold.found() for fold in folds]
    left = {i: fold for i, fold in enumerate(folds) if results[i] is None}
    with _bar(folds, results, progress):
        if min(jobs, len(left)) < 2:
            for i, fold in left.items():
                results[i] = fold.run()
        else:
            with _workers(min(jobs, len(left))) as pool:
                numbers = {pool.submit(fold.run): i for i, fold in left.items()}
                for done in as_completed(numbers):
                    results[numbers[done]] = done.result()
    return results


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    pool = process_pool(count)
    try:
        yield pool
    except BaseException:
        stop_workers(pool)
        raise
    pool.shutdown()


@contextmanager
def _bar(folds: Sequence[Fold], results: Results, shown: bool) -> Iterator[None]:
    """Epochs done of all splits, as their logs say, until the block ends."""
    columns = (
        TextColumn("Benchmark"),
        BarColumn(20),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[scores]}"),
    )
    ended = threading.Event()
    with Progress(*columns, console=Console(stderr=True), disable=not shown, speed_estimate_period=600) as bar:
        task = bar.add_task("", total=sum(f.plan.settings.epochs * f.plan.settings.ensemble for f in folds), scores="")

        def refresh() -> None:
            completed = sum(fold.epochs_done() for fold in folds)
            bar.update(task, completed=completed, scores=_words(results, folds[0].plan.task))

        def follow() -> None:
            while not ended.wait(PATIENCE):
                refresh()

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            refresh()


def _words(results: Results, task: NumberTask) -> str:
    """Splits done, and the leading metric of gtx and of the best other method as far as they have come."""
    found = [result["scores"] for result in results if result]
    words = f"{len(found)}/{len(results)} splits"
    if not found:
        return words
    metric, lead = next(iter(task.metrics.items()))
    rows = compare(found, 1.0, [metric])[-len(found[0]) :]  # of several targets the last are of their mean
    means = {row["method"]: row["mean"] for row in rows}
    label = lead.title + " ÷ the mean's" * (rows[0]["target"] == MEAN and metric in IN_UNITS)
    others = [mean for method, mean in means.items() if method != OWN and mean is not None]
    best = (min if lead.lower else max)(others, default=None)
    return f"{words}; {label} {score(means[OWN], metric)}, best baseline {score(best, metric)}"
