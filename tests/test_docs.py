"""The code in the pages of docs runs, from top to bottom of each page."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gtx.cli import train
from gtx.cli.parser import Parser
from gtx.dataset import load
from tests.tables import write_shown

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("your-own-*.md")),
    ROOT / "docs" / "attentions.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("batches", "components", "features", "foundation", "splits", "targets", "tuning")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    code = "\n".join(blocks)
    assert code
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": "__main__"})
    write_shown(page.read_text(), tmp_path)
    for line in re.findall("(?m)^    gtx train (.*)$", page.read_text()):  # as far as the rows are divided
        parser = Parser("gtx train")
        train.add(parser)
        data, _ = train.settings_of(parser.parse_args(shlex.split(line)))
        assert all(map(len, load(data).split.values()))


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_files_of_the_default_layer_say_which_one_is_read_next() -> None:
    order, file = [], "gtx/models/graph_transformer.py"
    while file:
        order.append(file)
        following = re.search(r"Read next: `([^`]+)`", (ROOT / file).read_text())
        file = following and following[1]
    assert order == [
        *("gtx/models/graph_transformer.py", "gtx/nn/transformer_layer.py", "gtx/nn/edge_attention.py"),
        *("gtx/attention/sums.py", "gtx/attention/complete.py", "gtx/attention/scores.py"),
        "gtx/attention/normalisers.py",
    ]
