"""The folder that predictions go to: whose they are, which shards are done, and the best rows of all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gtx.data.library.folder import check_unchanged, held
from gtx.data.library.shards import Done, Library, Shard
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.prediction.library.work import FOOTER
from gtx.prediction.selecting import Selection, goodness

BEST = "top.parquet"


@dataclass(frozen=True)
class Outputs:
    """A folder of parts.

    Attributes:
        folder: where `_gtx.json` is, and `top.parquet` where the best are asked for.
        selection: which rows are written.
    """

    folder: Path
    selection: Selection

    @property
    def parts(self) -> Path:
        """Where the parts are; beside the best of all, in a folder that no reader of data sets enters."""
        return self.folder if self.selection.top is None else self.folder / "_shards"

    def held(self, facts: dict[str, Any]) -> AbstractContextManager[None]:
        """Nobody else writes to the folder within, see `gtx.data.library.folder.held`."""
        return held(self.folder, facts, "other predictions")

    def done(self, library: Library) -> dict[Shard, Done]:
        """The shards that are done already. A part that cannot be read is done anew.

        Raises:
            InputError: a part belongs to a file that has changed, or is no more.
        """
        found = {}
        for path in sorted(self.parts.rglob("*.parquet")):
            try:
                said = json.loads(pq.read_metadata(path).metadata[FOOTER.encode()])
                shard, done = Shard(*said["shard"]), Done(*said["done"])
            except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
                continue
            check_unchanged(library, shard, path)
            found[shard] = done
        return found

    def gather(self, shards: Sequence[Shard]) -> int:
        """Write the best rows of all, out of the best of each shard, as `top.parquet`; how many they are.

        Raises:
            InputError: the columns of the files have different types.
        """
        best: pa.Table | None = None
        for shard in shards:
            part = pq.ParquetFile(self.parts / shard.part).read()
            try:
                joined = part if best is None else pa.concat_tables([best, part], promote_options="permissive")
            except pa.ArrowException as reason:
                raise InputError(f"the tables have columns of one name and different types: {reason}") from None
            cells = joined.column(self.selection.by).to_pylist()
            worth = np.array([goodness(cell, self.selection.lowest) for cell in cells])
            order = np.argsort(-worth, kind="stable")  # of equal ones the earlier comes first
            best = joined.take(order[: self.selection.top])
        if best is None:
            return 0
        with whole_file(self.folder / BEST) as file:
            pq.write_table(best.replace_schema_metadata(None), file)
        return len(best)
