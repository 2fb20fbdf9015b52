"""The page in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serve.conftest import Client, until

HOSTILE = "<img src=x onerror=document.title='hacked'>"
TABLE = f'name,smiles\n"a,""b""",CC(=O)OCC\nodd,C[Se]C\nbad,{HOSTILE}\n'


def test_somebody_drops_a_table_looks_inside_and_downloads(
    browser: Any, client: Client, tmp_path: Path, downloads: Path
) -> None:
    def every(rule: str) -> list[Any]:
        return browser.find_elements("css selector", rule)

    (tmp_path / "mine.csv").write_text(TABLE)
    browser.get(f"http://127.0.0.1:{client.port}/")
    until(lambda: browser.title == "gap, solvation_water · gtx")
    every("#file")[0].send_keys(str(tmp_path / "mine.csv"))
    until(lambda: len(every("tbody tr")) == 3)
    assert every("#said")[0].text == "3 rows: 2 read, 1 error (1 with an unusable molecule), 1 with warnings"
    assert [one.text for one in every("tbody code")] == ["CC(=O)OCC", "C[Se]C", HOSTILE]
    assert len(every("td.value .track")) == 4 and "not seen in training: element Se" in every(".warning")[0].text
    assert "cannot be read" in every(".error")[0].text and len(every(".look button")) == 2

    every(".look button")[0].click()
    until(lambda: every(".detail img"))
    until(lambda: browser.execute_script("return arguments[0].naturalWidth", every(".detail img")[0]) > 100)
    assert "Shapley values" in every(".detail pre")[0].text

    every("#download")[0].click()
    saved = downloads / "mine-predictions.csv"
    until(saved.exists)
    assert saved.read_bytes() == client.table(TABLE.encode()).body  # which is what gtx predict writes

    every("#text")[0].clear()
    every("#predict")[0].click()
    until(lambda: "nothing to read" in every("#said")[0].text)
    assert browser.title == "gap, solvation_water · gtx"
    told = [entry["message"] for entry in browser.get_log("browser")]
    assert not [one for one in told if "422" not in one]  # no script was refused, nothing failed
