from __future__ import annotations

import numpy as np
import pytest

from gtx.data import similarity
from gtx.molecules import murcko_scaffold
from gtx.report.molecules import compared, group_scores, groups, neighbours, scaffold_kinds

from .conftest import SMILES, SPLIT


def test_judged_molecules_are_compared_with_training_molecules(make_report) -> None:
    found = make_report().nearest
    assert found.rows.tolist() == sorted(SPLIT["test"])
    assert (found.similarity > 0).all() and (found.similarity <= 1).all()
    assert np.isin(found.neighbour, SPLIT["train"]).all()
    assert compared(make_report()) == "20 test molecules with 80 training molecules"


def test_molecules_are_parted_by_scaffold_and_by_similarity_without_loss(make_report) -> None:
    report = make_report()
    near, kinds = report.nearest, scaffold_kinds(report)
    known = {murcko_scaffold(SMILES[row]) for row in SPLIT["train"]}
    for row, kind in zip(near.rows, kinds, strict=True):
        own = murcko_scaffold(SMILES[row])
        assert kind == ("no ring" if not own else "known scaffold" if own in known else "new scaffold")
    scored = group_scores(report, kinds, "ridge")
    assert sum(group["molecules"] for group in scored) == 2 * len(near.rows)
    for (name, rows), group in zip(groups(near, kinds), scored, strict=True):
        assert group["name"] == name and group["molecules"] == len(rows)
        assert (
            group["scores"]["per_target"] == report.task.evaluate(report.y[rows], report.prediction[rows])["per_target"]
        )
    fresh = make_report(smiles=[*SMILES[:-1], "c1ccc2ccccc2c1"], split={**SPLIT, "test": np.array([len(SMILES) - 1])})
    assert scaffold_kinds(fresh).tolist() == ["new scaffold"]


def test_a_molecule_that_was_not_drawn_has_a_neighbour_too(make_report, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, rows = neighbours(make_report(), []), SPLIT["test"].tolist()
    monkeypatch.setattr(similarity, "MOST_SCORED", 5)
    report = make_report()
    assert len(report.nearest.rows) == 5 and neighbours(report, rows) == whole


def test_without_judged_molecules_nothing_is_compared(make_report) -> None:
    report = make_report(split={"train": np.arange(len(SMILES)), "val": np.arange(0), "test": np.arange(0)})
    assert not len(report.nearest.rows) and not list(groups(report.nearest, scaffold_kinds(report)))
