"""The folder that predictions go to: whose they are, which shards are done, and the best rows of all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from gtx.errors import InputError
from gtx.files import whole_file, write_text
from gtx.prediction.library.shards import Library, Shard
from gtx.prediction.library.work import FOOTER, Done
from gtx.prediction.selecting import Selection, goodness

FACTS = "_gtx.json"
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

    @contextmanager
    def held(self, facts: dict[str, Any]) -> Iterator[None]:
        """Nobody else writes to the folder within; what a killed process has left there is removed.

        Args:
            facts: plain values that decide what is written, kept for who goes on.

        Raises:
            InputError: somebody else is there, or the folder holds something else.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; the predictions of a folder go to a folder")
        file, facts = self.folder / FACTS, json.loads(json.dumps(facts))  # as they will be read
        if self.folder.exists() and not file.exists() and any(p.name != ".lock" for p in self.folder.iterdir()):
            raise InputError(f"{self.folder} holds other files: give another --out, or empty it")
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock", blocking=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(f"another gtx predict writes to {self.folder}: wait for its end") from None
        try:
            if file.exists():
                self._check(facts)
            else:
                write_text(file, json.dumps(facts, indent=1))
            self._sweep()
            yield
        finally:
            self._sweep()
            (self.folder / ".lock").unlink(missing_ok=True)
            lock.release()

    def _check(self, facts: dict[str, Any]) -> None:
        try:
            before = json.loads((self.folder / FACTS).read_text())
            other = [name for name in {**before, **facts} if before.get(name) != facts.get(name)]
        except (ValueError, AttributeError, TypeError):
            raise InputError(f"{self.folder / FACTS} is damaged: give another --out, or empty the folder") from None
        if other:
            raise InputError(
                f"{self.folder} holds other predictions ({other[0]}: {before.get(other[0])}, and now "
                f"{facts.get(other[0])}): give another --out, or empty it"
            )

    def _sweep(self) -> None:
        for pattern in (".*.part", ".*.journal"):
            for left in self.folder.rglob(pattern):
                left.unlink(missing_ok=True)

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
            if library.stamps.get(shard.file) != shard.stamp:
                what = "has changed since" if shard.file in library.stamps else "is not there any more, but"
                raise InputError(f"{library.root / shard.file} {what} {path} was written: remove its parts")
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
