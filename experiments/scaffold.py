"""MoleculeNet in the scaffold split of Uni-Mol (Zhou et al. 2023) and MUBen (Li et al. 2023, arXiv:2306.10060).

    python -m experiments.scaffold --sets esol bace --models gtx gtx-folds --jobs 2

`--table` only prints the results.
"""

from __future__ import annotations

import sys

from experiments.recipe import main
from experiments.runs import PublicSet

METRICS = {"esol": "rmse", "freesolv": "rmse", "bbbp": "roc_auc", "bace": "roc_auc", "tox21": "roc_auc"}
SETS = {name: PublicSet(f"scaffold/{name}", metric, ("split",), f"scaffold-{name}") for name, metric in METRICS.items()}

if __name__ == "__main__":
    sys.exit(main(__doc__, "experiments.scaffold", SETS))
