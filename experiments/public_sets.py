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
    """

    name: str
    metric: str
    splits: tuple[str, ...]
    folder: str
    featuriser: Mapping[str, Any] = {}

    def data(self, split: int) -> DataSettings:
        """The set with one of its splits; it is downloaded if it is not at hand."""
        from gtx.data.named_sets import load_set
        from gtx.dataset import DataSettings
        from gtx.molecules import Featuriser

        named = load_set(self.name)
        return DataSettings(
            str(named.path),
            named.targets,
            smiles_column=named.smiles_column,
            split_column=self.splits[split],
            featuriser=Featuriser(**self.featuriser),
            units=dict(named.units),
        )


class Run(NamedTuple):
    """One model, by its name, on one split (by number) of one set, from one seed."""

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
        """Its set's folder and its name, by which the archive knows it."""
        return self.public_set.folder, self.name

    def folder(self, runs: Path) -> Path:
        """The folder where it keeps files, below that of all runs."""
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
    """The predictions of a trained model, and what decided them.

    Attributes:
        prediction: float64 `[m, T]` of all molecules, in the targets' own units; for classes, the probability of 1.
        parameters: the number of trained weights; None if the model has none that can be counted.
        settings: all that decided the result, also what was chosen on validation rows.
        versions: of libraries beyond those of gtx.
        figures: of the training, such as its title and its best epoch.
    """

    prediction: np.ndarray
    parameters: int | None = None
    settings: Mapping[str, Any] = {}
    versions: Mapping[str, str] = {}
    figures: Mapping[str, Any] = {}
