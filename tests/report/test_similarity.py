from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import BulkTanimotoSimilarity
from scipy import sparse

from gtx.data import similarity
from gtx.data.similarity import find_most_similar
from gtx.molecules import morgan_counts, murcko_scaffold
from gtx.report.molecules import compared, group_scores, groups, nearest, neighbours, scaffold_kinds

from .conftest import SMILES, SPLIT


def test_the_nearest_is_as_similar_as_rdkit_says() -> None:
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    ours, theirs = [*SMILES[::7], "C" * 240, "[Na+].[Cl-]"], [*SMILES[1::5], "C" * 200, "[H][H]"]
    counts = (sparse.csr_array(morgan_counts(texts)) for texts in (ours, theirs))
    prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(text)) for text in theirs]
    all_of = [BulkTanimotoSimilarity(generator.GetCountFingerprint(Chem.MolFromSmiles(text)), prints) for text in ours]
    found, place = find_most_similar(*counts)
    assert found == pytest.approx([max(alike) for alike in all_of], abs=1e-6)
    assert found == pytest.approx([alike[k] for alike, k in zip(all_of, place, strict=True)], abs=1e-6)


def test_judged_molecules_are_compared_with_training_molecules(make_report) -> None:
    found = nearest(make_report())
    assert found.rows.tolist() == sorted(SPLIT["test"])
    assert (found.similarity > 0).all() and (found.similarity <= 1).all()
    assert np.isin(found.neighbour, SPLIT["train"]).all()
    assert compared(make_report()) == "20 test molecules with 80 training molecules"


def test_molecules_are_parted_by_scaffold_and_by_similarity_without_loss(make_report) -> None:
    report = make_report()
    near = nearest(report)
    kinds = scaffold_kinds(report, near)
    known = {murcko_scaffold(SMILES[row]) for row in SPLIT["train"]}
    for row, kind in zip(near.rows, kinds, strict=True):
        own = murcko_scaffold(SMILES[row])
        assert kind == ("no ring" if not own else "known scaffold" if own in known else "new scaffold")
    scored = group_scores(report, near, kinds, "ridge")
    assert sum(group["molecules"] for group in scored) == 2 * len(near.rows)
    for (name, rows), group in zip(groups(near, kinds), scored, strict=True):
        assert group["name"] == name and group["molecules"] == len(rows)
        assert (
            group["scores"]["per_target"] == report.task.evaluate(report.y[rows], report.prediction[rows])["per_target"]
        )
    fresh = make_report(smiles=[*SMILES[:-1], "c1ccc2ccccc2c1"], split={**SPLIT, "test": np.array([len(SMILES) - 1])})
    assert scaffold_kinds(fresh, nearest(fresh)).tolist() == ["new scaffold"]


def test_a_molecule_that_was_not_drawn_has_a_neighbour_too(make_report, monkeypatch: pytest.MonkeyPatch) -> None:
    report = make_report()
    whole, rows = neighbours(report, nearest(report), []), SPLIT["test"].tolist()
    monkeypatch.setattr(similarity, "MOST_SCORED", 5)
    near = nearest(report)
    assert len(near.rows) == 5 and neighbours(report, near, rows) == whole
