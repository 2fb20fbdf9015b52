"""Public sets with their splits, the runs of models on them, and what a model returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from gtx.dataset import Dataset, DataSettings


class PublicSet(NamedTuple):
    """A public set with its splits.

    Attributes:
        name: as `gtx.data.named_sets` knows it.
        metric: the score of the task that ranks the models.
        splits: the columns of the table that hold a split each.
        folder: the name of the set in the results.
        featuriser: arguments of `gtx.molecules.Featuriser` that the rules of the benchmark demand.
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
        """The set with one of its splits; it is downloaded if it is not at hand."""
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
        public_set: the set.
        model: its name in `experiments.contenders`.
        split: the number of the split; 0 if there is only one.
        seed: of everything that is random.
    """

    public_set: PublicSet
    model: str
    split: int
    seed: int

    @property
    def name(self) -> str:
        """`<model>-<seed>`; where there are several splits `<model>-<split>`, and for further seeds `-seed<seed>`."""
        if len(self.public_set.splits) == 1:
            return f"{self.model}-{self.seed}"
        return f"{self.model}-{self.split}" + (f"-seed{self.seed}" if self.seed else "")

    @property
    def key(self) -> tuple[str, str]:
        """What `experiments.archive` knows it by: its set's folder and its name."""
        return self.public_set.folder, self.name

    def folder(self, runs: Path) -> Path:
        """What it keeps while it runs, below the folder of all runs."""
        return runs / self.public_set.folder / self.name


class LoadedRun(NamedTuple):
    """A run and its molecules.

    Attributes:
        run: what is run.
        data: the table of the molecules, and how it is read.
        dataset: the m molecules, their targets `[m, T]` and their split; every model gets the same.
        runs: the folder of all runs.
    """

    run: Run
    data: DataSettings
    dataset: Dataset
    runs: Path

    @classmethod
    def of(cls, run: Run, runs: Path) -> LoadedRun:
        """Read the molecules of a run."""
        from gtx.dataset import load

        data = run.public_set.data(run.split)
        return cls(run, data, load(data, cache=runs / "cache"), runs)

    @property
    def folder(self) -> Path:
        """The folder where this run may keep files."""
        return self.run.folder(self.runs)

    @property
    def names(self) -> list[str]:
        """The targets' names."""
        return list(self.data.target_columns)


class FitResult(NamedTuple):
    """What a trained model predicts, and what decided it.

    Attributes:
        prediction: float64 `[m, T]` of all molecules, in the targets' own units; for classes, the probability of 1.
        parameters: the number of trained weights; None if the model has none that can be counted.
        settings: all that decided the result, also what was chosen on validation rows.
        versions: of libraries beyond those of gtx.
    """

    prediction: np.ndarray
    parameters: int | None = None
    settings: Mapping[str, Any] = {}
    versions: Mapping[str, str] = {}
