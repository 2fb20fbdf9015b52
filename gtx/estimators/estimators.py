"""The scikit-learn estimators: MoleculeRegressor and MoleculeClassifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from gtx.data import FeatureColumns, Split, featurise
from gtx.data.columns import RowFeatures, listed
from gtx.dataset import DataSettings, LabelledMolecules
from gtx.errors import InputError
from gtx.estimators.inputs import (
    as_columns,
    as_numbers,
    as_smiles,
    as_targets,
    as_weights,
    classes_of,
    complaint_of,
    smiles_in,
)
from gtx.molecules import Featuriser
from gtx.molecules.perception import Text
from gtx.prediction import ModelHeader
from gtx.prediction.inputs import as_frame, as_texts, component_rows
from gtx.schema import plain
from gtx.tasks import Classification, Multiclass, NumberTask, Regression, make
from gtx.tasks.calibration import fewest
from gtx.training import TrainSettings
from gtx.workflow.plan import Plan, opened

# --- Scores of several targets with blanks.


def mean_score(score: Callable[..., float], y: np.ndarray, predicted: np.ndarray, weights: Any, fewest: int) -> float:
    """The mean of a score over the targets that have `fewest` different values or more; blanks are left out.

    Args:
        score: of `y`, predictions and `sample_weight`, `[m]` each, such as `sklearn.metrics.r2_score`.
        y: `[n]` or `[n, T]`; NaN and None are blanks.
        predicted: of the same shape.
        weights: `[n]`, or None.
        fewest: different values that the score takes to be defined.

    Returns:
        NaN, with a warning, where no target has so many.

    Raises:
        InputError: y is of another shape.
    """
    if y.shape != predicted.shape:
        raise InputError(f"y must be of shape {list(predicted.shape)}, as the predictions are, not {list(y.shape)}")
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    found = []
    for column, own in zip(as_columns(y).T, as_columns(predicted).T, strict=True):
        known = ~pd.isna(column)
        if len(pd.unique(column[known])) >= fewest:
            found.append(float(score(column[known], own[known], sample_weight=weights[known])))
    if not found:
        warnings.warn(
            f"the score is not defined: no target has {fewest} different values", UndefinedMetricWarning, stacklevel=3
        )
        return float("nan")
    return float(np.mean(found))


# --- What the estimators share: their parameters, and the way from SMILES to a trained model.

_DEFAULT = TrainSettings()


class MoleculeEstimator(BaseEstimator):
    """Base class of `MoleculeRegressor` and `MoleculeClassifier`.

    Attributes:
        predictor_: the trained `gtx.prediction.Predictor`, which gives data frames, with the spread of an ensemble.
    """

    def __init__(
        self,
        *,
        epochs: int | None = _DEFAULT.epochs,
        ensemble: int = _DEFAULT.ensemble,
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
        smiles_columns: Sequence[str] | None = None,
        feature_columns: Sequence[str] | None = None,
        atom_feature_columns: Sequence[str] | None = None,
        bond_feature_columns: Sequence[str] | None = None,
        missing_features: Literal["error", "blank"] = "error",
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        workers: int | None = None,
        progress: bool = False,
    ) -> None:
        """Defaults are those of `gtx train`.

        Args:
            epochs: passes over the training molecules; by default 60, for classification 20.
            ensemble: networks trained from seeds of their own; their mean is the prediction.
            lr: peak learning rate.
            loss: of numbers: "auto" is "mse", the others are "mae" and "huber".
            patience: stop after so many epochs without a better validation score; 0 never does.
            model: a name that `gtx models` lists.
            model_arguments: arguments of that model, such as `{"channels": 64, "layers": 4}`.
            start: a model file to go on from, or "foundation", the pretrained model that comes with gtx; `model` and
                `model_arguments` are then its own.
            settings: any other field of `gtx.training.TrainSettings`, by name, such as `{"accelerator": "cpu"}`.
            task_options: options of the task by name, such as `{"element_reference": False}` of numbers or
                `{"class_weights": "balanced"}` of classes.
            max_atoms: larger molecules are refused.
            standardise: keep the largest fragment of a molecule, neutralised.
            descriptors: give the network cheap global descriptors too.
            conformers: make a conformer of every molecule, for models that use coordinates.
            molecule_features: more of the whole molecule, names of `gtx.molecules.MOLECULE_FEATURES`.
            ignore_stereo: do not read which way stereocentres and double bonds are.
            smiles_columns: names of the molecules of a row where each has several, such as `("solute", "solvent")`; X
                is then a pandas table with these columns, or rows of as many SMILES.
            feature_columns: columns of numbers, such as a temperature, that the model reads beside the molecule; X is
                then a pandas table of them and the SMILES. Of more columns, the one called as in training or "smiles"
                holds the SMILES.
            atom_feature_columns, bond_feature_columns: columns of lists of numbers, one for each atom or bond of the
                molecule, that the model reads; X is then a table likewise.
            missing_features: "error", or "blank": such a cell counts as the mean of training, and the model is told.
            validation_fraction: share of the molecules that `fit` sets aside to choose the best epoch; 0 for none.
            random_state: decides the molecules set aside, initial weights, batches and dropout: an int, a
                `numpy.random.RandomState`, or None for another result each time.
            workers: processes that read molecules; by default none for a few, all cores for many.
            progress: show progress bars.
        """
        self.epochs = epochs
        self.ensemble = ensemble
        self.lr = lr
        self.loss = loss
        self.patience = patience
        self.model = model
        self.model_arguments = model_arguments
        self.start = start
        self.settings = settings
        self.task_options = task_options
        self.max_atoms = max_atoms
        self.standardise = standardise
        self.descriptors = descriptors
        self.conformers = conformers
        self.molecule_features = molecule_features
        self.ignore_stereo = ignore_stereo
        self.smiles_columns = smiles_columns
        self.feature_columns = feature_columns
        self.atom_feature_columns = atom_feature_columns
        self.bond_feature_columns = bond_feature_columns
        self.missing_features = missing_features
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.workers = workers
        self.progress = progress

    def save(self, path: str | Path) -> None:
        """Write the model as a file for `gtx predict` and `gtx.load`."""
        check_is_fitted(self, "predictor_")
        self.predictor_.save(path)

    def _fit(self, X: Any, y: np.ndarray, task: NumberTask, weights: Any = None) -> Self:
        given = self._given
        featuriser = Featuriser(
            given.max_atoms,
            given.standardise,
            descriptors=given.descriptors,
            conformers=given.conformers,
            molecule_features=tuple(given.molecule_features),
            components=tuple(given.smiles_columns or ()),
            ignore_stereo=given.ignore_stereo,
        )
        data = DataSettings("", task=task, featuriser=featuriser, features=self._features())
        smiles, features, column = self._inputs(X, featuriser.components, data.features, given.conformers)
        if len(smiles) != len(y):
            raise InputError(f"X holds {len(smiles)} SMILES and y {len(y)} rows")
        data, settings, fine_tuning = opened(data, self._settings(), given.start)
        done = featurise(data.featuriser, smiles, workers=given.workers, progress=given.progress)
        done = done if features is None else data.features.joined(done, features)
        if complaint := complaint_of(smiles, done.errors):
            raise InputError(complaint)
        store = replace(done.store.with_targets(y), weights=as_weights(weights, len(y)))
        split, words = self._split(len(smiles), settings.seed)
        molecules = LabelledMolecules(task, store, done.smiles, split, words, column or ModelHeader.smiles_column)
        plan = Plan.make(molecules, data, settings, fine_tuning)
        with TemporaryDirectory() as folder:
            members, header = plan.fit(Path(folder))
        self._count_features(X, len(given.smiles_columns or "1"))
        self.predictor_ = plan.blend(members, header).predictor
        return self

    @property
    def _given(self) -> SimpleNamespace:
        """The parameters, with Python's own numbers and lists in place of numpy's."""
        return SimpleNamespace(**plain(self.get_params(deep=False)))

    def _features(self) -> FeatureColumns | None:
        given = self._given
        if given.missing_features not in ("error", "blank"):
            raise InputError(f"missing_features: expected 'error' or 'blank', got {given.missing_features!r}")
        blanks = given.missing_features == "blank"
        kinds = (given.feature_columns, given.atom_feature_columns, given.bond_feature_columns)
        names, atoms, bonds = (kind or () for kind in kinds)
        return FeatureColumns(names, blanks, atoms, bonds) if names or atoms or bonds else None

    def _inputs(
        self,
        X: Any,
        components: Sequence[str],
        features: FeatureColumns | None,
        coordinates: bool,
        usual: str | None = None,
    ) -> tuple[list[Text], list[RowFeatures] | None, str | None]:
        """The SMILES, or the tuples of a row's; what is read beside them; and the name of a table's column of SMILES,
        which was called `usual` in training."""
        X = as_frame(X)
        table = isinstance(X, pd.DataFrame)
        if features is not None and not table:
            raise InputError(f"X must be a pandas table with the columns {listed(features.columns)} and the SMILES")
        column = None
        if components:
            smiles = as_texts(component_rows(X, components), coordinates)
        else:
            held = smiles_in(X, () if features is None else features.columns, usual) if table else X
            smiles, column = as_smiles(held, coordinates), str(held.name) if table else None
        return smiles, None if features is None else features.of_columns(X, len(smiles)), column

    def _options(self) -> dict[str, Any]:
        given = self._given
        return {"loss": None if given.loss == "auto" else given.loss, **(given.task_options or {})}

    def _settings(self) -> TrainSettings:
        given = self._given
        seed = given.random_state
        if seed is None or isinstance(seed, np.random.RandomState):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        named = {name: getattr(given, name) for name in ("epochs", "ensemble", "lr", "patience", "model", "progress")}
        named |= {"model_arguments": given.model_arguments or {}, "seed": seed}
        try:
            return TrainSettings(**named, **(given.settings or {}))
        except TypeError as reason:  # not a field, or one that has a parameter of its own
            raise InputError(f"settings: {str(reason).removeprefix('TrainSettings.__init__() ')}") from None

    def _count_features(self, X: Any, columns: int) -> None:
        """Note the columns of X as scikit-learn's estimators do."""
        X = as_frame(X)
        self.n_features_in_ = X.shape[1] if isinstance(X, pd.DataFrame) else columns
        if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.array(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def _split(self, rows: int, seed: int) -> tuple[Split, str]:
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation_fraction: expected at least 0 and below 1, got {self.validation_fraction}")
        order = np.random.default_rng(seed).permutation(rows)
        aside = int(np.ceil(rows * self.validation_fraction)) if rows > 1 else 0
        parts = {"train": order[aside:], "val": order[:aside], "test": order[:0]}
        return {part: np.sort(index) for part, index in parts.items()}, f"random, seed {seed}"

    def _predict(self, X: Any, *kinds: str) -> tuple[list[np.ndarray], str | None]:
        """Return the named arrays of `gtx.tasks.predictions.Predictions`, `[n, ...]` each, with NaN for unusable
        SMILES; and a warning about these, or None."""
        check_is_fitted(self, "predictor_")
        header = self.predictor_.header
        smiles, features, _ = self._inputs(
            X, header.featuriser.components, header.features, header.featuriser.coordinates, header.smiles_column
        )
        done = featurise(header.featuriser, smiles, workers=self.workers, progress=self.progress)
        done = done if features is None else header.features.joined(done, features)
        answers = self.predictor_.predict_store(done.store)

        def placed(values: np.ndarray) -> np.ndarray:
            every = np.full((len(smiles), values.shape[1]), np.nan)
            every[done.good] = values
            return every

        return [placed(getattr(answers, kind)) for kind in kinds], complaint_of(smiles, done.errors)

    def _warned(self, X: Any, *kinds: str) -> list[np.ndarray]:
        """Return the same arrays and warn of SMILES that cannot be used."""
        values, complaint = self._predict(X, *kinds)
        if complaint:
            warnings.warn(f"{complaint}; NaN is returned", stacklevel=3)
        return values

    def _readable(self, X: Any) -> np.ndarray:
        """Predictions `[n, P]`, every SMILES of which can be used.

        Raises:
            InputError: one cannot.
        """
        (values,), complaint = self._predict(X, "mean")
        if complaint:
            raise InputError(complaint)
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


# --- Numbers from SMILES.


class MoleculeRegressor(RegressorMixin, MoleculeEstimator):
    """Numbers from SMILES, as a scikit-learn regressor.

    MoleculeRegressor().fit(smiles, y).predict(smiles)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, or the input or a parameter is otherwise at fault.
        """
        y, names = as_numbers(y)
        self.one_dimensional_ = y.ndim == 1
        if np.isinf(y).any():
            raise InputError(f"y holds an infinite value at {tuple(np.argwhere(np.isinf(y))[0].tolist())}")
        return self._fit(X, as_columns(y), make(Regression, names, self._options()), sample_weight)

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predictions in the targets' own units, float64 `[n]` or `[n, T]` as y was.

        A SMILES that cannot be read gives NaN, and all of them together one warning.

        Args:
            X: SMILES, as `fit` takes them.
            return_std: give standard deviations of the same shape too, as `(predictions, std)`.

        Raises:
            InputError: the model has no standard deviations.
        """
        check_is_fitted(self, "predictor_")
        if not return_std:
            return self._shaped(*self._warned(X, "mean"))
        if "std" not in self.predictor_.task.kinds(0, len(self.predictor_.members)):
            raise InputError(
                "return_std: this model has no standard deviations; expected one fitted with "
                'task_options={"uncertainty": "variance"}, another method of uncertainty, or ensemble=5'
            )
        mean, std = self._warned(X, "mean", "std")
        return self._shaped(mean), self._shaped(std)

    def predict_interval(self, X: Any) -> np.ndarray:
        """Low and high bounds of intervals, float64 `[n, 2]`, or `[n, T, 2]` where y was `[n, T]`.

        They hold 90 % of the values, or what `task_options={"coverage": ...}` says.

        They are split-conformal intervals, fitted on the rows that `fit` sets aside. A SMILES that cannot be read gives
        NaN, and all of them together one warning. A target with fewer than nine of these rows (19 for a coverage of
        0.95) has NaN too.

        Raises:
            InputError: no target has enough rows set aside.
        """
        check_is_fitted(self, "predictor_")
        if not self.predictor_.task.has_intervals:
            raise InputError(
                f"this model has no intervals: they take {fewest(self.predictor_.task.coverage)} rows set aside or "
                f"more, expected more rows or a larger validation_fraction than {self.validation_fraction}"
            )
        low, high = self._warned(X, "low", "high")
        return np.stack([self._shaped(low), self._shaped(high)], axis=-1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions. Blanks (NaN) are left out, and of several targets it is the mean over those that have
        two different values or more.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = as_numbers(y)
        return mean_score(r2_score, y, self._shaped(self._readable(X)), sample_weight, fewest=2)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.one_dimensional_ else values


# --- Classes from SMILES.


class MoleculeClassifier(ClassifierMixin, MoleculeEstimator):
    """One of several classes from SMILES, or several labels at once, as a scikit-learn classifier.

    MoleculeClassifier().fit(smiles, labels).predict_proba(smiles)

    `classes_` holds the classes in order. For several labels of zeros and ones it holds their numbers, as in
    scikit-learn's own multi-label classifiers; for labels of other classes it is a list with the classes of each.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`, two classes or more of any kind in each column; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, y holds no classes, or a parameter is at fault.
        """
        y, names = as_targets(y, object)
        self.multi_label_ = y.ndim == 2
        columns = as_columns(y)
        classes = [classes_of(column, name) for column, name in zip(columns.T, names, strict=True)]
        words = tuple(tuple(map(str, each.tolist())) for each in classes)
        if not self.multi_label_:
            self.classes_ = classes[0]
        elif all(each.tolist() == [0, 1] for each in classes):
            self.classes_ = np.arange(len(classes))
            words = (("0", "1"),) * len(classes)
        else:
            self.classes_ = classes
        kind = Multiclass if any(len(each) > 2 for each in classes) else Classification
        task = replace(make(kind, names, self._options()), classes=words)
        numbers = np.full(columns.shape, np.nan)
        for t, each in enumerate(classes):
            known = ~pd.isna(columns[:, t])
            numbers[known, t] = np.searchsorted(each, np.array(columns[known, t].tolist()))
        return self._fit(X, numbers, task, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Probabilities, float64 `[n, C]` in the order of `classes_`. For several labels of two classes `[n, T]`, that
        of the second class of each; where a label has more classes a list of T, `[n, C]` each, as scikit-learn's
        forests give it.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        (values,) = self._warned(X, "mean")
        if not self.multi_label_:
            return np.concatenate([1 - values, values], axis=1) if values.shape[1] == 1 else values
        return self._by_label(values) if self._has_more_than_two() else values

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class `[n]`, or for several labels `[n, T]`: zeros and ones, or the classes of each as y had
        them.

        Raises:
            InputError: a SMILES cannot be read; there is no class that says so.
        """
        values = self._readable(X)
        if self._has_more_than_two():
            places = np.stack([probabilities.argmax(1) for probabilities in self._by_label(values)], axis=1)
        else:
            places = (values > 0.5).astype(int)
        if not self.multi_label_:
            return self.classes_[places[:, 0]]
        if isinstance(self.classes_, np.ndarray):
            return places
        every = zip(self.classes_, places.T, strict=True)
        return np.stack([classes.astype(object)[rows] for classes, rows in every], axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right classes. Blanks (NaN) are left out, and of several labels it is the mean over those that
        have values.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = as_targets(y, object)
        return mean_score(_right, y, self.predict(X), sample_weight, fewest=1)

    def _has_more_than_two(self) -> bool:
        return isinstance(self.predictor_.task, Multiclass)

    def _by_label(self, values: np.ndarray) -> list[np.ndarray]:
        """The probabilities of the classes of each label, `[n, C]` each, of those of all side by side."""
        return np.split(values, np.cumsum(self.predictor_.task.widths)[:-1], axis=1)


def _right(y: np.ndarray, predicted: np.ndarray, sample_weight: np.ndarray) -> float:
    return float(np.average(y == predicted, weights=sample_weight))
