"""The figure: one well-formed SVG that needs nothing else, and a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from gtx.base.errors import InputError
from gtx.explain import Explanation, explain_prediction
from gtx.prediction import Predictor

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def explanation(predictor: Predictor) -> Explanation:
    return explain_prediction(predictor, "CC(=O)Nc1ccc(O)cc1", receiver=2)


@pytest.fixture(scope="module")
def svg(explanation: Explanation) -> str:
    return explanation.svg()


def words(svg: str) -> str:
    return " ".join("".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.slow
def test_one_svg_that_needs_nothing_else(explanation: Explanation, svg: str) -> None:
    assert svg == explanation.svg()
    assert set(re.findall(r"https?://[^\"' ]*", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    names = re.findall(r'\bid="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]*)", svg)) <= set(names)
    drawings = [child for child in ET.fromstring(svg) if child.tag == f"{SVG}svg"]
    assert float(ET.fromstring(svg).get("width")) <= 1100  # words of 11 pixels are still read where 900 are at hand
    assert len(drawings) == 6 and len({(d.get("x"), d.get("y")) for d in drawings}) == 6


def test_it_says_what_is_drawn_and_what_the_check_found(explanation: Explanation, svg: str) -> None:
    said = words(svg)
    assert "Attention of atom O2" in said and "CC(=O)Nc1ccc(O)cc1" in said
    assert f"Trained: gap = {explanation.prediction:.4g}" in said
    assert f"Random weights: gap = {explanation.random.prediction:.4g}" in said
    assert "do not prove a cause" in said and "network 0 of 2" in said.lower()
    for account in (explanation, explanation.random):
        for table in account.faithfulness.values():
            assert all(f"{removal.less:.0%}" in said for removal in table)


def test_the_text_has_every_number(explanation: Explanation) -> None:
    text = explanation.text()
    assert "drawn: layer 1 of 2, mean of 2 heads, counted from 0; receiver O2" in text
    for account in (explanation, explanation.random):
        for table in account.faithfulness.values():
            assert all(f"{r.change:+.3g}" in text and f"{r.mean:.3g} ± {r.sd:.2g}" in text for r in table)
    assert "do not prove a cause" in text


def test_names_of_targets_are_text(explanation: Explanation) -> None:
    odd = replace(explanation, quantity="$x_1$ <b> & y")
    assert "$x_1$ <b> & y" in words(odd.svg())


@pytest.mark.slow
def test_files(explanation: Explanation, tmp_path: Path) -> None:
    explanation.save(tmp_path / "figure.svg")
    ET.parse(tmp_path / "figure.svg")
    explanation.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "<svg" in page and "change less" in page
    with pytest.raises(InputError, match=r"figure\.pdf: expected a file name that ends in \.svg or \.html"):
        explanation.save(tmp_path / "figure.pdf")
