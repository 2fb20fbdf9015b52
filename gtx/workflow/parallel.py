"""The folds of a benchmark one after the other, or several at a time, and one bar for all of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from gtx.data import stop_workers
from gtx.report.comparison import IN_UNITS, MEAN, compare
from gtx.report.words import score
from gtx.tasks import NumberTask
from gtx.workflow.fold import OWN, Fold

PATIENCE = 0.5  # seconds between looks at how far the splits have come

Results = list[dict[str, Any] | None]


def run_all(folds: Sequence[Fold], jobs: int, progress: bool) -> list[dict[str, Any]]:
    """Run every fold that has no result yet; the results of all, in their order.

    A split that fails stops the rest, and so does Ctrl-C; when this process is killed, those it started end too.

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
    # loky needs no `if __name__ == "__main__"` in the script of a user who calls this
    pool = ProcessPoolExecutor(count, initializer=_end_with, initargs=(os.getpid(),))
    try:
        yield pool
    except BaseException:
        stop_workers(pool)
        raise
    pool.shutdown()


def _end_with(parent: int) -> None:
    """In a worker: end when the process that started it has gone, or two would write to one folder later."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PATIENCE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
        task = bar.add_task("", total=sum(c.settings.epochs * c.settings.ensemble for c in folds), scores="")

        def refresh() -> None:
            completed = sum(fold.epochs_done() for fold in folds)
            bar.update(task, completed=completed, scores=_words(results, folds[0].task))

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
