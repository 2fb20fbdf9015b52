"""The page and its editor in a real browser."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.forks import until
from tests.serve.conftest import Client, made, served

HOSTILE = "<img src=x onerror=document.title='hacked'>"
TABLE = f'name,smiles\n"a,""b""",CC(=O)OCC\nodd,C[Se]C\nbad,{HOSTILE}\n'


def test_somebody_drops_a_table_looks_inside_and_downloads(browser, client, tmp_path, downloads) -> None:
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
def test_with_many_targets_one_can_look_inside_within_the_window(browser, predictor, width) -> None:
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


@pytest.mark.parametrize("components", [(), ("reactants>>products", "solvent")])
def test_a_model_of_reactions_shows_and_explains_them(components: tuple[str, ...], browser: Any) -> None:
    with served(made(reaction="reactants-products", components=components)) as client:
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
        first = "[CH3:1][Br:2].[Cl-:3]>>[CH3:1][Cl:3].[Br-:2]"
        row = ", ".join([first, "CC(=O)Oc1ccccc1C(=O)O"] if components else [first])
        assert row in browser.find_element("css selector", ".detail").text


# --- The editor in a real browser: what a chemist draws by mouse, touch and keys becomes a line of the box.


class Editor:
    """Somebody at the editor, who names atoms by their numbers and places in lengths of a bond, y up."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def one(self, rule: str) -> Any:
        return self.browser.find_element("css selector", rule)

    def do(self, script: str) -> Any:
        return self.browser.execute_script(f"return {script}")

    def take(self, tool: str) -> None:
        self.one(f'#tools button[title="{tool}"]').click()

    def click(self, *where: int | tuple[float, float]) -> None:
        """Click atoms or places, one after the other."""
        for one in where:
            pointer = self._pointer()
            pointer.w3c_actions.pointer_action.move_to_location(*self._pixels(one)).click()
            pointer.perform()

    def drag(self, start: int | tuple[float, float], end: int | tuple[float, float]) -> None:
        pointer, steps = self._pointer(), (self._pixels(start), self._pixels(end))
        hand = pointer.w3c_actions.pointer_action
        hand.move_to_location(*steps[0]).pointer_down().move_to_location(*steps[1]).pointer_up()
        pointer.perform()

    def tap(self, where: int | tuple[float, float]) -> None:
        """With a finger."""
        x, y = self._pixels(where)
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.one("#board").send_keys(key)

    def reads(self, smiles: str) -> None:
        until(lambda: self.one("#drawn").get_attribute("value") == smiles)

    def between(self, i: int, j: int) -> tuple[float, float]:
        found = self.do(f"middle(editor.drawing.atoms[{i}], editor.drawing.atoms[{j}])")
        return found["x"], found["y"]

    def _pointer(self) -> Any:
        from selenium.webdriver.common.action_chains import ActionChains

        return ActionChains(self.browser, duration=0)

    def _pixels(self, where: int | tuple[float, float]) -> list[int]:
        place = f"editor.drawing.atoms[{where}]" if isinstance(where, int) else f"{{x: {where[0]}, y: {where[1]}}}"
        point = f"(({{x, y}}) => new DOMPoint(x * BOND, -y * BOND))({place})"
        found = self.do(f"{point}.matrixTransform(find('board').getScreenCTM())")
        return [round(found["x"]), round(found["y"])]


@pytest.fixture
def editor(browser: Any, client: Client) -> Editor:
    browser.get(f"http://127.0.0.1:{client.port}/")
    until(lambda: browser.title == "gap, solvation_water · gtx")
    browser.get_log("browser")  # of tests before
    editor = Editor(browser)
    editor.one("#sketch").click()
    return editor


def test_a_chemist_draws_by_mouse(editor: Editor) -> None:
    editor.take("Benzene")  # aspirin
    editor.click((0, 0))
    editor.take("Single bond")
    editor.click(0, 6, 7, 7, 1, 10, 10)
    editor.take("Oxygen")
    editor.click(6, 9, 11, 12)
    editor.click(editor.between(7, 9), editor.between(10, 12))
    editor.reads("CC(=O)Oc1ccccc1C(=O)O")
    letters = [one.text for one in editor.browser.find_elements("css selector", "#board > text")]
    assert "".join(letters) == "OOOHO"
    around = "partners(editor.drawing, i).map((j) => angle(atom, editor.drawing.atoms[j]))"
    turns = "all.slice(k + 1).map((b) => Math.round(Math.acos(Math.cos(a - b)) * 180 / Math.PI))"
    angles = f"editor.drawing.atoms.flatMap((atom, i) => {around}.flatMap((a, k, all) => {turns}))"
    assert set(editor.do(angles)) == {120}

    editor.one("#editor-add").click()
    until(lambda: editor.one("#text").get_attribute("value") == "CC(=O)Oc1ccccc1C(=O)O\n")
    assert not editor.one("#editor").get_attribute("open")
    editor.do("find('text').setSelectionRange(0, 21)")  # a line of the box is opened, and changed
    editor.one("#sketch").click()
    editor.reads("CC(=O)Oc1ccccc1C(=O)O")
    editor.take("Charge −")
    acid = "editor.drawing.atoms.findIndex((atom, i) => atom.element === 'O' && editor.told.hydrogens[i])"
    editor.click(editor.do(acid))
    editor.reads("CC(=O)Oc1ccccc1C(=O)[O-]")
    editor.one("#editor-add").click()
    until(lambda: editor.one("#text").get_attribute("value") == "CC(=O)Oc1ccccc1C(=O)[O-]\n")
    editor.one("#predict").click()
    until(lambda: len(editor.browser.find_elements("css selector", "tbody tr")) == 1)
    assert not editor.browser.get_log("browser")  # no style or script was refused, nothing failed


def test_an_impossible_atom_is_told_and_keys_and_fingers_draw_too(editor: Editor) -> None:
    editor.take("Double bond")
    editor.drag((0, 0), (1, 0.1))
    editor.take("Nitrogen")
    editor.drag(1, (1.5, -0.9))
    editor.reads("C=CN")
    editor.take("Single bond")
    editor.click(1, 1)
    until(lambda: "too many bonds at an atom: C with 5" in editor.one("#told").text)
    assert editor.browser.find_elements("css selector", "circle.wrong") and not editor.one("#editor-add").is_enabled()
    editor.take("Undo")
    editor.reads("C=C(C)N")
    editor.take("Redo")
    until(lambda: "C with 5" in editor.one("#told").text)
    editor.take("Undo")
    editor.one("#element").send_keys("se")
    editor.click(3)
    editor.reads("C=C(N)[SeH]")
    editor.take("Undo")
    editor.reads("C=C(C)N")
    editor.take("Erase")
    editor.click(3, editor.between(0, 1))
    editor.reads("C.CN")
    editor.take("Single bond")
    editor.drag(0, 1)
    editor.click(editor.between(0, 1))
    editor.drag(0, 2)
    editor.reads("C1=CN1")
    editor.take("Clear")
    editor.tap((0, 0))
    editor.reads("CC")
    editor.tap(0)
    editor.reads("CCC")
    editor.take("Clear")

    enter, left, control, delete, escape = "\ue007", "\ue012", "\ue009", "\ue017", "\ue00c"
    editor.keys("1", enter, enter, "o", enter, left, left, "+", enter)  # by the bond to the atom beyond
    editor.reads("C[CH+]O")
    editor.keys(delete)
    editor.reads("C.O")
    editor.keys(control + "z")
    editor.reads("C[CH+]O")
    editor.keys(escape)
    assert not editor.one("#editor").get_attribute("open")
    editor.one("#sketch").click()
    editor.reads("C[CH+]O")  # what was drawn is still there

    box = editor.one("#drawn")
    box.clear()
    box.send_keys("C1CC", enter)
    until(lambda: editor.one("#told").text == "the molecule cannot be read: unclosed ring")
    assert editor.do("editor.drawing.atoms.length") == 3


BENZENE = "{ring: 6, aromatic: true}"
MADE = {
    "c1ccc2ccccc2c1": [(BENZENE, "{}"), (BENZENE, "{bond: 1}")],
    "c1ccc2cc3ccccc3cc2c1": [(BENZENE, "{}"), (BENZENE, "{bond: 1}"), (BENZENE, "{bond: 4}")],
    "c1ccc(-c2ccccc2)cc1": [(BENZENE, "{}"), (BENZENE, "{atom: 0}")],
    "Cc1ccccc1": [("{bond: 'single'}", "{}"), (BENZENE, "{atom: 1}")],
    "c1ccc2c(c1)CCC2": [(BENZENE, "{}"), ("{ring: 5}", "{bond: 0}")],
    **{f"C1{'C' * (size - 2)}C1": [(f"{{ring: {size}}}", "{}")] for size in (3, 4, 7)},
    "Oc1ccccc1": [("{element: 'O'}", "{}"), (BENZENE, "{atom: 0}")],
    "C#CC": [("{bond: 'single'}", "{}"), ("{bond: 'triple'}", "{atom: 1}")],
    "C#CCC": [
        ("{bond: 'double'}", "{}"),
        *[("{bond: 'single'}", f"{{atom: {i}}}") for i in (1, 2)],
        ("{}", "{bond: 0}"),
    ],
    "[CH3+]": [("{element: 'N'}", "{}"), ("{element: 'C'}", "{atom: 0}"), ("{charge: 1}", "{atom: 0}")],
}


def test_what_tools_make(editor: Editor, client: Client) -> None:
    for smiles, steps in MADE.items():
        made = "EMPTY"
        for tool, spot in steps:
            made = f"applied({made}, {tool}, {spot}, {{x: 0, y: 0}})"
        close = "drawing.atoms.some((a, i) => drawing.atoms.some((b, j) => i < j && apart(a, b) < 0.9))"
        assert not editor.do(f"((drawing) => {close})({made})")
        assert client.post("/smiles", editor.do(made)).json()["smiles"] == smiles


def test_a_drawing_becomes_a_line_of_the_box(editor: Editor) -> None:
    one, two = ["smiles"], ["smiles", "temperature"]
    for text, reads, expected in (
        ("", one, "CCO\n"),
        ("CC \n\n", one, "CC\nCCO\n"),
        ("name,SMILES,mass\na,CC,30", one, "name,SMILES,mass\na,CC,30\n,CCO,\n"),
        ("CC\tethane", one, "CC\tethane\nCCO\t\n"),
        ("", two, "smiles,temperature\nCCO,\n"),
        ("", ["smiles", "time, h"], 'smiles,"time, h"\nCCO,\n'),
        ('"b.p., K",smiles\n300,CC', one, '"b.p., K",smiles\n300,CC\n,CCO\n'),
        ('"smiles, ""raw""";"mass, g"\nCC;3', ['smiles, "raw"'], '"smiles, ""raw""";"mass, g"\nCC;3\nCCO;\n'),
    ):
        assert editor.do(f"withLine({json.dumps(text)}, 'CCO', {json.dumps(reads)})") == expected
