"""The scikit-learn estimators: MoleculeRegressor and MoleculeClassifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from gtx.base.errors import InputError, did_you_mean
from gtx.base.schema import arguments_of, check, integer, plain
from gtx.data import FeatureColumns, FeaturisationResult, SplitSettings
from gtx.data.rows import listed
from gtx.estimators.inputs import (
    as_cells,
    as_columns,
    as_targets,
    as_weights,
    check_classes,
    describe_warnings,
    read_numbers,
    values_of_classes,
)
from gtx.molecules import Featuriser
from gtx.molecules.reading import molecule_text
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.inputs import as_frame, read_molecules, smiles_place, unusable_molecules
from gtx.prediction.streaming import NOT_FINITE
from gtx.settings import ReactionMode
from gtx.settings.training import Share
from gtx.tasks import BinaryClassification, MulticlassClassification, NumericTask, Regression, make_task
from gtx.tasks.columns import in_order, label
from gtx.tasks.uncertainty import fewest
from gtx.training import TrainSettings
from gtx.training_data import Dataset, DataSettings
from gtx.workflow.outputs import constant_lines
from gtx.workflow.run import Run

# --- Scores of several targets with blanks.


def mean_score(score: Callable[..., float], y: np.ndarray, predicted: np.ndarray, weights: Any, fewest: int) -> float:
    """Average a score of values, predictions and weights over the targets of y, `[n]` or `[n, T]`, with at least
    `fewest` different values; blanks (NaN and None) and rows of weight 0 are left out. NaN, with a warning, if there is
    no such target.
    """
    if y.shape != predicted.shape:
        raise InputError(f"y must be of shape {list(predicted.shape)}, as the predictions are, not {list(y.shape)}")
    weights = as_weights(weights, len(y))
    scores = []
    for column, prediction in zip(as_columns(y).T, as_columns(predicted).T, strict=True):
        measured = ~pd.isna(column) & (weights > 0)
        if len(pd.unique(column[measured])) >= fewest:
            scores.append(float(score(column[measured], prediction[measured], sample_weight=weights[measured])))
    if not scores:
        needed = "a value" if fewest == 1 else f"{fewest} different values"
        warnings.warn(f"the score is not defined: no target has {needed}", UndefinedMetricWarning, stacklevel=3)
        return float("nan")
    return float(np.mean(scores))


# --- The base class: parameters, fit and predict.

_DEFAULT = TrainSettings()
Names = Annotated[Sequence[str], "of columns"]


class MoleculeEstimator(BaseEstimator):
    """Base class of `MoleculeRegressor` and `MoleculeClassifier`.

    Attributes:
        predictor_: the trained `gtx.prediction.Predictor`, which returns data frames, with the standard deviation of an
            model of several folds.
    """

    def __init__(
        self,
        *,
        epochs: int | None = _DEFAULT.epochs,
        folds: int = _DEFAULT.folds,
        lr: float = _DEFAULT.lr,
        loss: str = "auto",
        patience: int = _DEFAULT.patience,
        model: str = _DEFAULT.model,
        model_arguments: dict[str, Any] | None = None,
        start: str | Path | None = None,
        settings: dict[str, Any] | None = None,
        task_options: dict[str, Any] | None = None,
        max_atoms: int = Featuriser.max_atoms,
        standardise: bool = Featuriser.standardise,
        descriptors: bool = Featuriser.descriptors,
        conformers: bool = Featuriser.conformers,
        molecule_features: Sequence[str] = (),
        ignore_stereo: bool = Featuriser.ignore_stereo,
        atom_order: Literal["smiles", "hydrogens-last", "map"] | None = None,
        smiles_columns: Names | None = None,
        reaction: ReactionMode | None = None,
        feature_columns: Names | None = None,
        atom_feature_columns: Names | None = None,
        bond_feature_columns: Names | None = None,
        missing_features: Literal["error", "blank"] = "error",
        validation_fraction: Share = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        workers: int | None = None,
        progress: bool = False,
        **unknown: Any,
    ) -> None:
        """Set the parameters; the defaults are those of `gtx train`.

        Args:
            epochs: passes over the training molecules; default 60, for classification 20.
            folds: number of networks, whose mean is the prediction. With 2 or more, each leaves out another fold of the
                rows, all choices follow from out-of-fold predictions of all rows, and `validation_fraction` is not
                used.
            lr: peak learning rate.
            loss: loss for numeric targets: "mse" (also "auto"), "mae" or "huber".
            patience: number of epochs without a better validation score after which training stops; 0 never stops.
            model: name of an architecture that `gtx models` lists.
            model_arguments: arguments of the architecture, such as `{"channels": 64, "layers": 4}`.
            start: model file from which training starts, or "foundation", the pretrained model of gtx; `start` replaces
                `model` and `model_arguments`.
            settings: further fields of `gtx.training.TrainSettings`, by name, such as `{"accelerator": "cpu"}`.
            task_options: options of the task, by name, such as `{"element_reference": False}` for numbers or
                `{"class_weights": "balanced"}` for classes.
            max_atoms: largest number of atoms of a molecule; larger molecules are refused.
            standardise: whether only the largest fragment of a molecule is kept, and neutralised.
            descriptors: whether the model also reads descriptors of the molecule.
            conformers: whether a conformer of every molecule is computed, for models that use coordinates.
            molecule_features: further features of the molecule, names of `gtx.molecules.descriptors.MOLECULE_FEATURES`.
            ignore_stereo: whether stereocentres and the stereochemistry of double bonds are ignored.
            atom_order: order of the atoms in `atom_feature_columns`, see `gtx.molecules.perception.list_order`; needed
                only for molecules with map numbers or written hydrogens.
            smiles_columns: names of the columns with several molecules per row, such as `("solute", "solvent")`. X is
                then a pandas table with these columns, or a list of rows with one SMILES per column.
            reaction: codes of reactions, such as "reactants-difference", one of `gtx.molecules.reactions.MODES`; X are
                then atom-mapped reaction SMILES.
            feature_columns: names of numeric columns, such as a temperature, that the model reads in addition to the
                molecule. X is then a pandas table with these columns and a column of SMILES, called as in training or
                "smiles".
            atom_feature_columns, bond_feature_columns: names of columns with lists of numbers, one number for each atom
                or bond of the molecule. X is then a pandas table.
            missing_features: "error" to refuse blank features, or "blank" to replace a blank by the mean of the
                training rows and mark it as missing.
            validation_fraction: share of the rows that `fit` holds out to select the best epoch, weigh the kernel and
                calibrate; 0 for none. All rows of a molecule, as the model reads it, are held out together.
            random_state: seed of the held-out molecules, initial weights, batches and dropout: an int, by default 0, a
                `numpy.random.RandomState`, or None for a different result in each fit.
            workers: number of processes that read molecules; by default 0 for few molecules, and one per core for many.
            progress: whether progress bars are shown.
            unknown: nothing; another parameter is a TypeError, which names one with a similar name.
        """
        parameters = {name: value for name, value in locals().items() if name not in ("self", "unknown")}
        for name in unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}{did_you_mean(name, parameters)}")
        self.__dict__.update(parameters)  # scikit-learn reads each parameter as an attribute

    def save(self, path: str | Path) -> None:
        """Write the model as a file for `gtx predict` and `gtx.load`."""
        check_is_fitted(self, "predictor_")
        self.predictor_.save(path)

    def _fit(
        self, X: Any, y: np.ndarray, task: NumericTask, weights: Any = None, bounds: np.ndarray | None = None
    ) -> Self:
        parameters = self._parameters
        featuriser = Featuriser(
            parameters.max_atoms,
            parameters.standardise,
            descriptors=parameters.descriptors,
            conformers=parameters.conformers,
            molecule_features=tuple(parameters.molecule_features),
            components=tuple(parameters.smiles_columns or ()),
            ignore_stereo=parameters.ignore_stereo,
            atom_order=parameters.atom_order,
            reaction=parameters.reaction,
        )
        settings = self._settings()
        data = DataSettings("", task=task, featuriser=featuriser, features=self._features(), seed=settings.seed)

        remarks: list[str] = []

        def read(data: DataSettings) -> Dataset:
            molecules, done, column = self._read(X, data.featuriser, data.features)
            if len(molecules) != len(y):
                raise InputError(f"X holds {len(molecules)} SMILES and y {len(y)} rows")
            if message := unusable_molecules(molecules, done.errors):
                raise InputError(message)
            remarks.extend(describe_warnings(done.good, done.warnings, "molecules"))
            store = done.store.with_targets(y)
            if weights is not None:
                store = replace(store, weights=torch.from_numpy(as_weights(weights, len(y))))
            if bounds is not None and not np.isnan(bounds).all():
                store = replace(store, bounds=torch.from_numpy(bounds))
            canonical = [text for text in done.smiles if text is not None]
            name = column or ModelFileHeader.smiles_column
            dataset = Dataset(task, store, canonical, {}, "", name, unit=featuriser.unit)
            return dataset.divide(self._split(dataset, settings.seed))

        with Run.load(data, settings, read=read, start=parameters.start) as run:
            remarks += [line.removeprefix("warning: ") for line in constant_lines(run.molecules, run.data.features)]
            self.predictor_: Predictor = run.blend(*run.fit()).predictor
        for remark in remarks:
            warnings.warn(remark, stacklevel=3)
        X = as_frame(X)
        table = isinstance(X, pd.DataFrame)
        self.n_features_in_: int = X.shape[1] if table else len(run.data.featuriser.components) or 1
        if table and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_: np.ndarray = np.array(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return self

    @property
    def _parameters(self) -> SimpleNamespace:
        """Parameters, checked, with Python's own numbers and lists in place of numpy's."""
        parameters = plain(self.get_params(deep=False))
        return SimpleNamespace(**check(parameters, arguments_of(MoleculeEstimator.__init__)))

    def _features(self) -> FeatureColumns:
        parameters = self._parameters
        blanks = parameters.missing_features == "blank"
        names = parameters.feature_columns or ()
        atoms, bonds = parameters.atom_feature_columns or (), parameters.bond_feature_columns or ()
        return FeatureColumns(names, blanks, atoms, bonds)

    def _read(
        self, X: Any, featuriser: Featuriser, features: FeatureColumns, usual: str | None = None
    ) -> tuple[list[Any], FeaturisationResult, str | None]:
        """Read the molecules of X with their features, and the name of the column, `usual` in training, of a table.

        Raises:
            InputError: X is one molecule, holds none, has another shape or columns that no model reads.
        """
        X, column, parameters = as_frame(X), None, self._parameters
        single = molecule_text(X) is not None
        if single or isinstance(X, Mapping) or not hasattr(X, "__getitem__"):  # a set has no order
            raise InputError(f"X must be a list, an array or a table of SMILES or molecules, not a {type(X).__name__}")
        if not isinstance(X, pd.DataFrame):
            X = X if featuriser.components else np.asarray(X, dtype=object)
        elif not featuriser.components:
            names, place = list(map(str, X.columns)), smiles_place(X, usual, features.columns)
            column, others = names[place], names[:place] + names[place + 1 :]
            if others and not features.columns:
                raise InputError(
                    f"X must be SMILES alone, and this table has the columns {listed(others)} beside {column!r}: give "
                    f"table[{column!r}], or name the columns that the model is to read too, "
                    f"feature_columns={others[:1]}"
                )
        options = {"workers": parameters.workers, "progress": parameters.progress}
        molecules, done = read_molecules(X, featuriser, features, usual, **options)
        if not molecules:
            raise InputError("X holds no SMILES")
        return molecules, done, column

    def _options(self) -> dict[str, Any]:
        parameters = self._parameters
        return {"loss": None if parameters.loss == "auto" else parameters.loss, **(parameters.task_options or {})}

    def _settings(self) -> TrainSettings:
        parameters = self._parameters
        seed = parameters.random_state
        if seed is None or isinstance(seed, np.random.RandomState):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        check(seed, integer(0, 2**32 - 1), "random_state")
        names = ("epochs", "folds", "lr", "patience", "model", "progress")
        values = {name: getattr(parameters, name) for name in names}
        values |= {"model_arguments": parameters.model_arguments or {}, "seed": seed}
        known = [field.name for field in fields(TrainSettings)]
        for name in parameters.settings or {}:
            if name in values:
                raise InputError(f"settings: {name} is a parameter of {type(self).__name__}; leave it out here")
            if name not in known:
                raise InputError(f"settings: there is no {name!r} in TrainSettings{did_you_mean(name, known)}")
        return TrainSettings(**values, **(parameters.settings or {}))

    def _split(self, molecules: Dataset, seed: int) -> SplitSettings:
        """Return the split of `gtx train` without test molecules; a molecule alone is a training molecule."""
        share = self._parameters.validation_fraction
        share = share if len({molecules.smiles[i] for i in molecules.with_labels}) > 1 else 0
        return SplitSettings(split_sizes=(1 - share, share, 0), seed=seed)

    def _predict(self, X: Any, *names: str, strict: bool = False) -> list[np.ndarray]:
        """Predict arrays of `gtx.tasks.Predictions` by name, `[n, *]` each, and pass on the warnings of answers.

        Unusable SMILES are an InputError if `strict`, or else NaN, with a warning.
        """
        check_is_fitted(self, "predictor_")
        header = self.predictor_.header
        molecules, read, _ = self._read(X, header.featuriser, header.features, header.smiles_column)
        answers, errors = self.predictor_.predict_store(read.store), list(read.errors)
        for i in read.good[~answers.finite]:
            errors[i] = f"cannot be predicted: {NOT_FINITE}"
        notes = [[*read.warnings[i], *more] for i, more in zip(read.good, answers.warnings, strict=True)]
        for remark in describe_warnings(read.good, notes, "predictions"):
            warnings.warn(remark, stacklevel=3)
        if message := unusable_molecules(molecules, errors):
            if strict:
                raise InputError(message)
            warnings.warn(f"{message}; NaN is returned", stacklevel=3)
        arrays = [np.full((len(molecules), getattr(answers, name).shape[1]), np.nan) for name in names]
        for name, rows in zip(names, arrays, strict=True):
            rows[read.good] = getattr(answers, name)
        return arrays

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


# --- Numbers from SMILES.


class MoleculeRegressor(RegressorMixin, MoleculeEstimator):
    """scikit-learn regressor that predicts one or several numbers from SMILES.

    MoleculeRegressor().fit(smiles, y).predict(smiles)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`, numbers, or texts as in a table; NaN, None and NA are blanks, which are masked. With
                `task_options={"censored": True}`, texts such as ">5" are bounds.
            sample_weight: `[n]`, 0 or more, weight of each row in the loss; by default uniform.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, or the input or a parameter is invalid.
        """
        y, names = as_targets(y)
        task = make_task(Regression.name, names, self._options())
        numbers, bounds = read_numbers(y, task)
        self._fit(X, as_columns(numbers), task, sample_weight, bounds)
        self.one_dimensional_: bool = y.ndim == 1
        return self

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict in the targets' own units, float64 `[n]` or `[n, T]`, the shape of y.

        A SMILES that cannot be read gives NaN, and all of them together one warning.

        Args:
            X: SMILES, see `fit`.
            return_std: whether standard deviations of the same shape are also returned, as `(predictions, std)`.

        Raises:
            InputError: the model has no standard deviations.
        """
        check_is_fitted(self, "predictor_")
        if not return_std:
            return self._shaped(*self._predict(X, "mean"))
        if f"{self.predictor_.task.targets[0]}_std" not in self.predictor_.output_columns([]):
            raise InputError(
                "return_std: this model has no standard deviations; expected one fitted with "
                'task_options={"uncertainty": "variance"}, another method of uncertainty, or folds=5'
            )
        mean, std = self._predict(X, "mean", "std")
        return self._shaped(mean), self._shaped(std)

    def predict_interval(self, X: Any) -> np.ndarray:
        """Predict the lower and upper limits of intervals, float64 `[n, 2]`, or `[n, T, 2]` for y `[n, T]`.

        The intervals contain 90 % of the values, or `task_options={"coverage": ...}`. They are split-conformal, from
        the rows that `fit` holds out. A SMILES that cannot be read gives NaN, and all of them together one warning; so
        does a target with fewer than nine rows held out (19 for a coverage of 0.95).

        Raises:
            InputError: no target has enough rows held out.
        """
        check_is_fitted(self, "predictor_")
        if not self.predictor_.task.answers.has_intervals:
            raise InputError(
                f"this model has no intervals: they take {fewest(self.predictor_.task.coverage)} rows set aside or "
                f"more, expected more rows or a larger validation_fraction than {self._parameters.validation_fraction}"
            )
        low, high = self._predict(X, "low", "high")
        return np.stack([self._shaped(low), self._shaped(high)], axis=-1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R² of the predictions.

        Blanks (NaN) are left out; for several targets it is the mean over those with two different values or more.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = read_numbers(as_targets(y)[0], self.predictor_.task)
        return mean_score(r2_score, y, self._shaped(*self._predict(X, "mean", strict=True)), sample_weight, fewest=2)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.one_dimensional_ else values


# --- Classes from SMILES.


class MoleculeClassifier(ClassifierMixin, MoleculeEstimator):
    """scikit-learn classifier that predicts classes from SMILES: one of several classes, or several yes/no labels.

    MoleculeClassifier().fit(smiles, labels).predict_proba(smiles)

    `classes_` is an array of the classes, sorted as scikit-learn sorts them. For several labels of zeros and ones it is
    the array of their indices, as in scikit-learn's own multi-label classifiers; for other labels a list with the
    classes of each. A saved model predicts the probability of the positive class, the same as after `gtx train` on a
    table of y; see `gtx.tasks.columns.in_order`, and `task_options={"positive": ...}`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`, two classes or more of any kind in each column; NaN, None and NA are blanks, which
                are masked.
            sample_weight: `[n]`, 0 or more, weight of each row in the loss; by default uniform.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, y contains no classes, or a parameter is invalid.
        """
        y, names = as_targets(y)
        columns = as_columns(y)
        cells = [as_cells(column) for column in columns.T]
        for column, own, name in zip(columns.T, cells, names, strict=True):
            check_classes(column, own, name)
        several = any(len(in_order(map(label, own))) > 2 for own in cells)
        task = make_task((MulticlassClassification if several else BinaryClassification).name, names, self._options())
        task = replace(task, **task.columns.infer_from_cells(cells))
        numbers = np.stack([task.columns.values(t, own) for t, own in enumerate(cells)], axis=1)
        self._fit(X, numbers, task, sample_weight)
        self.multi_label_: bool = y.ndim == 2
        self._of_model: list[np.ndarray] = list(map(values_of_classes, columns.T, numbers.T))
        classes = list(map(np.sort, self._of_model))
        self.classes_: np.ndarray | list[np.ndarray] = classes
        if not self.multi_label_:
            self.classes_ = classes[0]
        elif all(each.tolist() == [0, 1] for each in classes):
            self.classes_ = np.arange(len(classes))
        return self

    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Predict probabilities, float64 `[n, C]` in the order of `classes_`.

        For several labels of two classes, those of the second class of each, `[n, T]`; if a label has more classes, a
        list of T arrays `[n, C]`, as of scikit-learn's forests.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        (values,) = self._predict(X, "mean")
        task = self.predictor_.task
        each = [task.answers.class_probabilities(values, t)[:, np.argsort(own)] for t, own in enumerate(self._of_model)]
        if not self.multi_label_:
            return each[0]
        return each if isinstance(task, MulticlassClassification) else np.stack([p[:, 1] for p in each], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class `[n]`, or of each of several labels `[n, T]`, as in y.

        Raises:
            InputError: a SMILES cannot be read; no class could stand for that.
        """
        index = self._likeliest(*self._predict(X, "mean", strict=True))
        if not self.multi_label_:
            return self._of_model[0][index[:, 0]]
        columns = [own.astype(object)[rows] for own, rows in zip(self._of_model, index.T, strict=True)]
        return np.stack(columns, axis=1).astype(int if isinstance(self.classes_, np.ndarray) else object)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy.

        Blanks (NaN) are left out; for several labels it is the mean over those with values.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = as_targets(y)
        predicted, columns = self._likeliest(*self._predict(X, "mean", strict=True)), as_columns(y)
        if columns.shape == predicted.shape:
            cells = enumerate(map(as_cells, columns.T))
            columns = np.stack([self.predictor_.task.columns.values(t, own) for t, own in cells], axis=1)
        return mean_score(_accuracy, columns, predicted, sample_weight, fewest=1)

    def _likeliest(self, values: np.ndarray) -> np.ndarray:
        """Return the number of the most probable class of each label, in the order of the model, `[n, T]`."""
        task = self.predictor_.task
        return np.stack(
            [task.answers.class_probabilities(values, t).argmax(1) for t in range(len(task.targets))], axis=1
        )


def _accuracy(y: np.ndarray, predicted: np.ndarray, sample_weight: np.ndarray) -> float:
    return float(np.average(y == predicted, weights=sample_weight))
