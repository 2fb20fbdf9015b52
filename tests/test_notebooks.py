"""The notebooks run from top to bottom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_prints_what_it_shows(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    shown = [
        "".join(output["text"]) for cell in cells for output in cell["outputs"] if output["output_type"] == "stream"
    ]
    assert shown, "the notebook is stored without its outputs"
    for text in shown:  # numbers at the level of rounding may differ from machine to machine
        words = [line.split(":")[0] for line in text.splitlines() if ":" in line]
        assert all(word in done.stdout for word in words)
