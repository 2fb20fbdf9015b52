"""The bundled set xtb9 (GFN2-xTB properties of molecules of 2 to 9 heavy atoms) in its random and its scaffold split.

    python -m experiments.xtb9 --sets random --models gtx --jobs 2

Coordinates are not used. The five targets have different units, so the score is the mean of their R²; `runs.csv` has
the errors of each target. `--table` only prints the results.
"""

from __future__ import annotations

import sys

from experiments.recipe import main
from experiments.runs import PublicSet

SETS = {name: PublicSet("xtb9", "r2", (f"split_{name}",), f"xtb9-{name}") for name in ("random", "scaffold")}

if __name__ == "__main__":
    sys.exit(main(__doc__, "experiments.xtb9", SETS))
