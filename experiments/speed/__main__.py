"""Measure the speed of everything, and write the page.

    python -m experiments.speed            # make bench: an hour or two
    python -m experiments.speed --quick    # minutes, small cases; results go to runs/speed and are not kept
    python -m experiments.speed --page     # the page from the results there are

runs every script of this folder that measures, each in a process of its own; further options go to all of them (see
`python -m experiments.speed.layer --help`). The page is `speed.md` beside the folder of results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from experiments.speed.page import TOPICS, page
from experiments.speed.results import KEPT, QUICK, ROOT

HERE = Path(__file__).parent


def main() -> None:
    """Run all, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", default=TOPICS, choices=TOPICS, help="some of the scripts")
    parser.add_argument("--quick", action="store_true", help="small cases, for a look")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--out", help="folder of the results")
    read, others = parser.parse_known_args()
    out = Path(read.out) if read.out else QUICK if read.quick else KEPT
    shared = [*others, *(["--quick"] if read.quick else []), *(["--out", read.out] if read.out else [])]
    failed = []
    for topic in () if read.page else read.topics:
        if not (HERE / f"{topic}.py").is_file():
            continue
        words = shared
        if topic == "kernel":  # it has options of its own, and needs a GPU
            if not any(word.startswith("cuda") for word in others):
                continue
            words = ["--out", str(out / "kernel.json"), *(["--repeats", "5"] if read.quick else [])]
        print(f"## {topic}\n", flush=True)
        if subprocess.run([sys.executable, "-m", f"experiments.speed.{topic}", *words], cwd=ROOT).returncode:
            failed.append(topic)
    file = out.with_name(f"{out.name}.md")
    file.write_text(page(out))
    print(f"{file}" + (f"; these did not end well: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
