"""What each compiled file of reading saves: RDKit's function in its place is used, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.speed.bench_compiled_reading import PLAIN, without
from gtx.molecules import Featuriser, featurise_texts
from tests.molecules_for_tests import SMILES


@pytest.mark.parametrize("file", PLAIN)
def test_the_function_of_rdkit_stands_in(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used, (module, name, function) = [], PLAIN[file]
    watched = lambda *given: used.append(file) or function(*given)  # noqa: E731
    monkeypatch.setitem(PLAIN, file, (module, name, watched))
    texts = [text for text in SMILES if "[2H]" not in text]  # which is left to RDKit as a whole
    whole = featurise_texts(Featuriser(), texts)
    with without(file):
        found = featurise_texts(Featuriser(), texts)
    assert used
    for ours, theirs in zip(whole, found, strict=True):
        np.testing.assert_equal(ours, theirs)
