"""The content of a report, as plain values: the training fills them in, the page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtx.data.rows import plural
from gtx.data.similarity import NearestTrainingMolecules, find_nearest_training_molecules, sample_rows
from gtx.report.kinds import PARTS, kind_of, number

if TYPE_CHECKING:
    from gtx.data.store import MoleculeStore
    from gtx.kernel import LearningCurve
    from gtx.tasks import NumericTask
    from gtx.training_data import MeasurementNoise

ENOUGH = {"train": 30, "val": 10, "folds": 10, "test": 10}
"""With fewer molecules nothing can be said: the error of ten is itself uncertain by a fifth."""


# --- How good a model can get: the noise of the measurements, and the error that more training rows would give.

FACTOR = 1.16
"""Nine of ten errors after a doubling of the rows were within this factor of the forecast, see
experiments/results/learning-curve.md."""


class Forecast(NamedTuple):
    """Forecast of the error with more training rows, and its interval, which should contain it nine times of ten."""

    rows: int
    low: float
    error: float
    high: float


@dataclass(frozen=True)
class Attainable:
    """Limits of the error of one numeric target; None where too few measurements are repeated, or without a kernel."""

    noise: MeasurementNoise | None = None
    curve: LearningCurve | None = None  # of a kernel model on the training rows

    def __bool__(self) -> bool:
        return self.noise is not None or self.curve is not None

    def forecast(self, error: float, rows: float) -> Forecast:
        """Forecast the RMSE of the model on the same molecules after training on more rows like those it has.

        The kernel's learning curve gives the ratio to the error (RMSE) now. No forecast is below the noise of the
        measurements, unless the error is already. `rows` is a multiple of those now, 1 to 2; the interval is that of a
        doubling to the power of log₂ of it.
        """
        if self.curve is None:
            raise ValueError("expected a learning curve, got None")
        now = self.curve.rows[-1]
        least = 0.0 if self.noise is None else min(self.noise.sd, error)
        middle, factor = error * self.curve.ratio(rows * now), FACTOR ** math.log2(rows)
        low, middle, high = (max(least, value) for value in (middle / factor, middle, middle * factor))
        return Forecast(round((rows - 1) * now), low, middle, high)

    def describe(self, error: float, unit: str = "") -> str:
        """Describe the limits in words, beside the RMSE of the model."""
        words = [f"RMSE {number(error)} {unit}".rstrip()]
        if self.noise is not None:
            same = f", {self.noise.identical} of them with identical values" if self.noise.identical else ""
            of = f"{plural(self.noise.molecules, 'molecule')}{same}"
            words.append(f"repeated measurements have a standard deviation of {number(self.noise.sd)} ({of})")
        if self.curve is not None:
            double = self.forecast(error, 2)
            span = f"(90% interval: {number(double.low)} to {number(double.high)})"
            gain = f"would give about {number(double.error)} {span}"
            if not self.curve.exponent:
                gain = f"would hardly change it {span}"
            words.append(f"{double.rows:,} more training molecules like these (twice as many) {gain}")
        return "; ".join(words)


# --- The content of a report.


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Content that the reports of all runs have in common, for the n molecules that could be read.

    `split` has "folds" in place of "val" for a model of several folds. `scores` are by part of the split, as in
    `metrics.json`; those of `baselines`, and of the network and the kernel model of a blend `alone`, have the same form
    by name. `domain` has by part, validation and test, and band of `gtx.prediction.domain.Domain` the number of
    rows with a value and the error of each target, None from too few rows.
    """

    title: str  # short name of the data, the heading of the page
    smiles: Sequence[str]
    store: MoleculeStore
    row_numbers: np.ndarray  # of the molecules in the table, int [n], from 1
    split: Mapping[str, np.ndarray]
    scores: Mapping[str, Mapping[str, Any]]
    source: str  # name of the table or of the public data set
    rows: int  # of the table
    errors: int  # rows that could not be used, which are in no part of the split
    summary: str  # of the row log, one line
    split_summary: str  # such as "random, seed 0" or "column split_random_0"
    histories: Sequence[Sequence[Mapping[str, float]]]  # as `gtx.training.TrainedMember.history`
    settings: Mapping[str, Any]  # possibly nested
    versions: Mapping[str, str]  # of the libraries
    model_file: str  # path, for the commands shown in the report
    task_class: str = ""  # name of the class of a task of one's own, which `gtx.load` needs
    model: str = "graph transformer"  # short description
    best_epochs: Sequence[int] = ()  # of each network
    units: Mapping[str, str] = field(default_factory=dict)  # of targets, by name
    baselines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rivals: Mapping[str, np.ndarray] = field(default_factory=dict)  # predictions of baselines, float [n, P], by name
    alone: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domain: Mapping[str, Mapping[str, tuple[Sequence[int], Sequence[float | None]]]] = field(default_factory=dict)
    attainable: Mapping[str, Attainable] = field(default_factory=dict)  # by target
    first_errors: Sequence[str] = ()  # of the row log
    warnings: Sequence[str] = ()  # first ones of the row log
    cautions: Sequence[str] = ()  # why the scores may be misleading, a sentence each, shown above the scores
    repeated: str = ""  # text about repeated molecules and conflicting labels
    leaked: Mapping[tuple[str, str], int] = field(default_factory=dict)  # molecules in two parts of the split
    unit: str = "molecule"  # word for what a row holds, such as "reaction"
    footnotes: Sequence[str] = ()  # such as the date and duration of the training

    @cached_property
    def num_atoms(self) -> np.ndarray:
        """Number of atoms of each molecule in the graph, int `[n]`."""
        return np.diff(self.store.atom_ptr.numpy())

    @property
    def elements(self) -> dict[str, int]:
        """Number of molecules that contain each element, by symbol, the most frequent first."""
        from gtx.molecules import ATOM_FEATURE_VALUES
        from gtx.molecules.graphs import name_code

        column = list(ATOM_FEATURE_VALUES).index("element")
        molecule = np.repeat(np.arange(len(self.num_atoms)), self.num_atoms)
        once = np.unique(molecule * 256 + self.store.atoms[:, column].numpy())  # however many atoms of it there are
        codes, molecules = np.unique(once % 256, return_counts=True)
        names = [name_code("atom", column, int(code)).removeprefix("element ") for code in codes]
        return {names[i]: int(molecules[i]) for i in np.argsort(-molecules, kind="stable")}

    @property
    def parts(self) -> dict[str, str]:
        """Parts of the split and what a sentence calls them."""
        return {part: title for part, title in PARTS.items() if part in self.split}

    @property
    def used(self) -> int:
        """Number of molecules in the parts of the split; those of folds are training molecules too."""
        return sum(len(rows) for part, rows in self.split.items() if part != "folds")

    @property
    def chosen(self) -> str:
        """What the validation chose, in words; empty for a model in closed form alone."""
        parts = {"the epoch": any(self.histories), "the blend weights": bool(self.alone)}
        return " and ".join(name for name, chosen in parts.items() if chosen)

    @property
    def held_out(self) -> str:
        """The part on which choices were made: "val", or "folds" of a model of several folds."""
        return "folds" if "folds" in self.split else "val"

    @property
    def judged(self) -> str:
        """The part of the split that the page's first score is of: test, or `held_out` where nothing was set aside."""
        return "test" if len(self.split["test"]) else self.held_out

    @property
    def has_similarity(self) -> bool:
        """True if the judged molecules are compared with those of training, which those of folds are themselves."""
        return self.judged != "folds" and all(len(self.split[part]) for part in (self.judged, "train"))

    @cached_property
    def nearest(self) -> NearestTrainingMolecules:
        """Similarity of judged molecules to the training molecules; of none without molecules of either."""
        if not self.has_similarity:
            return NearestTrainingMolecules(*(np.empty(0, kind) for kind in (int, float, int)))
        return find_nearest_training_molecules(self.store, self.split, self.judged)

    @property
    def compared(self) -> str:
        """Description of the molecules whose similarity is compared."""
        judged, trained = sample_rows(self.split, self.judged)
        words = []
        for part, drawn in ((self.judged, judged), ("train", trained)):
            molecules = plural(len(self.split[part]), f"{PARTS[part]} molecule")
            every = len(drawn) == len(self.split[part])
            words.append(molecules if every else f"{len(drawn):,} of {molecules}, drawn at random,")
        return " with ".join(words).rstrip(",")


@dataclass(frozen=True, kw_only=True)
class NumericReport(RunReport):
    """Content of the report of a run with T targets that are numbers or classes, for `write_report`.

    A row of the R rows is a molecule, or where the level of the task is another an atom or a bond.
    """

    task: NumericTask
    y: np.ndarray  # measured values in the targets' own units, or class numbers, [R, T]; NaN for blanks
    prediction: np.ndarray  # in the targets' own units, or probabilities, [R, P]
    std: np.ndarray | None = None  # predicted standard deviations, [R, P]
    low: np.ndarray | None = None  # limits of the prediction interval, [R, T]
    high: np.ndarray | None = None
    owner: np.ndarray | None = None  # molecule of each atom or bond, int [R], ascending; None where a row is a molecule
    kinds: np.ndarray | None = None  # names of the kinds of atoms or bonds, [R] texts; None where a row is a molecule

    @cached_property
    def kind(self) -> Any:
        """Wording for this kind of target, see `gtx.report.kinds`."""
        return kind_of(self.task)

    @property
    def targets(self) -> Sequence[str]:
        """The T names."""
        return self.task.targets

    @property
    def level(self) -> str:
        """Level of the targets: "molecule", "atom" or "bond"."""
        return self.task.level

    def predicted(self, rows: np.ndarray, target: int) -> np.ndarray:
        """Predictions of a target: `[m]`, or `[m, C]` of the probabilities of its classes."""
        columns = self.prediction[rows, self.task.objective.places[target].columns]
        return columns[:, 0] if columns.shape[1] == 1 else columns

    def attainable_words(self, target: int) -> str:
        """Describe how good the model can get at a target, beside its score; "" where nothing is known of it."""
        name = self.targets[target]
        limits, error = self.attainable.get(name), self.scores[self.judged]["per_target"][name].get("rmse")
        return limits.describe(error, self.units.get(name, "")) if limits and error is not None else ""

    def measured(self, part: str, target: int) -> np.ndarray:
        """Find the rows of a part where a target is measured."""
        rows = self.split[part]
        if self.owner is not None:
            rows = np.flatnonzero(np.isin(self.owner, rows))
        return rows[~np.isnan(self.y[rows, target])]
