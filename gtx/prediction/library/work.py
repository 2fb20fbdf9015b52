"""What a worker does with a shard: read, predict, write its part, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from gtx.data import chunk_size
from gtx.data.ledger import Ledger
from gtx.data.library.journal import Hopeless, Journal
from gtx.data.library.shards import Done, Reader, Shard, Unreadable
from gtx.data.rows import Row
from gtx.data.table_writer import TableWriter, output_header
from gtx.errors import InputError
from gtx.prediction.answering import Answering, answer_stream
from gtx.prediction.selecting import Selection
from gtx.prediction.streaming import EVERY_ROW, opened, predicted

FOOTER = "gtx"
"""Key of the footer of a part, a JSON object: `shard`, and `done` as `Done` has it."""


@dataclass(frozen=True)
class Job:
    """What all shards have in common; pickled small, it goes to every worker.

    Attributes:
        load: gives the predictor; called once by each worker.
        root: the folder of the library.
        parts: the folder for the parts.
        columns: `smiles_column` and `smiles_columns`, as `gtx.prediction.predict_table` takes them.
        on_error: "fail" stops at the first row that cannot be used.
        selection: which rows are written.
        readers: processes that read for a worker; 0 has none, None as `gtx.prediction.predict_table`.
    """

    load: Callable[[], Answering]
    root: Path
    parts: Path
    columns: dict[str, object] = field(default_factory=dict)
    on_error: Literal["report", "fail"] = "report"
    selection: Selection = EVERY_ROW
    readers: int | None = 0

    def part(self, shard: Shard) -> Path:
        """Where the predictions of a shard go."""
        return self.parts / shard.part

    def journal(self, shard: Shard) -> Path:
        """Where a worker notes how far it is."""
        part = self.part(shard)
        return part.with_name(f".{part.name}.journal")

    def worker(self) -> ShardWorker:
        """A worker that loads the model."""
        return ShardWorker(self)


class ShardWorker:
    """Predicts one shard after the other, with a model that is loaded once.

    Args:
        job: what there is to do.
        predictor: the model, where it is at hand. A worker that loads it has one thread.
    """

    def __init__(self, job: Job, predictor: Answering | None = None) -> None:
        if predictor is None:
            torch.set_num_threads(1)  # there are as many workers as are to compute
            predictor = job.load()
        self.job, self.predictor = job, predictor
        self.reader = Reader(job.root, lambda path, first: opened(predictor.header, path, **job.columns, first=first))

    def work(self, shard: Shard) -> Done:
        """Write the part of a shard; what cannot be read, or ends worker after worker, is told in words.

        Raises:
            InputError: the part cannot be written; or, with "fail", a row cannot be used.
        """
        try:
            journal = Journal(self.job.journal(shard))
            done = self._write(shard, journal)
        except (Unreadable, Hopeless) as reason:
            return Done(0, {}, 0, 0, f"{shard.file}: {reason}")
        except InputError as reason:
            raise InputError(f"{shard.file}: {reason}") from None
        journal.close()
        return done

    def _write(self, shard: Shard, journal: Journal) -> Done:
        table = self.reader.table(shard)
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, named)
        ledger, sieve = Ledger(self.job.on_error), self.job.selection.over(header)
        watched = journal.watched(table, chunk_size(self.predictor.header.featuriser), self._alone)
        readers = 0 if journal.deaths else self.job.readers
        writing = TableWriter(self.job.part(shard), header, named, table.schema)
        with writing as writer, closing(predicted(self.predictor, watched, ledger, readers)) as parts:
            for _, lines, _ in parts:
                for line in sieve.passed(lines):
                    writer.write(*line)
            for line in sieve.best():
                writer.write(*line)
            if ledger.rows != shard.rows:
                raise Unreadable(
                    f"has changed: {shard.rows} rows were expected from {shard.first + 1} on, {ledger.rows} came"
                )
            done = Done(ledger.rows, dict(ledger.kinds), ledger.warned, sieve.kept)
            writer.footer[FOOTER] = json.dumps({"shard": shard, "done": done})
        return done

    def _alone(self, row: Row) -> None:
        for _ in answer_stream(self.predictor, [([row.readable], [row.coordinates], [row.features])], 0):
            pass
