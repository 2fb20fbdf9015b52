"""The six random splits of the Molecule Attention Transformer paper (Maziarka et al. 2020, arXiv:2002.08264).

    python -m experiments.mat --sets freesolv esol --models gtx ridge-counts --jobs 2

Errors are in standard deviations of the target, as in the paper. `--table` only prints the results.
"""

from __future__ import annotations

import sys

from experiments.recipe import main
from experiments.runs import PublicSet

SPLITS = tuple(f"split_random_{i}" for i in range(6))
SETS = {name: PublicSet(f"mat/{name}", "rmse", SPLITS, f"mat-{name}") for name in ("freesolv", "esol")}

if __name__ == "__main__":
    sys.exit(main(__doc__, "experiments.mat", SETS))
