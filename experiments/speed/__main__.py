"""Measure the speed of everything, and write the page.

    python -m experiments.speed            # make bench: an hour or two
    python -m experiments.speed --quick    # minutes, small cases; results go to runs/speed and are not kept
    python -m experiments.speed --page     # the page from the results there are

runs every script `bench_<topic>.py` of this folder, each in a process of its own; further options go to all of them
(see `python -m experiments.speed.bench_layer --help`). The page is `speed.md` in the folder of results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from experiments.archive import RESULTS, ROOT
from experiments.speed.measured import QUICK, TOPICS, speed_page


def main() -> None:
    """Run all, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", default=TOPICS, choices=TOPICS, help="some of the scripts")
    parser.add_argument("--quick", action="store_true", help="small cases, for a look")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, help="folder of the results")
    read, others = parser.parse_known_args()
    out = read.out or (QUICK if read.quick else RESULTS)
    words, failed = [*others, *["--quick"] * read.quick, "--out", str(out)], []
    for topic in () if read.page else read.topics:
        print(f"## {topic}\n", flush=True)
        command = [sys.executable, "-m", f"experiments.speed.bench_{topic}", *words]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(topic)
    (out / "speed.md").write_text(speed_page(out))
    print(f"{out / 'speed.md'}" + (f"; these did not end well: {', '.join(failed)}" if failed else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
