"""What targets of atoms and of bonds share: a list of numbers for each molecule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data import CapacityStore, MoleculeStore
from gtx.data.columns import column_index
from gtx.data.lists import parse_list, place_lists
from gtx.errors import InputError
from gtx.schema import MappingOf, Record, anything
from gtx.tasks.losses import LOSSES, masked_mean
from gtx.tasks.metrics import Target, evaluate
from gtx.tasks.numbers import BAD_TARGET
from gtx.tasks.options import PartOptions, learned
from gtx.tasks.part_baselines import means_of_alike
from gtx.tasks.part_predictions import PartPredictions, PartScores, lists_of
from gtx.tasks.regression import Regression
from gtx.tasks.scaling import TargetScaler
from gtx.tasks.task import Metric, Task, fresh_columns

if TYPE_CHECKING:
    from pathlib import Path

    from gtx.data.ledger import Ledger
    from gtx.data.rows import Row
    from gtx.dataset import Dataset, File


@dataclass(frozen=True)
class PartNumbers(Task, PartOptions):
    """T numbers for each atom, or each bond, of a molecule, learned as z-scores of the training molecules' parts.

    Every part of every molecule has the same say in the loss and in the scores; blanks have none. A subclass says which
    parts there are, and may change outputs before they count (`settled_outputs`).

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.lists.parse_list`.
        loss: of z-scores: "mse", "mae" or "huber" (delta 1); no part of a model file.
        scaler: learned of the training molecules.

    Raises:
        InputError: there is no such loss.
    """

    metrics: ClassVar[dict[str, Metric]] = Regression.metrics
    held: ClassVar[str]
    """The field of a store, and of a batch, that has the targets."""
    rows_each: ClassVar[int] = 1
    """How many rows of a store each part has."""

    scaler: TargetScaler | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")

    # what a subclass says

    @abstractmethod
    def ptr(self, store: MoleculeStore) -> Tensor:
        """int64 `[M + 1]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]` of the store's parts."""

    @abstractmethod
    def molecule(self, batch: Any) -> Tensor:
        """int64 `[R]`: the molecule of each row of a batch's parts."""

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Outputs `[R, C]` of a batch as scaled numbers `[R, T]`."""
        return output

    # a table's cells

    def settle(self, files: Sequence[File]) -> Self:
        for name in self.targets:
            cells = files[0].cells(name)
            if all(self.parsed(cell) is None for cell in cells):
                what = f"holds no list of numbers in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one number for each {self.per} was expected")
        return self

    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        """The mean of each row's list: what a molecule found twice, or without a value, is known by."""
        y = np.full((len(rows), len(self.targets)), np.nan)
        places = [column_index(columns, name) for name in self.targets]
        for i, row in enumerate(rows):
            if row.error:
                continue
            found: dict[str, np.ndarray] = {}
            for name, place in zip(self.targets, places, strict=True):
                try:
                    values = parse_list(row.cells[place])
                except InputError as reason:
                    ledger.error(row.number, name, row.cells[place], str(reason), kind=BAD_TARGET)
                    break
                if values is not None:
                    found[name] = values
            else:
                y[i] = [_mean(found.get(name)) for name in self.targets]
        return y

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]]:
        places = {name: column_index(columns, name) for name in self.targets}
        lists = []
        for row in rows:
            found = {} if row.error else {name: self.parsed(row.cells[place]) for name, place in places.items()}
            lists.append({name: values for name, values in found.items() if values is not None})
        return lists

    def placed(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        y, wrong = place_lists(lists, self.targets, self.ptr(store).numpy(), self.per)
        return replace(store, **{self.held: torch.from_numpy(y)}), wrong

    def parsed(self, cell: str) -> np.ndarray | None:
        """The list of a cell; None where it is blank or none."""
        try:
            return parse_list(cell)
        except InputError:
            return None

    # training

    @property
    def out_channels(self) -> int:
        return len(self.targets)

    @property
    def num_predictions(self) -> int:
        return len(self.targets)

    @property
    def kept_channels(self) -> int:
        return 4 * len(self.targets)

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
        return each.index_add(0, self._owner(store), known.long()) > 0

    def fitted(self, train: MoleculeStore) -> Self:
        values = self.values(train).cpu()
        for name, blank in zip(self.targets, values.isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among the {self.per}s of the training molecules")
        return self if self.scaler is not None else replace(self, scaler=TargetScaler.fit(values))

    def adopting(self, other: Task) -> Self:
        same = type(other) is type(self) and other.targets == self.targets
        return replace(self, scaler=other.scaler) if same else self

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        scaled = self.scaler.scale(self.values(store).cpu()).double().to(store.device)
        return replace(store, **{self.held: scaled})

    def forward(self, model: nn.Module, batch: Any) -> Tensor:
        return self.settled_outputs(model(batch), batch)

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each entry, `[R, T]`, of scaled numbers and targets."""
        return LOSSES[self.loss](output, target, reduction="none")

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
        owner = self._owner(examples) if isinstance(examples, MoleculeStore) else self.molecule(examples)
        return (known * examples.weights[owner][:, None]).sum()

    def kept(self, output: Tensor, batch: Any) -> Tensor:
        """Per molecule and target, sums over its parts: how many are known, losses, squares and sizes of errors."""
        target = getattr(batch, self.held)
        known = ~target.isnan()
        target, output = target.nan_to_num(), output.float()
        error = output - target
        sums = torch.ones_like(error), self.elementwise(output, target), error.square(), error.abs()
        each = torch.cat([each * known for each in sums], 1)
        return each.new_zeros(batch.num_graphs, self.kept_channels).index_add(0, self.molecule(batch), each)

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        y, sd = self.values(val).cpu().double(), self.scaler.sd
        spread = (y - y.nanmean(0)).square().nansum(0)
        weights = torch.ones(len(val), 1).double() if val.weights is None else val.weights.cpu()[:, None].double()

        def scores(kept: Tensor) -> dict[str, float]:
            count, loss, squares, sizes = kept.double().cpu().unflatten(1, (4, -1)).unbind(1)
            n = count.sum(0)
            rmse, mae = (squares.sum(0) / n).sqrt(), sizes.sum(0) / n  # scaled; NaN where nothing is known
            r2 = torch.where(spread > 0, 1 - squares.sum(0) * sd.square() / spread, torch.nan)
            found = {"rmse": rmse * sd, "mae": mae * sd, "r2": r2}
            logged = {f"val_{name}": float(each.nanmean()) for name, each in found.items() if not each.isnan().all()}
            logged["val_loss"] = float((loss * weights).sum() / (count * weights).sum().clamp(min=1e-300))
            return {**logged, "val_score": float((mae if self.loss == "mae" else rmse).nanmean())}

        return scores

    # prediction

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        kinds = ("pred", "std") if members > 1 else ("pred",)
        return fresh_columns(taken, ((f"{name}_{kind}", str) for name in self.targets for kind in kinds))

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[Tensor]:
        """Of each molecule scaled numbers, float64 `[a, members, T]`."""
        outputs = [self.settled_outputs(network(batch).double(), batch) for network in members]
        sizes = torch.bincount(self.molecule(batch), minlength=batch.num_graphs)
        parts = torch.stack(outputs, dim=1).cpu().split(sizes.tolist())
        return [part[:: self.rows_each] for part in parts]

    def decode(self, outputs: Sequence[Tensor], store: MoleculeStore) -> PartPredictions:
        own = [self.scaler.unscale(each).numpy() for each in outputs]
        members = own[0].shape[1] if own else 1
        std = [each.std(1, ddof=1) for each in own] if members > 1 else None
        return PartPredictions([each.mean(1) for each in own], std, self.answer_remarks(store), len(self.targets))

    def answer_remarks(self, store: MoleculeStore) -> list[list[str]]:
        """Per molecule, what there is to warn of in its answer."""
        return [[] for _ in range(len(store))]

    # scores and report

    def evaluate(self, y: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
        """Score numbers `[R, T]` of parts against what was measured, NaN for blanks."""
        places = [Target(name, slice(t, t + 1)) for t, name in enumerate(self.targets)]
        return evaluate(y, prediction, self.metrics, places)

    def judge(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: PartPredictions, rows: np.ndarray
    ) -> dict[str, Any]:
        return self.evaluate(self._truth(store.subset(rows)), answers.subset(rows).joined)

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """The mean of the training parts that have the same codes, see `codes` and `means_of_alike`."""
        y, owner = self._truth(store), self._owner(store).numpy()[:: self.rows_each]
        of = {part: np.isin(owner, rows) for part, rows in split.items()}
        found = means_of_alike(self.codes(store)[:: self.rows_each], y, of["train"])
        return {"alike": {part: self.evaluate(y[rows], found[rows]) for part, rows in of.items()}}

    def scores(self, columns: Sequence[str]) -> PartScores:
        return PartScores(self, columns)

    def write_report(self, path: Path, dataset: Dataset, answers: PartPredictions, facts: dict[str, Any]) -> list[str]:
        from gtx.report import PartReport, write_part_report

        store, ptr = dataset.store, self.ptr(dataset.store).numpy() // self.rows_each
        report = PartReport(
            **facts,
            metrics=self.metrics,
            targets=self.targets,
            part=self.per,
            truth=lists_of(self._truth(store), ptr),
            prediction=answers.mean,
            kinds=lists_of(np.array(self.kinds(store), object)[:: self.rows_each], ptr),
        )
        return write_part_report(path, report)

    @abstractmethod
    def kinds(self, store: MoleculeStore) -> list[str]:
        """What each row of a store's parts is, in a word or two, such as its element."""

    @abstractmethod
    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Integers `[R, K]` that tell the rows of a store's parts apart, the most telling first."""

    # storage

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "loss"}  # of training alone

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        own = super().from_dict({name: value for name, value in plain.items() if name != "loss"})
        scaler = TargetScaler.from_dict(own.scaler)
        if len(scaler.mean) != len(own.targets):
            expected = f"{len(own.targets)} values, one per target"
            raise InputError(f"task.scaler.mean: expected {expected}, got {len(scaler.mean)}")
        return replace(own, scaler=scaler)

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        return Record({"scaler": MappingOf(anything())})  # which checks itself

    def _truth(self, store: MoleculeStore) -> np.ndarray:
        """The targets of a store's parts, each once."""
        return self.values(store).cpu().numpy()[:: self.rows_each]

    def _owner(self, store: MoleculeStore) -> Tensor:
        """int64 `[R]`: the molecule of each row of a store's parts."""
        return torch.repeat_interleave(torch.arange(len(store), device=store.device), self.ptr(store).diff())


def _mean(values: np.ndarray | None) -> float:
    """Of what is known, the same in any order of the atoms; NaN if nothing is."""
    known = np.empty(0) if values is None else np.sort(values[~np.isnan(values)])
    return known.mean() if len(known) else np.nan
