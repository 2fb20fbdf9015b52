"""Model files at hand predict what they predicted when they were made; see `golden/README.md`."""

import numpy as np
import pandas as pd
import pytest

import gtx
from tests.tables import GOLDEN

# by file, how much the network says of a target, in the target's units; another processor rounds it otherwise
SPREAD = {
    "regression": 2.0,
    "reference": 15.0,
    "classification": 1.0,
    "ensemble": 1.0,
    "sequence": 5.0,
    "multiclass": 1.0,
    "mix": 4.0,
    "neighbours": 4.0,
}


def test_every_file_is_held() -> None:
    assert {file.stem for file in GOLDEN.glob("*.gtx")} == set(SPREAD)


@pytest.mark.parametrize("file", SPREAD)
def test_an_old_file_predicts_what_it_did(file: str) -> None:
    was = pd.read_json(GOLDEN / f"{file}.json", dtype=False).replace({np.nan: None})
    now = gtx.load(GOLDEN / f"{file}.gtx", device="cpu").predict(was.smiles).replace({np.nan: None})
    assert list(now) == list(was)
    for name in was:
        numbers = [isinstance(value, float) for value in was[name]]
        assert now[name][~np.array(numbers)].tolist() == was[name][~np.array(numbers)].tolist()
        before, after = (table[name][numbers].to_numpy(float) for table in (was, now))
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-5 * SPREAD[file])
