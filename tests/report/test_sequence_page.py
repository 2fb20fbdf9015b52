from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gtx.report.context import RunReport
from gtx.sequence.report import write_run_report
from gtx.sequence.sequences import TokenVocabulary
from gtx.sequence.task import GeneratedTexts, SequenceGenerationTask

from .conftest import facts
from .test_page import Page

SMILES = ["CCO", "CCN", "CCC", "CO", "CN", "CC"]


def page(folder: Path, smiles: bool = True, **changes: object) -> Page:
    scores = {"molecule_accuracy": 0.5, "exact_accuracy": 0.25, "token_accuracy": 0.9, "perplexity": 1.5, "invalid": 1}
    history = [{"epoch": i, "lr": 1e-3, "train_loss": 2 / (i + 1), "val_loss": 1 / (i + 1)} for i in range(4)]
    history = [row | {"val_perplexity": 3 / (row["epoch"] + 1), "val_token_accuracy": 0.5} for row in history]
    split = {"train": np.arange(2), "val": np.array([2]), "test": np.array([3, 4, 5])}
    own = {"split": split, "scores": dict.fromkeys(("train", "val", "test"), scores), "histories": [history]}
    described = facts(smiles=SMILES, **own | changes)
    task = SequenceGenerationTask("product", texts=SMILES, vocabulary=TokenVocabulary.of(SMILES))
    written, right = ["CCO", "CCN", "CCC", "CO", "CO", "C("], ["CCO", "CCN", "CCC", "CO", "CO", None]
    more = {"log_probability": np.zeros(6), "cut": np.zeros(6, bool), "warnings": [[]] * 6}
    answers = GeneratedTexts(texts=written, canonical=right if smiles else None, **more)
    dataset = SimpleNamespace(store=described["store"].with_targets(np.arange(6.0)[:, None]))
    write_run_report(task, folder / "report.html", dataset, answers, RunReport(**described))
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_says_how_much_is_right_and_shows_what_is_wrong(tmp_path) -> None:
    made = page(tmp_path)
    assert "This model reads a molecule and writes product . It knows 3 tokens." in made.text
    assert "Test sequences, right molecule 0.500" in made.text
    assert "2 sequences of the test set are wrong" in made.text
    assert "row 5 of CN right CN written CO" in made.text
    assert "row 6 written invalid SMILES of CC right CC written C(" in made.text
    assert all(f"#{name}" in made.references and name in made.ids for name in ("scores", "wrong", "data", "learning"))
    assert made.tags.count("svg") == 1 + 3 + 5  # the brand, two right and one wrong molecule, sizes and four curves
    assert "product_valid" in made.text and "Validation perplexity" in made.text


def test_says_what_cannot_be_drawn(tmp_path, undrawable: None) -> None:
    made = page(tmp_path)
    assert made.text.count("in row 5 could not be drawn.") == 2 and "What is written in row 6" not in made.text
    assert "3 pictures could not be drawn: RDKit cannot draw" in made.text and "of CN right CN written CO" in made.text


@pytest.mark.parametrize("empty", [True, False])
def test_texts_that_are_no_smiles_are_not_drawn(empty: bool, tmp_path) -> None:
    scores = {"exact_accuracy": None if empty else 0.5, "token_accuracy": 0.9, "perplexity": 1.5}
    made = page(tmp_path, smiles=False, scores=dict.fromkeys(("train", "val", "test"), scores))
    assert made.tags.count("svg") == 1 + 5 and "product_valid" not in made.text
    assert "Test sequences, right text " + ("–" if empty else "0.500") in made.text
