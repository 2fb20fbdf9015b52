"""Predictions for pandas data frames, as Ray Data, Dask and Spark pass them to user functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gtx.data.cells import cell_text
from gtx.data.rows import MoleculeColumn, RowLog, Table, first_side, smiles_index
from gtx.data.table_writer import output_header
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.prediction.inputs import first_cells
from gtx.prediction.loading import load_predictor
from gtx.prediction.model_file import ModelFileHeader
from gtx.prediction.predictor import Predictor
from gtx.prediction.streaming import make_table, predict_rows

_DTYPES = {float: "float64", bool: "boolean", str: "string"}  # also of frames without rows


class DataFramePredictor:
    """Callable that adds predictions to a data frame: `<target>_pred` and the like, `error` and `warning`.

    A pickled `DataFramePredictor` has a few hundred bytes; each process loads the model at the first prediction.

    Args:
        model: path of a model file that every machine can read, or `foundation`.
        smiles_column: name of the column of SMILES; for the default, see `gtx.prediction.predict_table`.
        options: further arguments of `gtx.load`, such as `device="cpu"`.
    """

    def __init__(self, model: str | Path, smiles_column: str | None = None, **options: Any) -> None:
        self.model: str | Path = model if model == FOUNDATION_MODEL else Path(model).resolve()
        self.smiles_column = smiles_column
        self.options: dict[str, Any] = options

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "predictor"}

    @cached_property
    def predictor(self) -> Predictor:
        """Predictor of the model, loaded at first use."""
        return load_predictor(self.model, **self.options)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict the rows of a frame, for `map_batches` of Ray Data and `map_partitions` of Dask.

        Returns:
            The frame with its index and its columns, followed by the predictions: numbers as float64, texts as strings.
            A row that cannot be used has no numbers, and an `error` with the reason.

        Raises:
            InputError: the frame has no column of molecules, or lacks one that the model reads.
        """
        table = self._table(frame)
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, list(named))[len(table.columns) :]
        parts = predict_rows(self.predictor, table, RowLog(), workers=0)
        lines = [cells[len(table.columns) :] for _, lines, _ in parts for cells, _ in lines]
        answers = pd.DataFrame(lines, index=frame.index, columns=range(len(header)), dtype=object)
        types: dict[int, Any] = {i: _DTYPES[kind] for i, kind in enumerate([*named.values(), str, str])}
        answers = answers.astype(types)
        return frame.assign(**{name: answers[i] for i, name in enumerate(header)})

    def partitions(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Predict one frame after the other, for `mapInPandas` of Spark."""
        return map(self, frames)

    def _table(self, frame: pd.DataFrame) -> Table:
        header: ModelFileHeader = self.predictor.header
        columns, components = list(map(str, frame.columns)), header.featuriser.components
        requested = components[0] if components else self.smiles_column
        column = MoleculeColumn(first_side(requested), first_side(header.smiles_column))
        place = smiles_index(columns, column, lambda: first_cells(frame))
        rows = frame.astype(object).where(frame.notna(), "").itertuples(index=False, name=None)
        return make_table(header, columns, place, (list(map(cell_text, row)) for row in rows), len(frame), requested)
