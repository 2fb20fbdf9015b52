from __future__ import annotations

import pytest
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import BulkTanimotoSimilarity
from scipy import sparse

from gtx.data import similarity
from gtx.data.similarity import nearest_tanimoto
from gtx.molecules import morgan_counts
from gtx.report.similarity import compared, nearest

from .conftest import SMILES, SPLIT


def test_the_nearest_is_as_similar_as_rdkit_says() -> None:
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    ours, theirs = [*SMILES[::7], "C" * 240, "[Na+].[Cl-]"], [*SMILES[1::5], "C" * 200, "[H][H]"]
    counts = (sparse.csr_array(morgan_counts(texts)) for texts in (ours, theirs))
    prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(text)) for text in theirs]
    expected = [
        max(BulkTanimotoSimilarity(generator.GetCountFingerprint(Chem.MolFromSmiles(text)), prints)) for text in ours
    ]
    assert nearest_tanimoto(*counts) == pytest.approx(expected, abs=1e-6)


def test_judged_molecules_are_compared_with_training_molecules(make_report) -> None:
    found = nearest(make_report())
    assert found.rows.tolist() == sorted(SPLIT["test"])
    assert (found.similarity > 0).all() and (found.similarity <= 1).all()
    assert compared(make_report()) == "20 test molecules with 80 training molecules"


def test_of_many_molecules_a_few_are_drawn_and_said_to_be(make_report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "MOST_JUDGED", 5)
    monkeypatch.setattr(similarity, "MOST_TRAINED", 9)
    assert len(nearest(make_report()).rows) == 5
    words = "5 of 20 test molecules, drawn at random, with 9 of 80 training molecules, drawn at random"
    assert compared(make_report()) == words
