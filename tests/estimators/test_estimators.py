"""Estimators as scikit-learn has them: parameters, tables as X, what is said of bad input, and what is calibrated."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rdkit import Chem
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import gtx
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, TINY_ESTIMATOR, molecules, write

pytestmark = pytest.mark.slow

SETTINGS: dict = TINY_ESTIMATOR["settings"]


def regressor(**arguments: object) -> gtx.MoleculeRegressor:
    return gtx.MoleculeRegressor(**TINY_ESTIMATOR | {"epochs": 3} | arguments)


def classifier(**arguments: object) -> gtx.MoleculeClassifier:
    return gtx.MoleculeClassifier(**TINY_ESTIMATOR | {"epochs": 3} | arguments)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return molecules(80)


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame) -> gtx.MoleculeRegressor:
    return regressor(epochs=12).fit(table.smiles, table.gap)


@pytest.fixture(scope="module")
def labels(table: pd.DataFrame) -> gtx.MoleculeClassifier:
    return classifier(epochs=1).fit(table.smiles[:30], table.gap[:30] > table.gap[:30].median())


def test_parameters_and_clones() -> None:
    estimator = regressor(lr=0.01)
    assert estimator.get_params()["lr"] == 0.01
    assert estimator.set_params(lr=0.1, random_state=3) is estimator and estimator.lr == 0.1
    copy = clone(estimator)
    assert copy is not estimator and copy.get_params() == estimator.get_params()
    assert is_regressor(estimator) and is_classifier(classifier())
    assert repr(gtx.MoleculeRegressor()) == "MoleculeRegressor()"
    with pytest.raises(ValueError, match="wings"):
        estimator.set_params(wings=2)
    with pytest.raises(TypeError, match=r"^MoleculeRegressor has no parameter 'epoch'; did you mean 'epochs'\?$"):
        gtx.MoleculeRegressor(epoch=1)


def test_it_learns_and_scores(fitted: gtx.MoleculeRegressor, table: pd.DataFrame) -> None:
    predicted = fitted.predict(table.smiles.to_numpy())
    assert isinstance(predicted, np.ndarray) and predicted.shape == (80,) and predicted.dtype == float
    assert fitted.score(table.smiles, table.gap) == r2_score(table.gap, predicted) > 0.6
    np.testing.assert_allclose(fitted.predict(table[["smiles"]]), predicted)  # a column out of a table


def test_a_file_says_of_split_and_settings_what_that_of_gtx_train_says(table: pd.DataFrame, tmp_path) -> None:
    data = write(tmp_path / "data.csv", table[["smiles", "gap"]].to_numpy().tolist(), ["smiles", "gap"])
    settings = TrainSettings(epochs=1, model_arguments=TINY["model_arguments"], **SETTINGS)
    train_model(DataSettings(str(data), ("gap",), workers=0), settings, tmp_path / "run", **ALONE)
    regressor(epochs=1).fit(table.smiles, table.gap).save(tmp_path / "model.gtx")
    of_train, own = (gtx.load(tmp_path / file).header for file in ("run/model.gtx", "model.gtx"))
    assert own.settings | {"seen": None} == of_train.settings | {"seen": None}  # which tells of test rows
    assert own.split.keys() == of_train.split.keys()
    assert own.split == {"how": "random, seed 0", "train": 72, "val": 8, "test": 0}


ALIKE = ["CC(O)F", "CC(N)F", "CCCO", "CCCN", "CC(O)Cl", "CC(N)Cl", "CCOC", "CCNC"]


@pytest.mark.parametrize(
    ("arguments", "X"),
    [
        ({}, [*ALIKE, *(Chem.MolFromSmiles(text) for text in ALIKE)]),
        ({"standardise": True}, [*ALIKE, *(f"{text}.Cl" for text in ALIKE)]),
        (
            {"ignore_stereo": True},
            [*(text.replace("C(", "[C@H](") for text in ALIKE), *(text.replace("C(", "[C@@H](") for text in ALIKE)],
        ),
        (
            {"smiles_columns": ["a", "b"], "feature_columns": ["T"]},
            pd.DataFrame({"a": ALIKE * 2, "b": ["O"] * 8 + ["[H]O[H]"] * 8, "T": range(16)}),
        ),
    ],
    ids=["RDKit", "salts", "stereo", "components"],
)
def test_rows_that_the_model_reads_as_one_molecule_are_held_out_together(arguments: dict, X: object) -> None:
    options = {"epochs": 1, "settings": SETTINGS | {"blend": "no"}, "validation_fraction": 0.5}
    fitted = regressor(**options, **arguments).fit(X, np.arange(16))
    train = [row - 1 for row in fitted.predictor_.header.training.rows]
    assert len(train) == 8 and sorted(train) == sorted((row + 8) % 16 for row in train)  # 0.5 % by chance


@pytest.mark.parametrize(("molecules", "held_out"), [(1, 0), (2, 1), (5, 1)])
def test_few_molecules_with_weights(molecules: int, held_out: int) -> None:
    smiles = ["C" * (1 + i % molecules) for i in range(2 * molecules)]
    weights = [1, *[2] * (len(smiles) - 1)]
    estimator = regressor(epochs=1).fit(smiles, range(len(smiles)), weights)
    assert estimator.predictor_.header.split["val"] == 2 * held_out and np.isfinite(estimator.predict(["CO"])).all()


def test_one_value_is_learned_and_nothing_validates() -> None:
    blank = regressor(epochs=1).fit(["C", "CC", "CCC"], [1, np.nan, np.nan])
    assert blank.predictor_.header.split | {"how": ""} == {"how": "", "train": 1, "val": 0, "test": 0}


def test_equal_states_give_equal_models(table: pd.DataFrame) -> None:
    def told(state: object) -> float:
        return regressor(epochs=1, random_state=state).fit(table.smiles[:30], table.gap[:30]).predict(["CCO"])[0]

    assert told(1) == told(1) != told(2) and told(np.random.RandomState(0)) == told(np.random.RandomState(0))


def test_numbers_of_numpy_are_parameters_too(table: pd.DataFrame, tmp_path) -> None:
    estimator = regressor(
        random_state=np.int64(3),
        lr=np.float32(1e-2),
        max_atoms=np.int64(80),
        model_arguments=TINY["model_arguments"] | {"channels": np.int64(8)},
        task_options={"coverage": np.float32(0.75)},
        molecule_features=np.array([]),
    )
    estimator.set_params(epochs=np.arange(1, 3)[0]).fit(table.smiles[:40], table.gap[:40]).save(tmp_path / "model.gtx")
    header = gtx.load(tmp_path / "model.gtx").header
    assert header.featuriser.max_atoms == 80 and header.settings["seed"] == 3 and header.task.coverage == 0.75
    with pytest.raises(ValueError, match=r"epochs: expected a whole number.*got 1\.5"):
        clone(estimator).set_params(epochs=1.5).fit(table.smiles[:40], table.gap[:40])


def test_fits_in_threads_are_those_one_after_the_other(table: pd.DataFrame) -> None:
    def fitted(seed: int) -> float:
        return float(regressor(epochs=2, random_state=seed).fit(table.smiles[:40], table.gap[:40]).predict(["CCO"])[0])

    at_once = joblib.Parallel(2, backend="threading")(joblib.delayed(fitted)(seed) for seed in range(2))
    assert at_once == [fitted(seed) for seed in range(2)]


@pytest.mark.parametrize("method", ["predict", "score", "save"])
def test_nothing_comes_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(regressor(), method)(*{"score": (["C"], [1.0])}.get(method, (["C"],)))
    with pytest.raises(NotFittedError):
        classifier().predict_proba(["C"])


def test_it_survives_joblib_and_becomes_a_model_file(fitted, table, tmp_path) -> None:
    expected = fitted.predict(table.smiles)
    joblib.dump(fitted, tmp_path / "estimator.joblib")
    assert (joblib.load(tmp_path / "estimator.joblib").predict(table.smiles) == expected).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict(table.smiles) == expected).all()
    fitted.save(tmp_path / "model.gtx")
    np.testing.assert_array_equal(gtx.load(tmp_path / "model.gtx").predict(table.smiles).gap_pred, expected)


def test_what_cannot_be_read(fitted: gtx.MoleculeRegressor, labels: gtx.MoleculeClassifier) -> None:
    with pytest.raises(ValueError, match=r"2 of 4 SMILES .*is number 1.*'C1CC'.*unclosed ring"):
        regressor().fit(["C", "C1CC", "CC", ""], [1, 2, 3, 4])
    for bad in ("C1CC", "", None, np.nan, pd.NA, pd.NaT, 5):
        with pytest.warns(UserWarning, match="1 of 3 SMILES cannot be used; the first is number 1.*NaN is returned"):
            predicted = fitted.predict(["C", bad, "CC"])
        assert np.isnan(predicted).tolist() == [False, True, False]
    with pytest.warns(UserWarning, match="NaN is returned"):
        assert np.isnan(labels.predict_proba(["C1CC", "C"])).tolist() == [[True, True], [False, False]]
    with pytest.raises(ValueError, match="number 0"):  # no class says that there is none
        labels.predict(["C1CC", "C"])


def test_warnings_name_the_line_of_the_user(fitted: gtx.MoleculeRegressor, labels: gtx.MoleculeClassifier) -> None:
    unseen = ["C[SiH3]", "CC"]
    calls = [
        lambda: fitted.predict(unseen),
        lambda: fitted.score(unseen, [1.0, 2.0]),
        lambda: labels.predict(unseen),
        lambda: labels.predict_proba(unseen),
        lambda: labels.score(unseen, [True, False]),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="element Si") as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}


def test_bad_input_is_named() -> None:
    for X, y, reason in (
        ("CCO", [1.0], "X must be a list, an array or a table .*, not a str"),
        (["C", 3], [1.0, 2.0], "1 of 2 SMILES .*number 1, counted from 0: '3' cannot be read"),
        (["C", None], [1.0, 2.0], "1 of 2 SMILES .*number 1, counted from 0: '' cannot be read: the text is empty"),
        ([["C", "CC"]], [1.0], r"shape \[1, 2\]"),
        (["C", "CC"], [1.0, np.inf], r"y holds inf at \(1,\): a target lies between -1e\+30 and 1e\+30"),
        (["C", "CC"], [1.0, -1e31], r"y holds -1e\+31 at \(1,\): a target lies between -1e\+30 and 1e\+30"),
        (["C", "CC"], ["1", "1e31"], "'1e31': it is too large: .*; where there is none, leave it blank, in Python NaN"),
        ({"C", "CC"}, [1.0, 2.0], "X must be a list, an array or a table .*, not a set"),
        ({"a": ["C", "CC"]}, [1.0, 2.0], "X must be a list, an array or a table .*, not a dict"),
        ((text for text in ("C", "CC")), [1.0, 2.0], "X must be a list, an array or a table .*, not a generator"),
        (["C", "CC"], None, r"y must be of shape \[n\] or \[n, T\], not a value of type NoneType"),
        (["C", "CC"], {1.0, 2.0}, r"y must be of shape \[n\] or \[n, T\], not a value of type set"),
        (["C", "CC"], ["a", "b"], "row 0, counted from 0, holds 'a'; for classes there is MoleculeClassifier"),
        (["C", "CC"], [np.nan, np.nan], "no training molecules with a target"),
    ):
        with pytest.raises(ValueError, match=reason):
            regressor().fit(X, y)


def test_bad_parameters_are_named_at_fit() -> None:
    for arguments, reason in [
        ({"epochs": 0}, "epochs"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"model": "annotations"}, "no model 'annotations'; gtx has standard"),
        ({"model_arguments": {"wings": 2}}, "wings"),
        ({"validation_fraction": "a"}, "validation_fraction: expected a finite number, got 'a'"),
        ({"feature_columns": "temperature"}, "feature_columns: expected a list, got 'temperature'"),
        ({"random_state": -1}, "random_state: expected a number of 0 or more, got -1"),
        ({"start": "foundation"}, "leave out `model` and `model_arguments`"),
        ({"settings": {"lr": 2}}, "settings: lr is a parameter of MoleculeRegressor; leave it out here"),
        ({"settings": {"warm_up": 2}}, "settings: there is no 'warm_up' in TrainSettings; did you mean 'warmup'"),
    ]:
        with pytest.raises(ValueError, match=reason):
            regressor(**arguments).fit(["C", "CC", "CCC"], [1, 2, 3])


def test_it_works_inside_scikit_learn(table: pd.DataFrame) -> None:
    smiles, gap = table.smiles[:45], table.gap[:45]
    labels = (gap > gap.median()).to_numpy()
    scores = cross_val_score(classifier(epochs=1), list(smiles), labels, cv=2, scoring="roc_auc")
    assert scores.shape == (2,) and np.isfinite(scores).all()
    strip = FunctionTransformer(lambda texts: [text.strip("*") for text in texts])
    grid, pipeline = {"moleculeregressor__lr": [1e-3, 1e-2]}, make_pipeline(strip, regressor(epochs=1))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit([f"*{text}*" for text in smiles], gap)
    assert search.best_params_["moleculeregressor__lr"] in (1e-3, 1e-2)
    assert np.isfinite(search.predict(["*CCO*"])).all()


# --- pandas tables as X.


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    return molecules(30)[["smiles", "gap"]].assign(T=np.linspace(280, 310, 30), note="a note")


@pytest.fixture(scope="module")
def warm(small: pd.DataFrame) -> gtx.MoleculeRegressor:
    return regressor(epochs=1, feature_columns=["T"]).fit(small[["smiles", "T"]], small.gap)


@pytest.fixture(scope="module")
def plain(small: pd.DataFrame) -> gtx.MoleculeRegressor:
    return regressor(epochs=1).fit(small.smiles, small.gap)


def test_other_columns_are_named(small: pd.DataFrame) -> None:
    reason = r"columns 'T', 'note' beside 'smiles': give table\['smiles'\], or .*, feature_columns=\['T'\]"
    with pytest.raises(ValueError, match=reason):
        regressor(epochs=1).fit(small[["smiles", "T", "note"]], small.gap)
    with pytest.raises(ValueError, match="a table with a column of SMILES, got one of 'T' alone"):
        regressor(epochs=1, feature_columns=["T"]).fit(small[["T"]], small.gap)


def test_the_smiles_beside_features_are_found_by_name(warm: gtx.MoleculeRegressor, small: pd.DataFrame) -> None:
    expected = warm.predict(small[["smiles", "T"]])
    np.testing.assert_array_equal(warm.predict(small[["note", "T", "smiles"]]), expected)
    renamed = small[["smiles", "T", "note"]].rename(columns={"smiles": "mol"})
    np.testing.assert_array_equal(warm.predict(renamed), expected)  # the only column that reads as molecules
    numbered = renamed.assign(note=range(len(renamed))).rename(columns={"note": "smiles_id"})
    np.testing.assert_array_equal(warm.predict(numbered), expected)  # a name alone does not win
    with pytest.raises(ValueError, match="call it 'smiles', or leave out all columns but one beside 'T'"):
        warm.predict(renamed.assign(note=renamed.mol))


def test_a_column_is_called_as_in_training(small: pd.DataFrame) -> None:
    tdc = pd.DataFrame({"Drug_ID": [f"CHEMBL{i}" for i in range(30)], "Drug": small.smiles, "Y": small.gap})
    with pytest.raises(ValueError, match=r"columns 'Drug_ID', 'Y' beside 'Drug': give table\['Drug'\]"):
        regressor(epochs=1).fit(tdc, tdc.Y)
    named = regressor(epochs=1, feature_columns=["Y"]).fit(tdc, tdc.Y)
    assert named.predictor_.header.smiles_column == "Drug"
    np.testing.assert_allclose(named.predictor_.predict(tdc[["Y", "Drug"]]).Y_pred, named.predict(tdc))


def test_a_table_of_another_library_keeps_its_names(warm: gtx.MoleculeRegressor, small: pd.DataFrame) -> None:
    arrow = pa.Table.from_pandas(small[["smiles", "T"]])  # has `to_pandas`, as polars has
    np.testing.assert_array_equal(warm.predict(arrow), warm.predict(small[["smiles", "T"]]))
    y = pa.Table.from_pandas(small[["gap", "T"]])
    fitted = regressor(epochs=1, feature_columns=["T"]).fit(arrow, y)
    assert fitted.predictor_.header.targets == ["gap", "T"]


def test_features_are_counted_and_named_as_scikit_learn_does(warm, plain) -> None:
    assert warm.n_features_in_ == 2 and warm.feature_names_in_.tolist() == ["smiles", "T"]
    assert plain.n_features_in_ == 1 and not hasattr(plain, "feature_names_in_")


def test_a_table_of_one_column_is_one_target(small: pd.DataFrame) -> None:
    fitted = regressor(epochs=1).fit(small.smiles, small[["gap"]])
    assert fitted.predictor_.header.targets == ["gap"] and fitted.predict(["C"]).shape == (1,)
    assert np.isfinite(fitted.score(small.smiles, small[["gap"]]))
    labels = pd.DataFrame({"high": np.where(small.gap > small.gap.median(), "yes", "no")})
    classes = classifier(epochs=1).fit(small.smiles, labels)
    assert classes.classes_.tolist() == ["no", "yes"] and classes.predict_proba(["C"]).shape == (1, 2)


def test_molecules_of_rdkit_come_out_of_a_step_before(small: pd.DataFrame, plain: gtx.MoleculeRegressor) -> None:
    def read(smiles: list[str]) -> np.ndarray:  # as scikit-mol's SmilesToMolTransformer
        return np.array([Chem.MolFromSmiles(text) for text in smiles], object)[:, None]

    steps = make_pipeline(FunctionTransformer(read), regressor(epochs=1)).fit(small.smiles, small.gap)
    np.testing.assert_allclose(steps.predict(["CCO", "CN"]), plain.predict(["CCO", "CN"]), rtol=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 SMILES cannot be used; the first is number 1"):
        assert np.isnan(plain.predict([Chem.MolFromSmiles("C"), None])).tolist() == [False, True]


def test_what_is_ignored_of_a_molecule_is_a_warning(small: pd.DataFrame) -> None:
    racemic = [*small.smiles[:-1], Chem.MolFromSmiles("C[C@H](O)CC |&1:1|")]
    said = "1 of {} with a warning; the first is number {}, counted from 0: relative or racemic stereochemistry"
    with pytest.warns(UserWarning, match=said.format("30 molecules", 29)):
        fitted = gtx.MoleculeRegressor(model="kernel", workers=0).fit(racemic, small.gap)
    with pytest.warns(UserWarning, match=said.format("2 predictions", 1)):
        values = fitted.predict(["CCC", racemic[-1]])
    np.testing.assert_allclose(values[-1], fitted.predict(["CCC(C)O"])[0])


# --- Intervals, standard deviations, probabilities and sets are calibrated on the rows set aside.


HALF = {"epochs": 10, "validation_fraction": 0.5}


@pytest.fixture(scope="module")
def large() -> pd.DataFrame:
    return molecules(200)


@pytest.fixture(scope="module")
def thirds(large: pd.DataFrame) -> np.ndarray:
    return pd.qcut(large.gap, 3, labels=["low", "medium", "high"]).astype(str).to_numpy()


def test_calibration_changes_probabilities_and_sets_hold_the_true_class(large, thirds) -> None:
    options = {"calibration": "isotonic", "sets": True}
    models = (classifier(**HALF, task_options=each) for each in (None, options))
    plain, told = (each.fit(large.smiles[:120], thirds[:120]) for each in models)
    new = large.smiles[120:]
    p = told.predict_proba(new)
    assert not np.allclose(p, plain.predict_proba(new))
    np.testing.assert_allclose(p.sum(1), 1)
    answers = told.predictor_.predict(new)
    np.testing.assert_array_equal(p, answers[[f"y_{name}" for name in told.classes_]])
    assert (told.predict(new) == answers.y_pred).all()
    inside = [label in held.split("|") for label, held in zip(thirds[120:], answers.y_set, strict=True)]
    assert np.mean(inside) > 0.8 and answers.y_set.nunique() > 1


def test_without_rows_set_aside_nothing_is_calibrated(large: pd.DataFrame, thirds: np.ndarray) -> None:
    none = HALF | {"validation_fraction": 0, "epochs": 1}
    sure = regressor(**none, task_options={"uncertainty": "variance"})
    answers = sure.fit(large.smiles[:30], large.gap[:30]).predictor_.predict(["CCO"])
    assert list(answers)[1:3] == ["gap_pred", "gap_std"] and np.isfinite(answers.gap_std[0])
    options = {"calibration": "isotonic", "sets": True}
    classes = classifier(**none, task_options=options).fit(large.smiles[:30], thirds[:30])
    assert classes.predict_proba(["CCO"]).sum() == pytest.approx(1)
    assert classes.predictor_.predict(["CCO"]).y_set[0] == "low|medium|high"  # nothing is known, so it may be any


def test_standard_deviations_of_the_right_size_and_intervals_come_as_arrays(large: pd.DataFrame) -> None:
    sure = regressor(**HALF, task_options={"uncertainty": "variance"}).fit(large.smiles[:120], large.gap[:120])
    told = sure.predictor_.predict(large.smiles[120:])
    error = (large.gap[120:].to_numpy() - told.gap_pred) / told.gap_std
    assert 0.6 < error.std() < 1.6 and sure.predictor_.task.std_factor[0] not in (None, 1)
    mean, std = sure.predict(large.smiles[120:], return_std=True)
    np.testing.assert_array_equal(mean, told.gap_pred)
    np.testing.assert_array_equal(std, told.gap_std)
    bounds = sure.predict_interval(large.smiles[120:])
    np.testing.assert_array_equal(bounds, told[["gap_low", "gap_high"]])
    with pytest.warns(UserWarning, match="1 of 2 SMILES cannot be used"):
        assert np.isnan(sure.predict_interval(["C", "C1CC"])).tolist() == [[False, False], [True, True]]


def test_of_several_targets_each_has_its_interval(large: pd.DataFrame) -> None:
    y = large[["gap", "dipole"]][:60].copy()
    y.loc[y.index[8:], "dipole"] = np.nan  # too few to say anything of it
    estimator = regressor(**HALF | {"epochs": 1}, folds=2).fit(large.smiles[:60], y)
    mean, std = estimator.predict(["C", "CC", "CCC"], return_std=True)
    assert mean.shape == std.shape == (3, 2) and (std > 0).all()
    bounds = estimator.predict_interval(["C", "CC", "CCC"])
    assert bounds.shape == (3, 2, 2) and (bounds[:, 0, 0] < mean[:, 0]).all() and np.isnan(bounds[:, 1]).all()


def test_what_a_model_cannot_say_is_an_error(large: pd.DataFrame) -> None:
    few = regressor(**HALF | {"validation_fraction": 0.1, "epochs": 1})
    few.fit(large.smiles[:30], large.gap[:30])
    with pytest.raises(ValueError, match=r'no standard deviations; .*task_options=\{"uncertainty": "variance"\}'):
        few.predict(["C"], return_std=True)
    with pytest.raises(ValueError, match=r"9 rows set aside or more, .*larger validation_fraction than 0\.1"):
        few.predict_interval(["C"])
