"""What targets of atoms and of bonds share: a list for each molecule, an item for each of its parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data import CapacityStore, MoleculeStore
from gtx.data.columns import column_index
from gtx.data.lists import place_lists
from gtx.errors import InputError
from gtx.tasks.losses import masked_mean
from gtx.tasks.metrics import Target, evaluate
from gtx.tasks.numbers import BAD_TARGET
from gtx.tasks.part_baselines import means_of_alike
from gtx.tasks.part_predictions import PartPredictions, PartScores, lists_of
from gtx.tasks.task import Task, fresh_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gtx.data.ledger import Ledger
    from gtx.data.rows import Row
    from gtx.dataset import Dataset
    from gtx.report import PartReport
    from gtx.report.gallery import Panel


class PartTask(Task):
    """A task of T targets of each part of a molecule. Parts are atoms or bonds.

    Every part of every molecule has the same say in the loss and in the scores; blanks have none. A subclass takes one
    file of two kinds: `gtx.tasks.part_kinds` says which parts there are, `gtx.tasks.part_numbers` and
    `gtx.tasks.part_classes` say what is learned of each.
    """

    held: ClassVar[str]
    """The field of a store, and of a batch, that has the targets `[R, T]`."""
    rows_each: ClassVar[int] = 1
    """How many rows of a store each part has."""
    items: ClassVar[tuple[str, str]]
    """What one item of a list is, and what several are."""

    # which parts there are

    @abstractmethod
    def ptr(self, store: MoleculeStore) -> Tensor:
        """int64 `[M + 1]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]` of the store's parts."""

    @abstractmethod
    def molecule(self, batch: Any) -> Tensor:
        """int64 `[R]`: the molecule of each row of a batch's parts."""

    @abstractmethod
    def kinds(self, store: MoleculeStore) -> list[str]:
        """What each row of a store's parts is, in a word or two, such as its element."""

    @abstractmethod
    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Integers `[R, K]` that tell the rows of a store's parts apart, the most telling first."""

    # what is learned of each

    @property
    @abstractmethod
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[R, P]`."""

    @abstractmethod
    def read(self, target: int, cell: str) -> np.ndarray | None:
        """The list of a cell, float64 `[a]`, NaN for blanks; None for a blank cell.

        Raises:
            InputError: what is wrong with it.
        """

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each entry, `[R, T]`, of settled outputs and of targets as `examples` has them, no blanks."""

    @abstractmethod
    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        """Of outputs `[R, members, C]` the predictions `[R, P]`, and the R items of each of the `answer_kinds`."""

    @abstractmethod
    def answer_kinds(self, target: int, members: int) -> Iterable[str]:
        """What the lists of a target's answers are called, after its name."""

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Outputs `[R, C]` of a batch as `elementwise` and `predicted` take them."""
        return output

    def regressands(self, y: np.ndarray) -> np.ndarray:
        """Targets `[R, T]` as predictions `[R, P]` should be, NaN for blanks."""
        return y

    # a table's cells

    def parsed(self, target: int, cell: str) -> np.ndarray | None:
        """The list of a cell; None where it is blank or none."""
        try:
            return self.read(target, cell)
        except InputError:
            return None

    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        """The mean of each row's list: what a molecule found twice, or without a value, is known by."""
        y = np.full((len(rows), len(self.targets)), np.nan)
        places = [column_index(columns, name) for name in self.targets]
        for i, row in enumerate(rows):
            if row.error:
                continue
            found: list[np.ndarray | None] = []
            for t, place in enumerate(places):
                try:
                    found.append(self.read(t, row.cells[place]))
                except InputError as reason:
                    ledger.error(row.number, self.targets[t], row.cells[place], str(reason), kind=BAD_TARGET)
                    break
            else:
                y[i] = [_mean(values) for values in found]
        return y

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]]:
        places = [column_index(columns, name) for name in self.targets]
        lists = []
        for row in rows:
            found = {} if row.error else {t: self.parsed(t, row.cells[place]) for t, place in enumerate(places)}
            lists.append({self.targets[t]: values for t, values in found.items() if values is not None})
        return lists

    def placed(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        y, wrong = place_lists(lists, self.targets, self.ptr(store).numpy(), self.per, self.items)
        return replace(store, **{self.held: torch.from_numpy(y)}), wrong

    # training

    def values(self, store: MoleculeStore) -> Tensor:
        """The targets `[R, T]` of a store.

        Raises:
            InputError: it has none.
        """
        if (found := getattr(store, self.held)) is None:
            raise InputError(f"these molecules have no targets of {self.per}s: expected a store with {self.held}")
        return found

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        known = (~self.values(store).isnan()).any(1)
        each = torch.zeros(len(store), dtype=torch.long, device=store.device)
        return each.index_add(0, self.owner(store), known.long()) > 0

    def forward(self, model: nn.Module, batch: Any) -> Tensor:
        return self.settled_outputs(model(batch), batch)

    def training_loss(self, output: Tensor, batch: Any) -> Tensor:
        weights = getattr(batch, "weights", None)
        say = None if weights is None else weights[self.molecule(batch)][:, None]
        return masked_mean(self.elementwise, output, getattr(batch, self.held), say)

    def share(self, examples: Any) -> Tensor:
        """The number of values, or the sum of their weights."""
        if isinstance(examples, CapacityStore):
            examples = examples.store
        known = ~getattr(examples, self.held).isnan()
        if getattr(examples, "weights", None) is None:
            return known.sum()
        owner = self.owner(examples) if isinstance(examples, MoleculeStore) else self.molecule(examples)
        return (known * examples.weights[owner][:, None]).sum()

    @abstractmethod
    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """What validation sums over the parts of a molecule, `[R, T]` each, of targets without blanks: first the
        loss."""

    @abstractmethod
    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        """The scores of an epoch, of the means over all parts of `measures`, `[T]` each, NaN where nothing is known.
        `val_loss` is known already; `val_score` is that, unless it is said."""

    def kept(self, output: Tensor, batch: Any) -> Tensor:
        """Per molecule and target, sums over its parts: how many are known, and `measures`."""
        target = getattr(batch, self.held)
        known = ~target.isnan()
        target, output = target.nan_to_num(), output.float()
        sums = [torch.ones_like(target), *self.measures(output, target)]
        each = torch.cat([each * known for each in sums], 1)
        return each.new_zeros(batch.num_graphs, self.kept_channels).index_add(0, self.molecule(batch), each)

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        weights = torch.ones(len(val), 1).double() if val.weights is None else val.weights.cpu()[:, None].double()

        def scores(kept: Tensor) -> dict[str, float]:
            count, loss, *sums = kept.double().cpu().unflatten(1, (-1, len(self.targets))).unbind(1)
            mean_loss = float((loss * weights).sum() / (count * weights).sum().clamp(min=1e-300))
            means = [each.sum(0) / count.sum(0) for each in sums]
            return {"val_loss": mean_loss, "val_score": mean_loss} | self.validation_scores(means, val)

        return scores

    # prediction

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        return fresh_columns(
            taken,
            ((f"{name}_{kind}", str) for t, name in enumerate(self.targets) for kind in self.answer_kinds(t, members)),
        )

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[Tensor]:
        """Of each molecule the settled outputs of its parts, float64 `[a, members, C]`."""
        outputs = [self.settled_outputs(network(batch).double(), batch) for network in members]
        sizes = torch.bincount(self.molecule(batch), minlength=batch.num_graphs)
        parts = torch.stack(outputs, dim=1).cpu().split(sizes.tolist())
        return [part[:: self.rows_each] for part in parts]

    def decode(self, outputs: Sequence[Tensor], store: MoleculeStore) -> PartPredictions:
        ptr = np.cumsum([0, *map(len, outputs)])
        joined = torch.cat(list(outputs)) if outputs else torch.zeros(0, 1, self.out_channels, dtype=torch.float64)
        prediction, table = self.predicted(joined)
        return PartPredictions(
            lists_of(prediction, ptr), [lists_of(column, ptr) for column in table], self.answer_remarks(store)
        )

    def answer_remarks(self, store: MoleculeStore) -> list[list[str]]:
        """Per molecule, what there is to warn of in its answer."""
        return [[] for _ in range(len(store))]

    # scores and report

    def evaluate(self, y: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
        """Score predictions `[R, P]` of parts against what was measured `[R, T]`, NaN for blanks."""
        return evaluate(y, prediction, self.metrics, self.places)

    def judge(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: PartPredictions, rows: np.ndarray
    ) -> dict[str, Any]:
        joined = [np.empty((0, self.places[-1].columns.stop)), *answers.subset(rows).mean]
        return self.evaluate(self.truth(store.subset(rows)), np.concatenate(joined))

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """The mean of the training parts that have the same codes, see `codes` and `means_of_alike`."""
        y, owner = self.truth(store), self.owner(store).numpy()[:: self.rows_each]
        of = {part: np.isin(owner, rows) for part, rows in split.items()}
        found = means_of_alike(self.codes(store)[:: self.rows_each], self.regressands(y), of["train"])
        return {"alike": {part: self.evaluate(y[rows], found[rows]) for part, rows in of.items()}}

    def scores(self, columns: Sequence[str]) -> PartScores:
        return PartScores(self, columns)

    def write_report(self, path: Path, dataset: Dataset, answers: PartPredictions, facts: dict[str, Any]) -> list[str]:
        from gtx.report import PartReport, write_part_report

        store, ptr = dataset.store, self.ptr(dataset.store).numpy() // self.rows_each
        report = PartReport(
            **facts,
            task=self,
            truth=lists_of(self.truth(store), ptr),
            prediction=answers.mean,
            kinds=lists_of(np.array(self.kinds(store), object)[:: self.rows_each], ptr),
        )
        return write_part_report(path, report)

    # what the report says of it

    @abstractmethod
    def panels(self, report: PartReport, t: int) -> Iterator[Panel]:
        """The pictures of a target's predictions."""

    @abstractmethod
    def panel_words(self) -> str:
        """What to know of the pictures."""

    @abstractmethod
    def summary(self, t: int, y: np.ndarray, prediction: np.ndarray) -> dict[str, str]:
        """How good the predictions of one kind of part are, in words, of one part or more."""

    @abstractmethod
    def errors(self, t: int, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """How far off predictions of a target are, `[R]`, with a sign; NaN for blanks."""

    @abstractmethod
    def value_text(self, t: int, y: float) -> str:
        """A measured value as a reader sees it."""

    @abstractmethod
    def prediction_text(self, t: int, prediction: Any) -> str:
        """A prediction as a reader sees it."""

    def truth(self, store: MoleculeStore) -> np.ndarray:
        """The targets of a store's parts, each once."""
        return self.values(store).cpu().numpy()[:: self.rows_each]

    def owner(self, store: MoleculeStore) -> Tensor:
        """int64 `[R]`: the molecule of each row of a store's parts."""
        return torch.repeat_interleave(torch.arange(len(store), device=store.device), self.ptr(store).diff())


def _mean(values: np.ndarray | None) -> float:
    """Of what is known, the same in any order of the atoms; NaN if nothing is."""
    known = np.empty(0) if values is None else np.sort(values[~np.isnan(values)])
    return known.mean() if len(known) else np.nan
