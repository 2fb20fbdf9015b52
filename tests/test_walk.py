"""The walk that docs/architecture.md tells is the walk that `gtx predict` takes."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from gtx.cli import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
TOLD = re.findall(r"^.{17}(gtx/\S+\.py) +(\S+)  ", PAGE, re.MULTILINE)
MODEL = ROOT / "tests" / "prediction" / "golden" / "regression.gtx"


def called(words: list[str]) -> dict[tuple[str, str], int]:
    """The functions of gtx, as (file, name), in the order in which a command calls them first."""
    found: dict[tuple[str, str], int] = {}
    gtx = str(ROOT / "gtx")

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        body = code.co_flags & inspect.CO_OPTIMIZED  # of a function, not of a class or a module
        if event == "call" and body and code.co_filename.startswith(gtx):
            found.setdefault((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname), len(found))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert main(words) == 0
    finally:
        sys.setprofile(before)
    return found


def test_the_walk_is_the_one_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gtx.attention.fast.attend", lambda *_: None)  # a compiled sum stands beside the way
    monkeypatch.setenv("GTX_FAST", "0")  # so does compiled reading
    (tmp_path / "molecules.csv").write_text("smiles\nCCO\n")
    out = tmp_path / "predictions.csv"
    words = ["predict", str(MODEL), str(tmp_path / "molecules.csv"), "--out", str(out), "--workers=0", "--device=cpu"]
    taken = called(words)
    assert len(TOLD) > 20 and not [step for step in TOLD if step not in taken]
    assert sorted(TOLD, key=taken.__getitem__) == TOLD
    assert out.read_text().startswith("smiles,")


def test_the_page_names_only_files_that_there_are_and_every_room() -> None:
    named = re.findall(r"\b((?:gtx|tests|docs|experiments)/[\w/.-]*\w)", PAGE)
    assert not [name for name in named if not (ROOT / name).exists()]
    rooms = PAGE[PAGE.index("## Rooms") : PAGE.index("## Guarantees")]
    folders = [folder.name for folder in (ROOT / "gtx").iterdir() if (folder / "__init__.py").exists()]
    assert not [name for name in folders if not re.search(rf"\b{name}\b", rooms)]
