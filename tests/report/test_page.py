from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup

from gtx.report import write_report
from gtx.tasks import Classification, Regression

from .conftest import SMILES, SPLIT

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """The text of a page, its tags and what it refers to; every tag must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [value for name, value in attributes if name in ("href", "src", "xlink:href")]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


@pytest.fixture
def page(tmp_path):
    def write(report) -> Page:
        write_report(tmp_path / "report.html", report)
        assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
        return Page((tmp_path / "report.html").read_text(encoding="utf-8"))

    return write


@pytest.fixture
def words(page, monkeypatch):
    """The text of a page that has the labels of its pictures in their place, in a tenth of the time."""
    monkeypatch.setattr("gtx.report.gallery.inline", lambda figure, label: Markup("<svg>{}</svg>").format(label))
    return lambda report: page(report).text


@pytest.mark.parametrize("task", [Regression, Classification])
@pytest.mark.parametrize("targets", [("additive",), ("additive", "letters")])
def test_a_page_needs_nothing_beside_it(page, make_report, task, targets):
    found = page(make_report(task, targets))
    assert "script" not in found.tags and "img" not in found.tags
    outside = [ref for ref in found.references if not ref.startswith(("#", "data:"))]
    assert outside == []
    inside = {ref[1:] for ref in found.references if ref.startswith("#")}
    assert inside <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_a_page_says_what_was_trained_and_how_well(words, make_report):
    report = make_report(targets=("additive",), units={"additive": "kcal/mol"}, footnotes=["Trained in 3 s."])
    text = words(report)
    assert "This model predicts additive (kcal/mol) from the structure of a molecule." in text
    assert "It was trained on 80 molecules; 20 other molecules (validation) chose the epoch." in text
    assert "The first score is for 20 molecules that it never saw (test)." in text
    for scores in (report.scores, *report.baselines.values()):
        for part in ("train", "val", "test"):
            assert f"{scores[part]['rmse']:#.3g}" in text
    for words in (
        "121 rows: 120 read, 1 error",
        "120 molecules of 121 rows",
        'row 3, column "smiles", value "C1CC": unclosed ring',
        "random, seed 0: training 80, validation 20, test 20",
        "gtx predict run/model.gtx molecules.csv --out predictions.csv",
        "training.epochs 5",
        "gtx 0.1.0",
        "Trained in 3 s.",
    ):
        assert words in text
    assert "Leakage" not in text


def test_the_molecules_furthest_off_come_first(words, make_report):
    report = make_report(targets=("letters",))
    shown = re.findall(r"row (\d+) · (\S+)", words(make_report(targets=("additive",))))
    rows = [int(row) - 1 for row, _ in shown]
    assert [SMILES[row] for row in rows] == [smiles for _, smiles in shown]
    report = make_report(targets=("additive",))
    errors = np.abs(report.prediction - report.y)[SPLIT["test"], 0]
    measured = ~np.isnan(errors)
    expected = SPLIT["test"][measured][np.argsort(-errors[measured], kind="stable")][:12]
    assert rows == expected.tolist()


def test_a_leak_is_said_at_the_top(words, make_report):
    report = make_report()
    card = replace(report.data, leaked={("train", "test"): 3, ("train", "val"): 1})
    text = words(replace(report, data=card))
    assert "3 molecules of the test set are also in the training set" in text
    assert "1 molecule of the validation set is also in the training set" in text
    assert text.index("Leakage") < text.index("Scores All")


def test_nothing_of_the_users_becomes_markup(page, make_report):
    nasty = "<script>alert(1)</script>"
    report = make_report(title=nasty, targets=(f"{nasty}a", "$b$"), settings={nasty: nasty}, footnotes=[nasty])
    found = page(report)
    assert "script" not in found.tags
    assert found.text.count(nasty) >= 5


def test_without_a_test_set_the_validation_molecules_are_judged(words, make_report):
    split = {**SPLIT, "test": SPLIT["test"][:0]}
    text = words(make_report(targets=("additive",), split=split))
    assert "Validation RMSE" in text and "There is no test set: the first score is for the validation molecules" in text


def test_a_target_measured_in_training_alone_has_no_pictures_of_predictions(words, make_report, y, tmp_path):
    report = make_report()
    report.y[np.concatenate([SPLIT["val"], SPLIT["test"]]), 0] = np.nan
    report = make_report(y=report.y)
    assert "–" in words(report)
    lines = write_report(tmp_path / "report.html", report)
    assert not any("Measured" in line for line in lines)  # that of the training molecules is drawn


def test_blanks_are_those_of_all_rows_that_could_be_read_without_bounds(words, make_report, y):
    used = {part: rows[~np.isnan(y[rows, 0])] for part, rows in SPLIT.items()}
    blank = len(y) - sum(map(len, used.values()))

    def said(text: str) -> int:
        return int(re.search(r"blank .{0,60}additive \d+ \d+ \d+ (\d+)", text)[1])

    report = make_report(targets=("additive",), split=used)
    assert said(words(report)) == blank > 0
    scores = {part: {**each, "per_target": dict(each["per_target"])} for part, each in report.scores.items()}
    scores["val"]["per_target"]["additive"] |= {"bounds": blank - 1, "bounds_kept": 0.5}
    assert said(words(make_report(targets=("additive",), split=used, scores=scores))) == 1


@pytest.mark.parametrize("task", [Regression, Classification])
def test_baselines_and_what_was_learnt_may_be_left_out(words, make_report, task):
    with_baselines = words(make_report(task))
    text = words(make_report(task, baselines={}, histories=[]))
    assert "Random forest" in with_baselines and "Random forest" not in text
    assert "Loss by epoch" in with_baselines and "Loss" not in text


@pytest.mark.parametrize("task", [Regression, Classification])
def test_errors_are_shown_by_similarity_and_classes_at_thresholds(words, make_report, task):
    text = words(make_report(task, targets=("additive",)))
    assert "Error of additive by similarity" in text
    assert "compares 20 test molecules with 80 training molecules" in text
    for name in ("Confusion of additive", "balanced accuracy", "highest F1 in validation"):
        assert (name in text) == (task is Classification)
    assert "could not be drawn" not in text


def test_thresholds_chosen_on_the_judged_molecules_are_said_to_flatter(words, make_report):
    split = {**SPLIT, "test": SPLIT["test"][:0]}
    assert "Their scores are too good" in words(make_report(Classification, targets=("additive",), split=split))


@pytest.mark.parametrize("task", [Regression, Classification])
def test_predictions_that_are_no_numbers_leave_a_page(words, make_report, task):
    report = make_report(task, targets=("additive",), prediction=np.full((len(SMILES), 1), np.nan))
    assert "Largest errors" in words(report)


def test_infinite_intervals_are_not_drawn(words, make_report):
    infinite = np.full((len(SMILES), 1), np.inf)
    coverage = "Coverage of the intervals of additive"
    assert coverage not in words(make_report(targets=("additive",), low=-infinite, high=infinite))
    assert coverage in words(make_report(targets=("additive",)))


def test_ten_thousand_molecules_make_a_page_of_moderate_size(tmp_path, make_report):
    report = make_report(targets=("letters", "additive"))
    many = np.random.default_rng(0).integers(len(SMILES), size=10_000)
    split = dict(zip(("train", "val", "test"), np.split(np.arange(10_000), [4_000, 7_000]), strict=True))
    large = replace(
        report,
        smiles=[SMILES[i] for i in many],
        split=split,
        data=replace(report.data, num_atoms=report.data.num_atoms[many]),
        **{name: getattr(report, name)[many] for name in ("y", "prediction", "low", "high")},
    )
    write_report(tmp_path / "report.html", large)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
