"""Measure the speed of everything, and write the pages.

    python -m experiments.speed                                 # make bench: an hour or two
    python -m experiments.speed --device cuda                   # a GPU: less than ten minutes
    python -m experiments.speed --quick                         # a few small cases, minutes
    python -m experiments.speed --topics layer --cases tiny     # the cases whose name holds a regular expression
    python -m experiments.speed --page                          # the pages, from the results there are

A topic is a file `bench_<topic>.py`. Its results are kept after each group of cases, and its page is written in
experiments/results: `speed.md`, or `speed-cuda.md` of a GPU. What is quick or not all cases goes to runs/speed.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

from experiments.speed.harness import GPU_TOPICS, measure_topic, options
from experiments.speed.pages import PAGES, TITLES, keep, tables, write_page


def main(words: Sequence[str]) -> None:
    """Measure topics one after the other, and write the page after each."""
    read = options(words, __doc__)
    for topic in () if read.page else read.topics:
        print(f"## {topic}\n", flush=True)
        module = import_module(f"experiments.speed.bench_{topic}")
        own = options(words, **getattr(module, "DEFAULTS", {}))
        records, command = [], shlex.join(["python", "-m", "experiments.speed", *words])
        for records in measure_topic(module, own, GPU_TOPICS[topic] if own.device == "cuda" else math.inf):
            keep(topic, own, command, records)  # after each group: what ends the command loses no more
        print(*tables(module, records), write_page(own.out, PAGES[own.device]), sep="\n", flush=True)
    for name in TITLES if read.page else ():
        if (file := write_page(read.out, name)).exists():
            print(file)


if __name__ == "__main__":
    main(sys.argv[1:])
