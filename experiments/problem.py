"""What a model is asked on a benchmark, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from gtx.dataset import Dataset, DataSettings


class Benchmark(NamedTuple):
    """A public set and how it is divided.

    Attributes:
        name: as `gtx.data.named_sets` knows it.
        metric: of the task, the one it is judged by.
        splits: columns that spell out a split each.
        folder: what its results are known by.
        featuriser: arguments of `gtx.molecules.Featuriser` that the benchmark's own rules ask for.
        settings: of `gtx.training.TrainSettings`, likewise; gtx itself follows them.
        task: options of the task, likewise.
    """

    name: str
    metric: str
    splits: tuple[str, ...]
    folder: str
    featuriser: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    task: Mapping[str, Any] = {}

    def data(self, split: int) -> DataSettings:
        """The set, divided by one of its splits; downloaded if it is not at hand."""
        from gtx.data.named_sets import load_set
        from gtx.dataset import DataSettings
        from gtx.molecules import Featuriser
        from gtx.tasks import Inferred

        named = load_set(self.name)
        column = self.splits[split]
        return DataSettings(
            str(named.path),
            named.targets,
            smiles_column=named.smiles_column,
            task=Inferred(named.targets, **self.task) if self.task else None,
            split_column=column,
            featuriser=Featuriser(**self.featuriser),
            units=dict(named.units),
        )


class Run(NamedTuple):
    """One model, on one split of one set, from one seed.

    Attributes:
        benchmark: the set.
        model: its name in `experiments.models`.
        split: the number of the split, 0 where there is one alone.
        seed: decides whatever is left to chance.
    """

    benchmark: Benchmark
    model: str
    split: int
    seed: int

    @property
    def name(self) -> str:
        """`<model>-<seed>`; where there are several splits `<model>-<split>`, and for further seeds `-seed<seed>`."""
        if len(self.benchmark.splits) == 1:
            return f"{self.model}-{self.seed}"
        return f"{self.model}-{self.split}" + (f"-seed{self.seed}" if self.seed else "")

    @property
    def key(self) -> tuple[str, str]:
        """What `experiments.archive` knows it by: its set's folder and its name."""
        return self.benchmark.folder, self.name

    def folder(self, runs: Path) -> Path:
        """What it keeps while it runs, below the folder of all runs."""
        return runs / self.benchmark.folder / self.name


class Problem(NamedTuple):
    """A run with its molecules at hand.

    Attributes:
        run: what is run.
        data: where the molecules came from.
        dataset: the m molecules, their targets `[m, T]` and their split; every model gets the same.
        runs: the folder of all runs.
    """

    run: Run
    data: DataSettings
    dataset: Dataset
    runs: Path

    @property
    def folder(self) -> Path:
        """Where this run may keep things."""
        return self.run.folder(self.runs)

    @property
    def names(self) -> list[str]:
        """The targets' names."""
        return list(self.data.target_columns)


class Answer(NamedTuple):
    """What a model makes of a problem.

    Attributes:
        prediction: float64 `[m, T]` of all molecules, in the targets' own units; for classes, the probability of 1.
        parameters: how many numbers were learnt, where that can be said.
        settings: whatever decided the result, the choices made on validation rows included.
        versions: of libraries beyond those of gtx.
    """

    prediction: np.ndarray
    parameters: int | None = None
    settings: Mapping[str, Any] = {}
    versions: Mapping[str, str] = {}
