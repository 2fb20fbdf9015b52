"""`gtx predict` calls the functions of the walk in docs/architecture.md."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from gtx.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
WALK = re.findall(r"^(gtx/\S+\.py) +(\S+)  ", PAGE, re.MULTILINE)
MODEL = ROOT / "tests" / "prediction" / "golden" / "regression.gtx"


def called(words: list[str]) -> set[tuple[str, str]]:
    """Functions of gtx that a command calls, as (file, name)."""
    found: set[tuple[str, str]] = set()
    gtx = str(ROOT / "gtx")

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        body = code.co_flags & inspect.CO_OPTIMIZED  # of a function, not of a class or a module
        if event == "call" and body and code.co_filename.startswith(gtx):
            found.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert main(words) == 0
    finally:
        sys.setprofile(before)
    return found


def test_the_functions_of_the_walk_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gtx.attention.fast.attend", lambda *_: None)  # a compiled sum stands beside the way
    monkeypatch.setenv("GTX_FAST", "0")  # so does compiled reading
    (tmp_path / "molecules.csv").write_text("smiles\nCCO\n")
    out = tmp_path / "predictions.csv"
    words = ["predict", str(MODEL), str(tmp_path / "molecules.csv"), "--out", str(out), "--workers=0", "--device=cpu"]
    taken = called(words)
    assert len(WALK) == 10 and not [step for step in WALK if step not in taken]
    assert out.read_text().startswith("smiles,")


def test_the_page_names_only_files_that_there_are_and_every_room() -> None:
    named = re.findall(r"\b((?:gtx|tests|docs|experiments)/[\w/.-]*\w)", PAGE)
    assert not [name for name in named if not (ROOT / name).exists()]
    rooms = PAGE[PAGE.index("## Rooms") :]
    folders = [folder.name for folder in (ROOT / "gtx").iterdir() if (folder / "__init__.py").exists()]
    assert not [name for name in folders if not re.search(rf"\b{name}\b", rooms)]
