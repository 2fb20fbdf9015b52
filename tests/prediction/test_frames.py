import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gtx.base.errors import InputError
from gtx.prediction import DataFramePredictor, predict_table

from .dying import MODEL

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
FRAME = pd.DataFrame(
    {"id": [7, 8, 9, 10], "smiles": ["CCO", "C1CC", None, "C[Si](C)(C)C"], "error": [0.5, np.nan, 1.5, 2.0]},
    index=[3, 3, 1, 0],
)


@pytest.fixture
def predict() -> DataFramePredictor:
    return DataFramePredictor(MODEL, device="cpu")


def test_a_frame_comes_out_with_what_a_table_of_its_rows_would_have(predict: DataFramePredictor, tmp_path) -> None:
    found = predict(FRAME)
    pd.testing.assert_frame_equal(found[FRAME.columns], FRAME)
    FRAME.to_parquet(tmp_path / "in.parquet", index=False)
    predict_table(predict.predictor, tmp_path / "in.parquet", tmp_path / "out.parquet")
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert list(found) == list(table) and "error1" in found
    answers = [name for name in table if table[name].dtype == "float64" and name != "error"]
    np.testing.assert_array_equal(found[answers], table[answers])
    for name in ("error1", "warning"):
        assert found[name].notna().sum() == (2 if name == "error1" else 1)
        assert found[name].fillna("").tolist() == table[name].fillna("").tolist()
    nothing, part = predict.partitions(iter([FRAME.head(0), FRAME.head(1)]))
    assert len(nothing) == 0 and len(part) == 1
    for frame in (nothing, part):
        pd.testing.assert_series_equal(frame.dtypes, found.dtypes)


def test_it_is_pickled_small_and_loads_the_model_once(tmp_path) -> None:
    model = shutil.copy(MODEL, tmp_path / "model.gtx")
    predict, expected = (DataFramePredictor(file, device="cpu") for file in (model, MODEL))
    predict(FRAME)
    packed = pickle.dumps(predict)
    assert len(packed) < 1000
    other = pickle.loads(packed)
    other(FRAME)
    model.unlink()
    for each in (predict, other):
        pd.testing.assert_frame_equal(each(FRAME), expected(FRAME))


def test_a_column_that_is_missing_is_named(predict: DataFramePredictor) -> None:
    with pytest.raises(InputError, match=r"which column holds the SMILES.*the columns are 'id', 'error'"):
        predict(FRAME[["id", "error"]])
    named = DataFramePredictor(MODEL, "molecule", device="cpu")
    assert named(FRAME.rename(columns={"smiles": "molecule"}))["error1"].isna().sum() == 2


def test_the_examples_of_the_page_run(tmp_path, monkeypatch) -> None:
    blocks = [b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import ray" not in b]
    plain, dask = ([b for b in blocks if ("import dask" in b) == theirs] for theirs in (False, True))
    monkeypatch.chdir(tmp_path)
    for folder in ("run", "library", "molecules"):
        (tmp_path / folder).mkdir()
    shutil.copy(MODEL, "run/model.gtx")
    for place in ("library/a.csv", "molecules/a.csv", "molecules/b.csv"):
        FRAME.to_csv(place, index=False)
    exec("\n".join(plain), {})
    assert len(pd.read_csv("best/top.csv")) == 2
    library = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dask[dataframe]'")
    with library.config.set(scheduler="synchronous"):
        exec("\n".join(dask), {})
    found, expected = pd.read_parquet("by-dask"), pd.concat([DataFramePredictor(MODEL, device="cpu")(FRAME)] * 2)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True), check_dtype=False)


@pytest.mark.slow
def test_the_example_of_ray_data_runs(ray_folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(ray_folder)
    for folder in ("run", "molecules"):
        Path(folder).mkdir()
    shutil.copy(MODEL, "run/model.gtx")
    frame = pd.DataFrame({"id": range(20), "smiles": ["C" * (1 + i % 7) + "O" for i in range(19)] + ["C1CC"]})
    frame.to_csv("molecules/a.csv", index=False)
    (block,) = (b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import ray" in b)
    exec(block, {})
    found = pd.read_parquet("by-ray").sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found, DataFramePredictor("run/model.gtx", device="cpu")(frame), check_dtype=False)
