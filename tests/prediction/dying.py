"""A model that calls a function with all molecules that it predicts, such as one that kills its process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gtx

MODEL = Path(__file__).parent / "golden" / "regression.gtx"


def dying(deadly: Callable[[Any], None]) -> Any:
    """The model `MODEL`, which calls `deadly(store)` before it predicts."""
    predictor = gtx.load(MODEL, device="cpu")

    class Dying:
        header, task, device = predictor.header, predictor.task, predictor.device
        members, kernel_member = predictor.members, predictor.kernel_member
        output_columns = staticmethod(predictor.output_columns)

        def predict_store(self, store: Any) -> Any:
            deadly(store)
            return predictor.predict_store(store)

    return Dying()
