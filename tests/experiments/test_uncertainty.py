"""The comparison of methods of uncertainty."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import uncertainty
from gtx.data import public_datasets
from tests.experiments import toy_recipe


@pytest.mark.slow
def test_test_rows_are_those_of_the_run_whatever_columns_the_set_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = toy_recipe.write(tmp_path / "toy.csv", 90)
    monkeypatch.setitem(public_datasets.PUBLIC_DATASETS, "toy", toy_recipe.known(file))
    found = uncertainty.scores_of_method("toy", "none", 0, epochs=1)
    pd.read_csv(file).drop(columns="split").to_csv(file, index=False)
    assert uncertainty.scores_of_method("toy", "none", 0, epochs=1) == pytest.approx(found, nan_ok=True)
