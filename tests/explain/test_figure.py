"""The figure: one well-formed SVG that needs nothing else, and a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import gtx.explain.figure
from gtx.base.errors import InputError
from gtx.explain import Explanation, average_attention_by_distance, explain_prediction
from gtx.explain.findings import caption
from gtx.molecules import draw_attention
from gtx.prediction import Predictor

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def explanation(predictor: Predictor) -> Explanation:
    return explain_prediction(predictor, "CC(=O)Nc1ccc(O)cc1", receiver=2)


def words(svg: str) -> str:
    return " ".join("".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.slow
def test_one_svg_that_needs_nothing_else(explanation: Explanation) -> None:
    svg = explanation.svg()
    assert svg == explanation.svg()
    assert set(re.findall(r"https?://[^\"' ]*", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    names = re.findall(r'\bid="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]*)", svg)) <= set(names)
    drawings = [child for child in ET.fromstring(svg) if child.tag == f"{SVG}svg"]
    assert float(ET.fromstring(svg).get("width")) <= 1100  # words of 11 pixels are still read where 900 are at hand
    assert len(drawings) == 6 and len({(d.get("x"), d.get("y")) for d in drawings}) == 6


def test_it_says_what_is_drawn_and_what_the_check_found(explanation: Explanation) -> None:
    said = words(explanation.svg())
    assert "Attention of atom O2" in said and "CC(=O)Nc1ccc(O)cc1" in said
    assert f"Trained: gap = {explanation.prediction:.4g}" in said
    assert f"Random weights: gap = {explanation.random.prediction:.4g}" in said
    assert "do not prove a cause" in said and "network 0 of an ensemble of 2" in said.lower()
    for account in (explanation, explanation.random):
        for table in account.faithfulness.values():
            assert all(f"{removal.less:.0%}" in said for removal in table)


@pytest.mark.slow
@pytest.mark.parametrize("smiles", ["CC(C)NCC(O)COc1cccc2ccccc12.Cl", "CCCCCCCCCCCC.Cl", "CCO"])
def test_distances_are_labelled_apart_from_each_other(predictor: Predictor, smiles: str) -> None:
    e = explain_prediction(predictor, smiles, draws=1)
    apart, means = average_attention_by_distance(e.weights.mean(1), e.distance)
    axes = Figure().add_subplot()
    gtx.explain.figure.distances(axes, apart, means, 0, ["layer 0", "layer 1"], len(e.atoms), (0.0, 1.0))
    places, labels = axes.get_xticks(), [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "0" and len(labels) <= 13 and (np.diff(places) >= np.ceil(len(apart) / 12)).all()
    assert (labels[-1] == "∞") == ("." in smiles)
    assert ("∞: no path of bonds connects" in " ".join(caption(e))) == ("." in smiles)


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


def test_weights_below_zero_are_drawn(explanation: Explanation, untrained: Callable[..., Predictor]) -> None:
    signed = replace(explanation, weights=explanation.weights - 0.05)
    assert "<svg" in signed.svg()


def test_trained_and_random_weights_are_drawn_on_one_scale(explanation: Explanation, monkeypatch) -> None:
    drawn = []

    def draw(*arguments: object, **options: object) -> str:
        drawn.append(draw_attention(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(gtx.explain.figure, "draw_attention", draw)
    explanation.svg()
    ticks = [re.findall(r'font-size="12" fill="#222">([^<]*)<', svg) for svg in drawn]
    assert len(ticks) == 2 and len(ticks[0]) == 3 and ticks[0] == ticks[1]
    rows = [explanation.shown(of)[explanation.receiver] for of in (explanation, explanation.random)]
    assert float(ticks[0][-1]) == pytest.approx(max(map(np.max, rows)), rel=5e-3)
