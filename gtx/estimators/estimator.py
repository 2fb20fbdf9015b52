"""What the estimators share: their parameters, and the way from SMILES to a trained model."""

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
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.data.columns import listed
from gtx.data.rows import RowFeatures
from gtx.dataset import DataSettings
from gtx.errors import InputError
from gtx.estimators.given import as_smiles, as_weights, complaint_of, smiles_in
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.molecules.featuriser import Text
from gtx.prediction import ModelHeader
from gtx.prediction.given import as_texts, given_components
from gtx.prediction.training_rows import TrainingRows
from gtx.tasks import NumberTask
from gtx.training import TrainSettings, fit
from gtx.workflow import Further, check_model, check_rows, learned_spec, mixed, model_spec

_DEFAULT = TrainSettings()


class MoleculeEstimator(BaseEstimator):
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
        smiles, features, column = self._inputs(X, self.smiles_columns or (), self._features())
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
        if complaint := complaint_of(smiles, done.errors):
            raise InputError(complaint)
        split = self._split(len(smiles), settings.seed)
        store = replace(done.store.with_targets(y), weights=as_weights(weights, len(y)))
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
        kept = learned_from = None
        if settings.training_rows is not False:
            kept = _training_rows(members[0].task, done.smiles, split["train"], store)
            learned_from = partial(_training_rows, members[0].task, done.smiles, np.arange(len(smiles)), store)
        beside = {"smiles_column": column or ModelHeader.smiles_column, "features": self._features(), "training": kept}
        header = ModelHeader(members[0].task, featuriser, learned, **beside, settings=said)
        self.predictor_ = mixed(members, header, store, split, settings, learned_from).predictor
        return self

    def _features(self) -> FeatureColumns | None:
        if self.missing_features not in ("error", "blank"):
            raise InputError(f"missing_features: expected 'error' or 'blank', got {self.missing_features!r}")
        blanks = self.missing_features == "blank"
        kinds = (self.feature_columns, self.atom_feature_columns, self.bond_feature_columns)
        names, atoms, bonds = (kind or () for kind in kinds)
        return FeatureColumns(names, blanks, atoms, bonds) if names or atoms or bonds else None

    def _inputs(
        self, X: Any, components: Sequence[str], features: FeatureColumns | None, usual: str | None = None
    ) -> tuple[list[Text], list[RowFeatures] | None, str | None]:
        """The SMILES, or the tuples of a row's; what is read beside them; and the name of a table's column of SMILES,
        which was called `usual` in training."""
        table = isinstance(X, pd.DataFrame)
        if features is not None and not table:
            raise InputError(f"X must be a pandas table with the columns {listed(features.columns)} and the SMILES")
        column = None
        if components:
            smiles = as_texts(given_components(X, components))
        else:
            given = smiles_in(X, () if features is None else features.columns, usual) if table else X
            smiles, column = as_smiles(given), str(given.name) if table else None
        return smiles, None if features is None else features.of_columns(X, len(smiles)), column

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

    def _predict(self, X: Any, *kinds: str) -> tuple[list[np.ndarray], str | None]:
        """What `gtx.tasks.predictions.Predictions` has under these names, `[n, ...]` each, NaN for SMILES that cannot
        be used; and what there is to say of these."""
        check_is_fitted(self, "predictor_")
        header = self.predictor_.header
        smiles, features, _ = self._inputs(X, header.featuriser.components, header.features, header.smiles_column)
        done = featurise(header.featuriser, smiles, workers=self.workers, progress=self.progress)
        done = done if features is None else header.features.joined(done, features)
        answers = self.predictor_.predict_store(done.store)

        def placed(values: np.ndarray) -> np.ndarray:
            every = np.full((len(smiles), values.shape[1]), np.nan)
            every[done.good] = values
            return every

        return [placed(getattr(answers, kind)) for kind in kinds], complaint_of(smiles, done.errors)

    def _warned(self, X: Any, *kinds: str) -> list[np.ndarray]:
        """The same, with a warning of SMILES that cannot be used."""
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


def _training_rows(task: NumberTask, smiles: Sequence[str], rows: np.ndarray, store: MoleculeStore) -> TrainingRows:
    """What a model file keeps of rows that it learned from; they are called by their place in X, from 1."""

    def cell(t: int, value: float) -> str:
        if np.isnan(value):
            return ""
        return task.value_text(t, value) if task.discrete else f"{value:.9g}"

    columns = enumerate(store.y.numpy()[rows].T)
    values = {task.targets[t]: [cell(t, value) for value in column] for t, column in columns}
    return TrainingRows.drawn([smiles[i] for i in rows], rows + 1, values)
