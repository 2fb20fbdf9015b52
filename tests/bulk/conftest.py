"""A small library, and a model that dies of some molecules."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gtx
from gtx.prediction.streaming import PredictorLike

MODEL = Path(__file__).parents[1] / "prediction" / "golden" / "regression.gtx"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five molecules are in hand together, not 500."""
    for room in ("gtx.prediction.streaming", "gtx.bulk.predicting"):
        monkeypatch.setattr(f"{room}.default_chunk_size", lambda featuriser: 5)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Three tables of 23, 20 and 12 rows, of three kinds, and a note."""
    folder = tmp_path / "library"
    (folder / "more").mkdir(parents=True)
    texts = [f"{'C' * (1 + i % 6)}{'NOS'[i % 3]}" for i in range(19)] + ["C1CC", "C[Si]", "", "CCO"]
    rows = [f'{text},"{i}\n{i}"' for i, text in enumerate(texts)]
    (folder / "a.csv").write_text("\n".join(["smiles,note", *rows, ""]))
    packed = gzip.compress("".join(f"{'C' * (1 + i % 5)}Cl number {i}\n" for i in range(20)).encode())
    (folder / "more" / "b.smi.gz").write_bytes(packed)
    frame = pd.DataFrame({"id": range(12), "smiles": ["C" * (1 + i) for i in range(11)] + ["C(C"]})
    frame.to_parquet(folder / "c.parquet", index=False)
    (folder / "README.txt").write_text("nothing to predict")
    return folder


Load = Callable[..., PredictorLike]


def dying(deadly: Callable[[Any], None]) -> Load:
    """Opens the model; `deadly(store)` is called with all molecules that it is given."""

    def load(path: Path, deadly: Callable[[Any], None], **options: Any) -> PredictorLike:
        predictor = gtx.load(path, **options)

        class Dying:
            header, task, device = predictor.header, predictor.task, predictor.device
            output_columns = staticmethod(predictor.output_columns)

            def predict_store(self, store: Any) -> Any:
                deadly(store)
                return predictor.predict_store(store)

        return Dying()

    return partial(load, deadly=deadly)
