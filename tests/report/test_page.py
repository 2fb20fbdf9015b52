import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rdkit import Chem

from gtx.report import write_run_report
from gtx.report.context import RunReport
from gtx.report.kinds import number
from gtx.report.page import write_report
from gtx.report.tables import headline
from gtx.tasks import BinaryClassification, Regression, Task
from gtx.tasks.regression import NumberObjective

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
        self.scripts: list[str] = []
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
        if "script" in self.open:
            self.scripts.append(data)
        elif "style" not in self.open:
            self.words.append(data)


@pytest.fixture
def page(tmp_path):
    """Write a page, which needs nothing beside it."""

    def write(report) -> Page:
        write_report(tmp_path / "report.html", report)
        assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
        found = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
        assert "img" not in found.tags
        assert not any(word in script for script in found.scripts for word in ("fetch", "import "))
        assert [ref for ref in found.references if not ref.startswith(("#", "data:"))] == []
        assert {ref[1:] for ref in found.references if ref.startswith("#")} <= set(found.ids)
        assert len(found.ids) == len(set(found.ids))
        return found

    return write


@pytest.fixture
def words(page):
    """The text of a page that has the labels of its pictures in their place."""
    return lambda report: page(report).text


@pytest.fixture
def pictures(write_picture, monkeypatch):
    """Pages have their pictures, most of the time of a page."""
    monkeypatch.setattr("gtx.report.gallery.inline", write_picture)


def test_the_molecules_furthest_off_come_first(words, make_report):
    report = make_report(targets=("additive",))
    shown = re.findall(r"row (\d+) · (\S+)", words(report))
    rows = [int(row) - 1 for row, _ in shown]
    assert [SMILES[row] for row in rows] == [smiles for _, smiles in shown]
    errors = np.abs(report.prediction - report.y)[SPLIT["test"], 0]
    measured = ~np.isnan(errors)
    expected = SPLIT["test"][measured][np.argsort(-errors[measured], kind="stable")][:12]
    assert rows == expected.tolist()


class Angles(Regression):
    def errors(self, prediction, y):
        return (prediction - y + 180) % 360 - 180


@pytest.mark.usefixtures("pictures")
def test_errors_are_those_of_the_task(make_report, tmp_path):
    angle = np.linspace(-179, 179, len(SMILES))[:, None]
    turned = {"y": angle, "prediction": (angle + 3 + 180) % 360 - 180, "low": None, "high": None, "rivals": {}}
    report = make_report(Angles, targets=("angle",), **turned)
    write_report(tmp_path / "report.html", report)
    html = (tmp_path / "report.html").read_text()
    assert set(re.findall('class="error">(.*?)<', html)) == {"+3.00"}
    assert "test, mean +3.00" in html


def test_a_model_of_ones_own_task_is_used_in_python(words, make_report):
    file = "my run/model.gtx"
    both = [words(replace(make_report(targets=("additive",), task_class=n), model_file=file)) for n in ("", "Angles")]
    assert ["gtx predict 'my run/model.gtx' molecules.csv" in text for text in both] == [True, False]
    assert f'gtx.load("{file}")' in both[0] and f'gtx.load("{file}", task=Angles)' in both[1]
    assert [Angles("a").custom, Regression("a").custom, Regression("a", level="atom").custom] == [True, False, False]


def test_what_is_wrong_with_the_data_stands_above_the_first_score(words, make_report):
    report = make_report()
    cautions = ["only 3 test: with so few molecules, good and bad scores are mostly luck", "1 molecule stands in both"]
    text = words(replace(report, cautions=cautions, leaked={("train", "test"): 1}))
    first = text.index("Test RMSE")
    for said in ("Only 3 test: with so few", "1 molecule stands in both.", "1 row of 121 rows could not be used"):
        assert 0 < text.index(said) < first
    assert "In two sets at once 1 molecule in training and test" in text


@pytest.mark.slow
def test_every_point_and_row_knows_its_molecule(page, pictures, make_report, tmp_path):
    report = make_report(targets=("additive", "letters"))
    found = page(report)
    html = (tmp_path / "report.html").read_text()
    held = json.loads(found.scripts[0])
    for t in range(2):
        judged = {f"{row}.{t}" for part in ("val", "test") for row in report.measured(part, t)}
        assert set(re.findall(rf'<use data-molecule="(\d+\.{t})"', html)) == judged
        tested = {f"{row}.{t}" for row in report.measured("test", t)}
        assert set(re.findall(rf'<tr data-molecule="(\d+\.{t})"', html)) == tested
    for row, told in held.items():
        assert told["smiles"] == SMILES[int(row)] and told["row"] == int(row) + 1
        mol = Chem.MolFromSmiles(told["smiles"])
        assert (len(told["atoms"]), len(told["bonds"])) == (mol.GetNumAtoms(), mol.GetNumBonds())
        t, words = next(iter(told["said"].items()))
        assert words.startswith(f"measured {number(report.y[int(row), int(t)])}, predicted ")
    nearest = re.findall(r"nearest in training (\S+) measured (\S+) row (\d+)", found.text)
    assert len(nearest) == 12
    assert all(int(row) - 1 in SPLIT["train"] and 0 < float(alike) <= 1 for alike, _, row in nearest)
    assert found.tags.count("figcaption") == found.tags.count("figure") > 10
    parity = [caption for caption in re.findall("<figcaption>(.*?)</figcaption>", html) if "vs. measured" in caption]
    assert len(parity) == len(set(parity)) == 4  # of two targets, validation and test


def test_nothing_of_the_users_becomes_markup(page, make_report):
    nasty = "<script>alert(1)</script>"
    report = make_report(title=nasty, targets=(f"{nasty}a", "$b$"), settings={nasty: nasty}, footnotes=[nasty])
    found = page(report)
    assert found.tags.count("script") == 2 and not any(nasty in script for script in found.scripts)
    assert found.text.count(nasty) >= 5


def test_without_a_test_set_the_validation_molecules_are_judged(words, make_report):
    split = {**SPLIT, "test": SPLIT["test"][:0]}
    text = words(make_report(targets=("additive",), split=split))
    assert "Validation RMSE" in text and "There is no test set: the first score is for the validation molecules" in text


def test_molecules_of_folds_are_counted_once(words, make_report):
    train = np.concatenate([SPLIT["train"], SPLIT["val"]])
    split = {"train": train, "folds": train, "test": SPLIT["test"]}
    text = words(make_report(targets=("additive",), split=split, settings={"training": {"folds": 2}}))
    assert "Used 120 molecules of 121 rows" in text and "trained on 100 molecules in 2 folds; out-of-fold" in text
    report = make_report(targets=("additive",), split=split | {"test": SPLIT["test"][:0]})
    undefined = report.task.objective.evaluate(report.y[:0], report.prediction[:0])
    report = replace(report, baselines={"mean": dict.fromkeys(split, undefined)})
    assert headline(report).verdict == "No verdict: the baselines have no out-of-fold predictions to compare with."


def test_a_target_measured_in_training_alone_has_no_pictures_of_predictions(make_report, y, tmp_path):
    y[np.concatenate([SPLIT["val"], SPLIT["test"]]), 0] = np.nan
    report = make_report()
    lines = write_report(tmp_path / "report.html", report)
    assert not any("Measured" in line for line in lines)  # that of the training molecules is drawn
    assert "–" in Page((tmp_path / "report.html").read_text()).text


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


@pytest.mark.parametrize("task", [Regression, BinaryClassification])
def test_baselines_what_was_learnt_and_predictions_that_are_numbers_may_lack(words, make_report, task):
    text = words(make_report(task, targets=("additive",), baselines={}, histories=[]))
    assert "Random forest" not in text and "Loss" not in text and "the epoch" not in text
    report = make_report(task, targets=("additive",), prediction=np.full((len(SMILES), 1), np.nan))
    assert "Largest errors" in words(report)


@pytest.mark.parametrize("task", [Regression, BinaryClassification])
def test_errors_are_shown_by_similarity_and_classes_at_thresholds(words, make_report, task):
    text = words(make_report(task, targets=("additive",)))
    assert "Error of additive by similarity" in text and "Random forest" in text and "Loss by epoch" in text
    assert "20 test molecules with 80 training molecules" in text
    for name in ("Confusion of additive", "balanced accuracy", "highest F1"):
        assert (name in text) == (task is BinaryClassification)
    assert "could not be drawn" not in text


def test_infinite_intervals_are_not_drawn(words, make_report):
    bound = np.tile([np.inf, 1.0], (len(SMILES), 1))
    prediction = make_report().prediction
    text = words(make_report(low=prediction - bound, high=prediction + bound))
    assert "Coverage of the intervals of letters" in text and "Coverage of the intervals of additive" not in text


@pytest.mark.slow
def test_ten_thousand_molecules_make_a_page_of_moderate_size(tmp_path, pictures, make_report):
    report = make_report(targets=("letters",))
    many = np.random.default_rng(0).integers(len(SMILES), size=10_000)
    split = dict(zip(("train", "val", "test"), np.split(np.arange(10_000), [4_000, 7_000]), strict=True))
    large = replace(
        report,
        smiles=[SMILES[i] for i in many],
        store=report.store.subset(many),
        row_numbers=np.arange(1, 10_001),
        split=split,
        rivals={name: said[many] for name, said in report.rivals.items()},
        **{name: getattr(report, name)[many] for name in ("y", "prediction", "low", "high")},
    )
    write_report(tmp_path / "report.html", large)
    assert (tmp_path / "report.html").stat().st_size < 600_000


def test_a_task_of_which_nothing_is_known_has_a_page_of_its_scores(make_report, tmp_path):
    class Own(Task):
        name = "own"
        metrics = NumberObjective.metrics
        columns = objective = answers = None

    report = make_report(targets=("additive",))
    facts = RunReport(**{field.name: getattr(report, field.name) for field in fields(RunReport)})
    assert write_run_report(Own(("additive",)), tmp_path / "report.html", None, None, facts) == []
    text = Page((tmp_path / "report.html").read_text()).text
    assert "This model predicts additive from" in text and f"{report.scores['test']['rmse']:#.3g}" in text
