"""The page in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gtx.prediction import Predictor
from tests.serve.conftest import Client, made, served, until

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

    assert [len(row.find_elements("css selector", ".sure")) for row in every("tbody tr")] == [2, 0, 0]
    told = "Note: descriptors RDKit cannot compute: PEOE_VSA; not seen in training: element Se"
    assert every(".warning")[0].text == told  # in its row, which is not named again

    every(".look button")[1].click()
    until(lambda: every(".detail pre"))
    assert "Shapley values" in every(".detail pre")[0].text and "not seen" not in every(".detail pre")[0].text
    every(".look button")[1].click()
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


WIDER = """const more = answer.answers.map((one) => one.name);
for (const k of [1, 2, 3, 4]) for (const name of more) {
  answer.columns.splice(-2, 0, `further_${k}_${name}`);
  answer.rows.forEach((row) => row.splice(-2, 0, row[answer.columns.indexOf(name)]));
  answer.answers.push({ name: `further_${k}_${name}`, number: true });
}
showAnswer();"""


@pytest.mark.parametrize("width", [1280, 500])
def test_with_many_targets_one_can_look_inside_within_the_window(
    browser: Any, predictor: Predictor, width: int
) -> None:
    with served(predictor.with_header(replace(predictor.header, units={"gap": "eV"}))) as client:
        before = browser.get_window_size()
        browser.set_window_size(width, 900)
        browser.get(f"http://127.0.0.1:{client.port}/")
        until(lambda: "solvation_water · gtx" in browser.title)
        browser.find_element("css selector", "#example").click()
        until(lambda: browser.find_elements("css selector", "tbody tr"))
        browser.execute_script(WIDER)
        assert len(browser.find_elements("css selector", "tbody tr:first-child td.value")) == 10
        names = browser.execute_script("return [...document.querySelectorAll('td.value')].map((n) => n.dataset.name)")
        assert names[:2] == ["gap, eV", "solvation_water"]
        browser.find_element("css selector", ".look button").click()
        until(lambda: browser.find_elements("css selector", ".detail img"))
        for rule in (".look button", ".detail section"):
            box = browser.find_element("css selector", rule).rect
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
        browser.set_window_size(before["width"], before["height"])


def test_a_model_of_reactions_shows_and_explains_them(browser: Any) -> None:
    with served(made(reaction="reactants-products")) as client:
        browser.get(f"http://127.0.0.1:{client.port}/")
        until(lambda: browser.title == "y · gtx")
        assert not browser.find_element("css selector", "#sketch").is_displayed()
        browser.find_element("css selector", "#example").click()
        until(lambda: len(browser.find_elements("css selector", "tbody tr")) == 5)
        assert [head.text for head in browser.find_elements("css selector", "th")] == ["", "Reaction", "y"]
        drawing = browser.find_element("css selector", "img.drawn")
        until(lambda: browser.execute_script("return arguments[0].naturalWidth", drawing) > 400)
        assert drawing.rect["width"] > 200  # both sides can be made out
        browser.find_element("css selector", ".look button").click()
        until(lambda: "Shapley values" in browser.find_element("css selector", ".detail").text)
