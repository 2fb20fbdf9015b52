"""Choice of a task by the cells of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gtx.base.errors import InputError
from gtx.data.cells import comma_advice, has_comma
from gtx.data.rows import plural
from gtx.settings.options import chosen
from gtx.settings.tasks import TASKS
from gtx.tasks.bounds import parse_bound
from gtx.tasks.classification import ZERO_ONE, BinaryClassification, ClassColumns, MulticlassClassification
from gtx.tasks.labels import count_labels, in_order, label, listed, main_labels, numbers_among
from gtx.tasks.levels import LEVELS, LevelName
from gtx.tasks.regression import Regression
from gtx.tasks.task import Task

if TYPE_CHECKING:
    from gtx.data.rows import InputFile


@dataclass(frozen=True)
class TargetColumn:
    """Cells of a target column, by which its kind is inferred."""

    name: str
    cells: Sequence[str]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of cells with each label or number."""
        return count_labels(map(label, self.cells))

    @cached_property
    def numbers(self) -> list[str]:
        """Different numbers."""
        return numbers_among(self.counts)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Labels apart from odd cells, in order."""
        return in_order(main_labels(self.counts))

    def has_two_classes(self) -> bool:
        """Return whether the column is learned as two classes, not as numbers; raise InputError for other texts."""
        texts = [name for name in self.counts if name not in self.numbers]
        commas = sum(number for name, number in self.counts.items() if has_comma(name))
        if texts and 2 * commas > self.counts.total():
            expected = f"numbers were expected{comma_advice(texts)}"
            raise InputError(f"target column {self.name!r} holds text: {listed(texts, 3)}; {expected}")
        if not self.numbers:
            if len(self.classes) > 2:
                ways = [f"for {entry.labels} say --task {word}" for word, entry in TASKS.items() if entry.labels]
                raise InputError(
                    f"target column {self.name!r} holds text: {listed(in_order(texts), 3)}; numbers were expected; "
                    f"{', '.join(ways)}"
                )
            return len(self.classes) == 2
        of_texts = not numbers_among(self.classes)
        if len(self.numbers) > 2 or any(parse_bound(name) or has_comma(name) for name in texts):
            return of_texts
        if len(self.classes) == 1:
            return self.classes[0] in ZERO_ONE  # which says that the other is missing
        if not of_texts and len(numbers_among(self.classes)) < len(self.classes):
            held = ", ".join(f"{name!r} ({plural(number, 'row')})" for name, number in self.counts.most_common(8))
            raise InputError(
                f"target column {self.name!r} holds texts and numbers: {held}. For two classes write two labels and "
                "leave other cells blank; for more classes say --task multiclass, for numbers alone --task regression"
            )
        return True

    def remark(self, classes: bool) -> str | None:
        """Say why the column is learned as classes, or as numbers, where it has two different values or nearly so."""
        if len(self.classes) != 2:
            return None
        one, other = self.classes
        others, odd = [name for name in self.counts if name not in self.classes], ""
        if number := sum(self.counts[name] for name in others):
            holds = f"{'holds' if number == 1 else 'hold'} something else, such as {in_order(others)[0]!r}"
            odd = f"{number} of {self.counts.total()} cells {holds}"
        if classes and odd:
            outcome = "and their rows are left out as errors; for more classes say --task multiclass"
            return f"warning: {self.name}: learned as two classes, {one!r} and {other!r}; {odd}, {outcome}"
        if classes and self.numbers and self.classes != ZERO_ONE:
            why = f"it holds two different numbers, {one} and {other}"
            return f"{self.name}: learned as two classes, as {why}; --task regression learns numbers"
        if odd and not classes:
            way = "for two classes say --task classification, which leaves the others out as errors"
            return f"warning: {self.name}: learned as numbers, although it holds {one} and {other}; only {odd}: {way}"
        return None


class InferredTask:
    """Placeholder for a task that gtx chooses after reading the table.

    For molecules the choice is `BinaryClassification` if every target has two different values, numbers or texts, apart
    from odd cells (see `gtx.tasks.labels.main_labels`), else `Regression`. For atoms and bonds the targets are classes,
    and the choice is `BinaryClassification` if every target has two of them, else `MulticlassClassification`.

    Args:
        targets: names of the target columns.
        level: level of the targets.
        options: options of either task; an option that the chosen task does not have is an error.
    """

    writes: bool = Regression.writes
    also: Mapping[str, int] = Regression.also

    def __init__(self, targets: str | Sequence[str], level: LevelName = "molecule", **options: object) -> None:
        self.targets: tuple[str, ...] = (targets,) if isinstance(targets, str) else tuple(targets)
        self.level: LevelName = level
        self.options: dict[str, object] = options

    @property
    def name(self) -> str:
        """Name of the task, for messages."""
        return "inferred" if self.level == "molecule" else BinaryClassification.names[self.level]

    @property
    def supports(self) -> frozenset[str]:
        """Capabilities of either task."""
        either = Regression.supports & BinaryClassification.supports
        return either if self.level == "molecule" else frozenset({"fine-tuning"})

    def with_relation(self, column: str) -> Task:
        """Return the regression whose values are read with the relation in another column."""
        if self.level != "molecule":
            return BinaryClassification(self.targets, level=self.level).with_relation(column)
        return make_task("regression", self.targets, self.options).with_relation(column)

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Choose the task.

        Raises:
            InputError: a column is missing, blank, or holds texts that are not two classes.
        """
        options = self.options
        if self.level == "molecule":
            classes = all([column.has_two_classes() for column in self._columns(files)])
            name = BinaryClassification.name if classes else Regression.name
        else:
            columns = ClassColumns(self.targets, LEVELS[self.level])
            labels = [columns.classes_of(each, files[0].cells(each)) for each in self.targets]
            name = (BinaryClassification if all(len(own) == 2 for own in labels) else MulticlassClassification).name
            if name == MulticlassClassification.name and options.get("positive") is not None:
                raise InputError(f"positive: expected targets of two classes, got {listed(max(labels, key=len))}")
        try:
            task: Task = make_task(name, self.targets, options, self.level)
        except InputError as error:
            if self.level != "molecule":
                raise
            raise InputError(f"{error}, or say with --task that it is not {name}") from None
        return task.infer_from_table(files)

    def remarks(self, files: Sequence[InputFile]) -> list[str]:
        """Say why a column with two different values is learned as classes, or as numbers, where this may surprise."""
        if self.level != "molecule":
            return []
        columns = self._columns(files)
        numeric = [column for column in columns if not column.has_two_classes()]
        lines = [column.remark(not numeric) for column in columns if column in numeric or not numeric]
        for column in columns:
            if numeric and column not in numeric:
                pair = " and ".join(column.classes)
                why = f"because {numeric[0].name} holds {len(numeric[0].numbers)} different numbers"
                line = f"warning: {column.name}: learned as numbers, although it holds {pair} alone, {why}"
                lines.append(f"{line}: for classes train it alone")
        return [line for line in lines if line is not None]

    def _columns(self, files: Sequence[InputFile]) -> list[TargetColumn]:
        return [TargetColumn(name, files[0].cells(name)) for name in self.targets]


def make_task(name: str, targets: Sequence[str], options: Mapping[str, Any], level: LevelName | None = None) -> Any:
    """Make a task from its name in `gtx.settings.tasks.TASKS`, its targets and those options that are not None.

    The level is that of the name, or another one.

    Raises:
        InputError: the task does not have one of them.
    """
    entry = TASKS[name]
    values = {option: value for option, value in options.items() if value is not None}
    if unknown := values.keys() - {field.name for field in chosen(entry.options)}:
        raise InputError(f"{min(unknown)}: {name} has no such option; leave it out")
    return entry.load()(tuple(targets), level=level or entry.level, **values)
