"""Model files that earlier versions made predict what they predicted then; see `golden/README.md`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gtx

FILES = sorted((Path(__file__).parent / "golden").glob("*.gtx"))
PRECISION = 1e-5  # of the largest number in a column: another processor rounds otherwise


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_file_predicts_what_it_did(file: Path) -> None:
    was = pd.read_json(file.with_suffix(".json"), dtype=False).replace({np.nan: None})
    now = gtx.load(file, device="cpu").predict(was.smiles).replace({np.nan: None})
    assert list(now) == list(was)
    for name in was:
        numbers = [isinstance(value, float) for value in was[name]]
        assert now[name][~np.array(numbers)].tolist() == was[name][~np.array(numbers)].tolist()
        before, after = (table[name][numbers].to_numpy(float) for table in (was, now))
        np.testing.assert_allclose(after, before, rtol=0, atol=PRECISION * np.abs(before).max(initial=0))
