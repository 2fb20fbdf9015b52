"""The bundled set xtb9 (GFN2-xTB properties of molecules of 2 to 9 heavy atoms) in its random and its scaffold split.

    python -m experiments.xtb9 --sets random --models gtx --jobs 2

Without coordinates. Its five targets have units of their own, so R², a mean over targets, is what it is judged by; the
JSON of a run holds the errors of each target. `--table` prints the results there are.
"""

from __future__ import annotations

import sys

from experiments.public_sets import PublicSet
from experiments.recipe import main

SETS = {name: PublicSet("xtb9", "r2", (f"split_{name}",), f"xtb9-{name}") for name in ("random", "scaffold")}

if __name__ == "__main__":
    sys.exit(main(__doc__, "experiments.xtb9", SETS))
