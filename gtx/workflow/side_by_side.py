"""Several splits at a time, each in a process of its own, and one bar for all of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from gtx.report.words import METRICS, score
from gtx.workflow.contest import OWN, Contest

PATIENCE = 0.5  # seconds between looks at how far the splits have come


def run_all(contests: Sequence[Contest], jobs: int, progress: bool) -> list[dict[str, Any]]:
    """Run every contest, `jobs` at a time; the results in their order.

    A split that fails stops the rest, and so does Ctrl-C; when this process is killed the others end by themselves.
    """
    results: list[dict[str, Any] | None] = [None] * len(contests)
    with _workers(min(jobs, len(contests))) as pool, _bar(progress) as bar:
        task = bar.add_task("", total=sum(c.settings.epochs * c.settings.ensemble for c in contests), scores="")
        numbers = {pool.submit(contest.run): i for i, contest in enumerate(contests)}
        waiting = set(numbers)
        while waiting:
            done, waiting = wait(waiting, timeout=PATIENCE, return_when=FIRST_COMPLETED)
            for future in done:
                results[numbers[future]] = future.result()
            found = [result["scores"] for result in results if result]
            words = f"{len(found)}/{len(contests)} splits" + (f"; {_means(found, contests[0].task)}" if found else "")
            bar.update(task, completed=sum(contest.epochs_done() for contest in contests), scores=words)
    return results


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    # loky needs no `if __name__ == "__main__"` in the script of a user who calls this
    pool = ProcessPoolExecutor(count, initializer=_end_with, initargs=(os.getpid(),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise
    pool.shutdown()


def _end_with(parent: int) -> None:
    """In a worker: end when the process that started it has gone, or two would write to one folder later."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PATIENCE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _bar(shown: bool) -> Progress:
    columns = (
        TextColumn("Benchmark"),
        BarColumn(20),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[scores]}"),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown, speed_estimate_period=600)


def _means(found: Sequence[Mapping[str, Any]], task: str) -> str:
    """The leading metric of gtx and of the best other method, as far as the splits have come."""
    metric, label = next(iter(METRICS[task].items()))
    means = {}
    for method in found[0]:
        values = [scores[method][metric] for scores in found if scores[method][metric] is not None]
        if values:
            means[method] = sum(values) / len(values)
    others = [value for method, value in means.items() if method != OWN]
    best = (min if metric == "rmse" else max)(others, default=None)
    return f"{label} {score(means.get(OWN), metric)}, best baseline {score(best, metric)}"
