"""Measure the speed of gtx beside others, and write experiments/results/speed.md (speed-cuda.md of a GPU).

    python -m experiments.speed                                 # make bench: an hour or two
    python -m experiments.speed --topics layer --cases tiny     # the cases whose name matches a regular expression
    python -m experiments.speed --quick                         # a few small cases, minutes
    python -m experiments.speed --device cuda                   # layer and prediction on a GPU

Each topic replaces its own section of the page. With `--quick` or `--cases` the page goes to runs/speed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import torch

from experiments.runs import circumstances
from experiments.speed import layer, molecules, training
from experiments.speed.measure import Case, race, table
from experiments.tables import RESULTS, ROOT

TURNS = 9
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
TOPICS: dict[str, Callable[[argparse.Namespace], list[Case]]] = {
    "layer": layer.cases,
    "encodings": molecules.encodings_of_a_batch,
    "batches": molecules.batches,
    "featurising": molecules.featurising,
    "training": training.cases,
    "prediction": molecules.prediction,
    "start": molecules.start,
}


def main(words: Sequence[str]) -> None:
    """Measure topics one after the other, and write the section of each."""
    options = parse(words)
    torch.set_num_threads(options.threads)
    if options.device == "cpu" and sys.platform.startswith("linux"):  # fail, rather than let the machine swap
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY * 3 // 4,) * 2)
    page = options.out / ("speed-cuda.md" if options.device == "cuda" else "speed.md")
    page.parent.mkdir(parents=True, exist_ok=True)
    for topic in options.topics:
        cases = [c for c in TOPICS[topic](options) if re.search(options.cases, f"{c.group}, {c.name}")]
        made = circumstances(shlex.join(["python", "-m", "experiments.speed", *words]), options.threads)
        facts = ", ".join(f"{name} {value}" for name, value in (made["machine"] | made["versions"]).items())
        if options.device == "cuda":
            facts = f"{torch.cuda.get_device_name()}, {facts}"
        about = (TOPICS[topic].__doc__ or "").split("\n\n")[0].replace("\n    ", " ")
        head = f"{about}\n\n{date.today()}, commit {made['commit']}: {facts}. `{made['command']}`\n"
        text = "\n".join(
            [f"## {topic}\n", head, table(race(cases, 2 if options.quick else TURNS, options.threads, options.device))]
        )
        write_section(page, topic, text)
        print(text, flush=True)
    print(page)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the options of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", choices=[*TOPICS])
    parser.add_argument("--cases", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="folder of the page")
    options = parser.parse_args(words)
    options.topics = options.topics or (["layer", "prediction"] if options.device == "cuda" else [*TOPICS])
    options.out = options.out or (ROOT / "runs" / "speed" if options.quick or options.cases else RESULTS)
    return options


def write_section(page: Path, topic: str, text: str) -> None:
    """Replace the section of a topic on a page, or add it."""
    before = page.read_text() if page.exists() else "# How fast gtx is\n"
    section = re.compile(rf"^## {topic}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if section.search(before):
        page.write_text(section.sub(lambda _: f"{text}\n", before).rstrip() + "\n")
    else:
        page.write_text(f"{before}\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
