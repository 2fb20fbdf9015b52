"""Predictions for pandas frames, as Ray Data, Dask and Spark hand them to a function of their user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gtx.data import chunk_size
from gtx.data.columns import FIRST_ROWS, MoleculeColumn, Row, Table, damage, smiles_index
from gtx.data.feature_columns import cell_text
from gtx.data.table_writer import output_header
from gtx.data.targets import with_components
from gtx.prediction.foundation import FOUNDATION
from gtx.prediction.loading import load
from gtx.prediction.model_file import ModelHeader
from gtx.prediction.streaming import NOT_FINITE, Answered, Answering, answer_stream, as_rows

_DTYPES = {float: "float64", bool: "boolean", str: "string"}  # the same for frames without rows or without a text


class FramePredictor:
    """A frame in, the same frame with its predictions out: `<target>_pred` and the like, `error` and `warning`.

    It is pickled as its arguments, a few hundred bytes; each process loads the model when it first predicts.

    Args:
        model: a model file that every machine can read, or `foundation`.
        smiles_column: default: as in `gtx.prediction.predict_table`.
        options: of `gtx.load`, such as `device="cpu"`.
    """

    def __init__(self, model: str | Path, smiles_column: str | None = None, **options: Any) -> None:
        self.model = FOUNDATION if model == FOUNDATION else Path(model).resolve()
        self.smiles_column, self.options = smiles_column, options

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "predictor"}

    @cached_property
    def predictor(self) -> Answering:
        """The model, loaded when it is first asked for."""
        return load(self.model, **self.options)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict the rows of a frame, for `map_batches` of Ray Data and `map_partitions` of Dask.

        Returns:
            The frame with its index and its columns, and after them numbers as float64 and texts as strings. A row
            that cannot be used has no numbers, and an `error` that says why.

        Raises:
            InputError: the frame has no column of molecules, or lacks one that the model reads.
        """
        table = self._table(frame)
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, named)[len(table.columns) :]
        nothing, made = [None] * len(named), []
        for rows in table.chunks(chunk_size(self.predictor.header.featuriser)):
            chunk = [row.readable for row in rows], [row.coordinates for row in rows], [row.features for row in rows]
            for done in answer_stream(self.predictor, [chunk], 0):
                made += _lines(rows, done, nothing)
        answers = pd.DataFrame(made, index=frame.index, columns=range(len(header)), dtype=object)
        kinds = [*named.values(), str, str]
        columns = {
            name: answers[i].astype(_DTYPES[kind]) for i, (name, kind) in enumerate(zip(header, kinds, strict=True))
        }
        return frame.assign(**columns)

    def partitions(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Predict frame after frame, for `mapInPandas` of Spark."""
        return map(self, frames)

    def _table(self, frame: pd.DataFrame) -> Table:
        header: ModelHeader = self.predictor.header
        columns, components = list(map(str, frame.columns)), header.featuriser.components
        cells = frame.astype(object).where(frame.notna(), "")
        asked = components[0] if components else self.smiles_column
        first = cells.head(FIRST_ROWS).astype(str)
        place = smiles_index(columns, MoleculeColumn(asked, header.smiles_column), lambda: first.to_numpy().tolist())

        def rows() -> Iterator[Row]:
            for number, values in enumerate(cells.itertuples(index=False, name=None), start=1):
                texts = list(map(cell_text, values))
                yield Row(number, texts, texts[place], error=damage(texts[place]))

        table = Table(columns, columns[place], rows(), len(frame))
        if components:
            table = with_components(table, components[1:])
        return header.features.of_table(table) if header.features else table


def _lines(rows: list[Row], done: Answered, nothing: list[None]) -> Iterator[tuple[Any, ...]]:
    """Per row the answer, the error and the warning."""
    own = dict(zip(done.good.tolist(), as_rows(done.answers), strict=True))
    said = dict(zip(done.good.tolist(), zip(done.answers.finite, done.answers.warnings, strict=True), strict=True))
    for i, (row, unread, odd) in enumerate(zip(rows, done.errors, done.warnings, strict=True)):
        finite, remarks = said.get(i, (True, []))
        error = row.error or unread or (None if finite else NOT_FINITE)
        yield *(nothing if error else own[i]), error, "; ".join([*odd, *remarks]) or None
