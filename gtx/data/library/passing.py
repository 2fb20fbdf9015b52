"""A library worked through: what is done stays done, the rest goes to workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from gtx.data.ledger import Ledger
from gtx.data.library.engines import Engine, worked
from gtx.data.library.shards import Done, Library, Shard
from gtx.data.rows import Table
from gtx.errors import InputError


@dataclass
class LibraryOutcome:
    """What became of a library.

    Attributes:
        ledger: counts of rows and errors, those of earlier runs included; the messages are in the parts.
        files: how many there are.
        done: the shards that are done.
        before: how many of them were done already.
        kept: how many rows, or molecules, are written.
        where: the folder of the parts, or the file of the best.
        problems: files or shards that could not be used, in words.
        left_out: files that are no tables.
    """

    where: Path
    files: int
    left_out: list[str]
    ledger: Ledger = field(default_factory=Ledger)
    done: list[Shard] = field(default_factory=list)
    before: int = 0
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def shards(self) -> int:
        """How many are done."""
        return len(self.done)

    def add(self, shard: Shard, done: Done) -> None:
        """Take in a shard."""
        if done.problem:
            self.problems.append(done.problem)
            return
        self.done.append(shard)
        self.ledger.rows += done.rows
        self.ledger.kinds += Counter(done.kinds)
        self.ledger.warned += done.warned
        self.kept += done.kept

    def told(self, written: str) -> Iterator[str]:
        """What became of the library, a line each.

        Args:
            written: what `kept` counts, such as "rows written".
        """
        yield self.ledger.summary()
        before = f", {self.before:,} of them done before" if self.before else ""
        yield f"files: {self.files:,}; shards: {self.shards:,}{before}; {written}: {self.kept:,}"
        if self.left_out:
            more = f" and {len(self.left_out) - 1:,} more" if self.left_out[1:] else ""
            yield f"left out, as no tables: {self.left_out[0]}{more}"
        yield f"written to {self.where}"
        for problem in self.problems:
            yield f"gtx: {problem}"


def pass_through(
    library: Library,
    size: int,
    before: Mapping[Shard, Done],
    opened: Callable[[Path], Table],
    engine: Callable[[bool], Engine],
    outcome: LibraryOutcome,
    check: Callable[[Table], object] = lambda table: None,
    label: str | None = None,
) -> None:
    """Have all shards worked at that are not done.

    Args:
        library: the tables.
        size: rows of a shard.
        before: the shards that are done already.
        opened: a table, of its path; called for files that are not done as a whole.
        engine: the workers, made where there is something to do; told whether that is more than one shard.
        outcome: takes in what comes.
        check: called with each table; what it raises is the user's mistake, and no fault of the file.
        label: of a progress bar; None shows none.
    """
    outcome.before = len(before)
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(label))
        for shard, done in before.items():
            outcome.add(shard, done)
            bar(shard.rows)
        todo = _todo(library, size, before, opened, check, outcome.problems)
        first = list(islice(todo, 2))
        if not first:
            return
        working = engine(len(first) > 1)
        stack.callback(working.close)
        for shard, done in worked(working, chain(first, todo)):
            outcome.add(shard, done)
            bar(shard.rows)


def _todo(
    library: Library,
    size: int,
    before: Iterable[Shard],
    opened: Callable[[Path], Table],
    check: Callable[[Table], object],
    problems: list[str],
) -> Iterator[Shard]:
    """The shards that are not done, drawn as they are needed; a file that is done is not opened."""
    known = defaultdict(list)
    for shard in before:
        known[shard.file].append(shard)
    for file in library.files:
        if _whole(known[file]):
            continue
        try:
            table = opened(library.root / file)
        except InputError as reason:
            problems.append(f"{file}: {reason}")
            continue
        check(table)
        try:
            yield from (shard for shard in library.shards(file, table, size) if shard not in before)
        except InputError as reason:
            problems.append(f"{file}: {reason}")


def _whole(shards: Sequence[Shard]) -> bool:
    """Whether these shards of a file are all of it."""
    return sum(shard.rows for shard in shards) == max((s.first + s.rows for s in shards if s.last), default=-1)


@contextmanager
def _bar(label: str | None) -> Iterator[Callable[[int], None]]:
    """What is called with the number of rows whenever a shard is done."""
    if label is None:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    told = TextColumn("{task.completed:,.0f} rows in {task.fields[shards]:,} shards")
    with Progress(TextColumn(label), BarColumn(), told, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task, shards = bar.add_task("", total=None, shards=0), iter(range(1, 2**63))
        yield lambda rows: bar.update(task, advance=rows, shards=next(shards))
