"""A model that calls a function with all molecules that it predicts, such as one that kills its process."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gtx
from gtx.prediction import predict_folder
from tests.tables import GOLDEN

MODEL = GOLDEN / "regression.gtx"


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


def predict_until_killed(library: Path, out: Path, engine: Any, mark: str) -> None:
    """Predict a folder in this process, which a molecule of ten atoms kills once the first table is predicted."""
    os.environ["GTX_TEST"] = mark  # of the processes that Ray starts, too
    killed = os.getpid()

    def kill(store: Any) -> None:
        if (store.sizes == 10).any():
            while not (out / "a.csv").exists():
                time.sleep(0.02)
            os.kill(killed, signal.SIGKILL)
            time.sleep(60)  # until this process, a worker's, ends too

    # by Ray one table at a time: each of its workers, and the reading process of each, would import everything
    predict_folder(dying(kill), library, out, engine=engine, workers=1 if engine else None)
