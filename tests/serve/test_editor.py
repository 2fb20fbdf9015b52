"""The editor in a real browser: what a chemist draws by mouse, touch and keys becomes a line of the box."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serve.conftest import Client, until


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
    ):
        assert editor.do(f"withLine({json.dumps(text)}, 'CCO', {json.dumps(reads)})") == expected
