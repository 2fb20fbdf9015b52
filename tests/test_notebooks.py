"""The notebooks run from top to bottom."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

pytestmark = pytest.mark.slow

LESS = {
    "for seed in range(3)]": "for seed in range(1)]",
    # notebook 3
    ".iloc[:1000]": ".iloc[:120]",
    ".iloc[:300]": ".iloc[:40]",
    "\n    epochs=12,": "\n    epochs=2,",
    "assert learnt < 0.5 * mean": "assert learnt > 0",
    "test.smiles[:10]": "test.smiles[:2]",
    # notebook 4
    ".sample(450,": ".sample(200,",
    "TrainSettings(epochs=12,": "TrainSettings(epochs=1,",
    "test.smiles[:5]": "test.smiles[:2]",
    # notebook 5
    ".sample(650,": ".sample(130,",
    "torch.arange(450), torch.arange(450, 650)": "torch.arange(90), torch.arange(90, 130)",
    "EPOCHS, BATCH, SEEDS, RATE = 8, 30, (0, 1),": "EPOCHS, BATCH, SEEDS, RATE = 1, 30, (0, 1),",
    # notebook 6
    "table.smiles[:2700]": "table.smiles[:200]",
    "(0, 2400), (2400, 2500), (2500, 2700)": "(0, 160), (160, 170), (170, 200)",
    "true = texts[2500:]": "true = texts[170:]",
    "epochs=8,": "epochs=1,",
    "assert share > 0.5": "assert share >= 0",
    " if text == own]": "]",
    "some = right[:60]": "some = right[:5]",
    "assert hits(model, 0)[-1].max() > 2 * max(": "print(",
    # notebook 7
    "range(4500)": "range(600)",
    "for b in range(10, 100)": "for b in range(10, 17)",
    "len(sources) - 800": "len(sources) - 200",
    "len(sources) - 400": "len(sources) - 100",
    "epochs=8)": "epochs=1)",
}
"""What a notebook trains for minutes is trained for a moment: its numbers are not compared."""
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_what_is_trained_for_minutes_is_there() -> None:
    text = "".join("".join(cell["source"]) for path in NOTEBOOKS for cell in json.loads(path.read_text())["cells"])
    assert not [told for told in LESS if told not in text]


@pytest.fixture
def own_settings() -> Iterator[None]:
    """What a notebook sets for its whole process is set back."""
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    mpl.use("Agg")
    with mpl.rc_context(), torch.random.fork_rng():
        yield
    plt.close("all")
    torch.set_num_threads(threads)
    torch.set_default_dtype(kind)


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_prints_what_it_shows(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = {"__name__": "__main__"}
        for number, cell in enumerate(cells):
            source = "".join(cell["source"])
            for told, less in LESS.items():
                source = source.replace(told, less)
            exec(compile(source, f"{notebook.name}, cell {number}", "exec"), names)
    shown = [
        "".join(output["text"]) for cell in cells for output in cell["outputs"] if output["output_type"] == "stream"
    ]
    assert shown, "the notebook is stored without its outputs"
    lines = [without_numbers(line.split(":")[0]) for line in "".join(shown).splitlines() if ":" in line]
    assert not [line for line in lines if line not in without_numbers(printed.getvalue())]


def without_numbers(text: str) -> str:
    """The words of a text: numbers differ from machine to machine, and after less training."""
    return re.sub(r"[-\d.,]+", "#", text)
