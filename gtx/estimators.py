"""scikit-learn estimators: SMILES in, ndarray out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.data.columns import listed
from gtx.data.rows import RowFeatures
from gtx.dataset import DataSettings
from gtx.errors import InputError, printable
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.molecules.featuriser import Text
from gtx.prediction import ModelHeader
from gtx.prediction.given import as_texts, given_components
from gtx.prediction.training_rows import TrainingRows
from gtx.tasks import Classification, Multiclass, NumberTask, Regression, make
from gtx.training import TrainSettings, fit
from gtx.workflow import Further, check_model, check_rows, learned_spec, mixed, model_spec

_DEFAULT = TrainSettings()


class _MoleculeEstimator(BaseEstimator):
    """What `MoleculeRegressor` and `MoleculeClassifier` share.

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
                then a pandas table of them and one more column, the SMILES.
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
        smiles, features = self._inputs(X, self.smiles_columns or (), self._features())
        if len(smiles) != len(y):
            raise InputError(f"X holds {len(smiles)} SMILES and y {len(y)} rows")
        featuriser = Featuriser(
            self.max_atoms,
            self.standardise,
            descriptors=self.descriptors,
            conformers=self.conformers,
            molecule_features=tuple(self.molecule_features),
            components=tuple(self.smiles_columns or ()),
            ignore_stereo=self.ignore_stereo,
        )
        settings = self._settings()
        check_rows(task, settings)
        if self.start is None:
            further, start = None, {}
            check_model(settings, featuriser, self._features())
        else:
            data = DataSettings("", task=task, featuriser=featuriser, features=self._features())
            further = Further.open(self.start, data, settings)
            featuriser, settings = further.featuriser, further.tuned(settings)
        done = featurise(featuriser, smiles, workers=self.workers, progress=self.progress)
        done = done if features is None else self._features().joined(done, features)
        if complaint := _complaint(smiles, done.errors):
            raise InputError(complaint)
        split = self._split(len(smiles), settings.seed)
        store = replace(done.store.with_targets(y), weights=_weights(weights, len(y)))
        train, val = store.subset(split["train"]), store.subset(split["val"])
        if further is None:
            spec = model_spec(settings, featuriser, task, len(train), self._features())
        else:
            task = further.adopted(task.fitted(task.labelled(train)))
            start = {"start": further.members, "adoption": further.adoption(task)}
            spec = further.spec(task)
        with TemporaryDirectory() as folder:
            members = fit(partial(build_model, spec), task, train, val, settings, folder, **start)
        said = settings.decisive() | ({} if further is None else {"start": further.origin(spec, members[0].task)})
        learned = learned_spec(spec, members[0].model)
        kept = None
        if settings.training_rows is not False:
            kept = _training_rows(members[0].task, [done.smiles[i] for i in split["train"]], split["train"], train)
        beside = {"features": self._features(), "training": kept}
        header = ModelHeader(members[0].task, featuriser, learned, **beside, settings=said)
        self.predictor_ = mixed(members, header, store, split, settings).predictor
        return self

    def _features(self) -> FeatureColumns | None:
        if self.missing_features not in ("error", "blank"):
            raise InputError(f"missing_features: expected 'error' or 'blank', got {self.missing_features!r}")
        blanks = self.missing_features == "blank"
        kinds = (self.feature_columns, self.atom_feature_columns, self.bond_feature_columns)
        names, atoms, bonds = (kind or () for kind in kinds)
        return FeatureColumns(names, blanks, atoms, bonds) if names or atoms or bonds else None

    def _inputs(
        self, X: Any, components: Sequence[str], features: FeatureColumns | None
    ) -> tuple[list[Text], list[RowFeatures] | None]:
        """The SMILES, or the tuples of a row's, and what is read beside them."""
        if features is None:
            return as_texts(given_components(X, components)) if components else _smiles(X), None
        if not isinstance(X, pd.DataFrame):
            raise InputError(f"X must be a pandas table with the columns {listed(features.columns)} and the SMILES")
        alone = X.drop(columns=[name for name in features.columns if name in X])
        smiles = as_texts(given_components(X, components)) if components else _smiles(alone)
        return smiles, features.of_columns(X, len(smiles))

    def _options(self) -> dict[str, Any]:
        return {"loss": None if self.loss == "auto" else self.loss, **(self.task_options or {})}

    def _settings(self) -> TrainSettings:
        seed = self.random_state
        if seed is None or isinstance(seed, np.random.RandomState):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        named = {name: getattr(self, name) for name in ("epochs", "ensemble", "lr", "patience", "model", "progress")}
        named |= {"model_arguments": self.model_arguments or {}, "seed": seed}
        try:
            return TrainSettings(**named, **(self.settings or {}))
        except TypeError as reason:  # not a field, or one that has a parameter of its own
            raise InputError(f"settings: {str(reason).removeprefix('TrainSettings.__init__() ')}") from None

    def _split(self, rows: int, seed: int) -> dict[str, np.ndarray]:
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation_fraction: expected at least 0 and below 1, got {self.validation_fraction}")
        order = np.random.default_rng(seed).permutation(rows)
        aside = int(np.ceil(rows * self.validation_fraction)) if rows > 1 else 0
        return {"train": np.sort(order[aside:]), "val": np.sort(order[:aside])}

    def _predict(self, X: Any) -> tuple[np.ndarray, str | None]:
        """`[n, P]`, NaN for SMILES that cannot be used, and what there is to say of these."""
        check_is_fitted(self, "predictor_")
        header = self.predictor_.header
        smiles, features = self._inputs(X, header.featuriser.components, header.features)
        done = featurise(header.featuriser, smiles, workers=self.workers, progress=self.progress)
        done = done if features is None else header.features.joined(done, features)
        values = np.full((len(smiles), header.task.num_predictions), np.nan)
        values[done.good] = self.predictor_.predict_store(done.store).mean
        return values, _complaint(smiles, done.errors)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


class MoleculeRegressor(RegressorMixin, _MoleculeEstimator):
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
        y, names = _targets(y, float)
        self.one_dimensional_ = y.ndim == 1
        if np.isinf(y).any():
            raise InputError(f"y holds an infinite value at {tuple(np.argwhere(np.isinf(y))[0].tolist())}")
        return self._fit(X, _columns(y), make(Regression, names, self._options()), sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the targets' own units, float64 `[n]` or `[n, T]` as y was.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        values, complaint = self._predict(X)
        if complaint:
            warnings.warn(f"{complaint}; NaN is returned", stacklevel=2)
        return values[:, 0] if self.one_dimensional_ else values


class MoleculeClassifier(ClassifierMixin, _MoleculeEstimator):
    """One of several classes from SMILES, or several yes-or-no labels at once, as a scikit-learn classifier.

    MoleculeClassifier().fit(smiles, labels).predict_proba(smiles)

    `classes_` holds the classes in order; for several labels, their numbers, as in scikit-learn's own multi-label
    classifiers.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]`, two classes or more of any kind, or `[n, T]` of zeros and ones; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, there are not two classes, or a parameter is at fault.
        """
        y, names = _targets(y)
        self.multi_label_ = y.ndim == 2
        known = ~pd.isna(y)
        for column, observed in zip(_columns(y).T, _columns(known).T, strict=True):
            classes = np.unique(column[observed])
            if len(classes) < 2 or (self.multi_label_ and classes.tolist() != [0, 1]):
                expected = "labels 0 and 1 in every column" if self.multi_label_ else "two classes or more"
                raise InputError(f"expected {expected} of y, got {', '.join(map(str, classes[:5])) or 'none'}")
        self.classes_ = np.arange(y.shape[1]) if self.multi_label_ else classes
        words = tuple(map(str, classes))
        if self.multi_label_ or len(classes) == 2:
            task = replace(
                make(Classification, names, self._options()),
                classes=((("0", "1") if self.multi_label_ else words),) * len(names),
            )
            return self._fit(X, _columns(np.where(known, y == classes[1], np.nan)), task, sample_weight)
        task = replace(make(Multiclass, names, self._options()), classes=(words,))
        numbers = np.where(known, np.searchsorted(classes, np.where(known, y, classes[0])), np.nan)
        return self._fit(X, numbers[:, None], task, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, float64 `[n, C]` in the order of `classes_`; for several labels `[n, T]`, each label's own.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        values, complaint = self._predict(X)
        if complaint:
            warnings.warn(f"{complaint}; NaN is returned", stacklevel=2)
        return np.concatenate([1 - values, values], axis=1) if self._binary(values) else values

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class `[n]`, or zeros and ones `[n, T]` for several labels.

        Raises:
            InputError: a SMILES cannot be read; there is no class that says so.
        """
        values, complaint = self._predict(X)
        if complaint:
            raise InputError(complaint)
        if self.multi_label_:
            return (values > 0.5).astype(int)
        return self.classes_[(values[:, 0] > 0.5).astype(int) if self._binary(values) else values.argmax(1)]

    def _binary(self, values: np.ndarray) -> bool:
        return not self.multi_label_ and values.shape[1] == 1


def _training_rows(task: NumberTask, smiles: Sequence[str], rows: np.ndarray, train: MoleculeStore) -> TrainingRows:
    """What a model file keeps of the training rows; they are called by their place in X, from 1."""

    def cell(t: int, value: float) -> str:
        if np.isnan(value):
            return ""
        return task.value_text(t, value) if task.discrete else f"{value:.9g}"

    columns = enumerate(train.y.numpy().T)
    values = {task.targets[t]: [cell(t, value) for value in column] for t, column in columns}
    return TrainingRows.drawn(smiles, rows + 1, values)


def _smiles(X: Any) -> list[str]:
    if isinstance(X, str):
        raise InputError("X must be a list or an array of SMILES, not one of them")
    array = np.asarray(X, dtype=object)
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError(f"X must be SMILES [n], or a table of one column, not of shape {list(array.shape)}")
    texts = array.ravel().tolist()
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X must be SMILES: number {i} is {text!r}")
    if not texts:
        raise InputError("X holds no SMILES")
    return texts


def _targets(y: Any, dtype: type | None = None) -> tuple[np.ndarray, list[str]]:
    """y as an array `[n]` or `[n, T]`, and names for its columns."""
    names = [str(name) for name in y.columns] if isinstance(y, pd.DataFrame) else None
    array = np.asarray(y, dtype=dtype)
    if array.ndim not in (1, 2):
        raise InputError(f"y must be of shape [n] or [n, T], not {list(array.shape)}")
    name = getattr(y, "name", None) or "y"
    return array, names or ([str(name)] if array.ndim == 1 else [f"y{t}" for t in range(array.shape[1])])


def _weights(given: Any, rows: int) -> torch.Tensor | None:
    if given is None:
        return None
    weights = np.asarray(given, dtype=float)
    if weights.shape != (rows,):
        raise InputError(f"sample_weight must be of shape [{rows}], one for each row, not {list(weights.shape)}")
    if not ((weights >= 0) & np.isfinite(weights)).all():
        place = int((~((weights >= 0) & np.isfinite(weights))).argmax())
        raise InputError(f"sample_weight must be numbers of 0 or more: number {place} is {weights[place]:g}")
    return torch.from_numpy(weights)


def _columns(y: np.ndarray) -> np.ndarray:
    return y[:, None] if y.ndim == 1 else y


def _complaint(smiles: Sequence[Text], errors: Sequence[str | None]) -> str | None:
    """How many SMILES cannot be used, and the first of them; None if all can."""
    bad = [i for i, error in enumerate(errors) if error]
    if not bad:
        return None
    text = smiles[bad[0]]
    shown = f"{printable(text)!r} " if isinstance(text, str) else ""
    first = f"the first is number {bad[0]}, counted from 0: {shown}{errors[bad[0]]}"
    return f"{len(bad)} of {len(smiles)} SMILES cannot be used; {first}"
