"""The domain: bands of similarity with the errors of validation rows, and the nearest training molecules."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import DataStructs
from scipy.stats import spearmanr

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import featurise
from gtx.data.similarity import nearest_similarity
from gtx.molecules import Featuriser, read_smiles
from gtx.molecules.descriptors import GetMorganGenerator
from gtx.prediction import Predictor, foundation, predict_table
from gtx.prediction.domain import BANDS, FEWEST, WRONG, Domain, Neighbours, TrainingRows
from gtx.tasks import BinaryClassification, Regression
from tests.tables import GOLDEN, molecules, read

TASK = Regression(["a", "b"])


def measured(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Similarities of n rows, their values with some blanks, and predictions."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 2))
    y[::3, 1] = np.nan
    return rng.random(n), y, y.round() + rng.normal(size=(n, 2))


@pytest.mark.parametrize("n", [30, 57, 400])
def test_errors_are_those_of_the_rows_in_each_band(n: int) -> None:
    similarity, y, _ = measured(n)
    prediction = np.nan_to_num(y) + np.random.default_rng(1).normal(size=y.shape)
    domain = Domain.measure(TASK, similarity, y, prediction)
    found, (low, high) = np.array(BANDS)[domain.assign(similarity)], domain.edges
    assert (found == np.select([similarity < low, similarity < high], ["outside", "edge"], "inside")).all()
    assert (found == "outside").sum() == max(FEWEST, np.ceil(0.1 * n))
    for band in BANDS:
        assert (found == band).sum() >= FEWEST
        for t in range(2):
            known = (found == band) & ~np.isnan(y[:, t])
            error = np.sqrt(np.mean((prediction - y)[known, t] ** 2)) if known.sum() >= FEWEST else None
            assert domain.rows[band][t] == known.sum()
            assert domain.errors[band][t] == (error if error is None else pytest.approx(error, rel=1e-5))


def test_few_or_equal_rows_have_no_invented_error() -> None:
    similarity, y, prediction = measured(FEWEST - 1)
    assert Domain.measure(TASK, similarity, y, np.nan_to_num(prediction)) is None
    same = Domain.measure(TASK, np.ones(50), *(np.ones((50, 2)),) * 2)
    assert same.rows == {"inside": [50, 50], "edge": [0, 0], "outside": [0, 0]}
    assert same.errors["edge"] == [None, None] and same.errors["inside"] == [0, 0]
    assert "edge (similarity 1.00 to 1.00): a too few validation rows" in same.describe(["a", "b"], {})[1]


def test_classes_have_the_share_of_wrong_ones() -> None:
    y = np.tile([0.0, 1.0], 20)[:, None]
    prediction = np.where(np.arange(40)[:, None] < 10, 1 - y, y)  # the ten least similar are wrong
    domain = Domain.measure(BinaryClassification("y", classes=(("0", "1"),)), np.arange(40) / 40, y, prediction)
    assert domain.error == WRONG and [domain.errors[band] for band in BANDS] == [[0], [0], [1]]


def test_a_header_keeps_it_and_refuses_what_is_none() -> None:
    similarity, y, prediction = measured(90)
    domain = Domain.measure(TASK, similarity, y, np.nan_to_num(prediction))
    plain = domain.to_dict()
    assert Domain.from_dict(plain, 2) == domain
    for wrong in ({"edges": [0.9, 0.1]}, {"edges": [0.1]}, {"bands": {}}, {"error": 3}, {"edges": [0.1, float("nan")]}):
        with pytest.raises(InputError, match="domain"):
            Domain.from_dict(plain | wrong, 2)
    with pytest.raises(InputError, match=r"domain\.bands\.inside\.rows"):
        Domain.from_dict(plain, 3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """The run of a kernel on 200 molecules, of which 40 validate."""
    folder = tmp_path_factory.mktemp("domain")
    molecules(200)[["smiles", "gap"]].to_csv(folder / "data.csv", index=False)
    words = ["--target-columns", "gap", "--model", "kernel", "--split-sizes", "0.7", "0.2", "0.1", "--no-progress"]
    assert main(["train", str(folder / "data.csv"), *words, "--out", str(folder / "run"), "--no-baselines"]) == 0
    return folder / "run"


def test_from_training_to_a_table(trained: Path, tmp_path, capsys) -> None:
    model = trained / "model.gtx"
    domain = gtx.load(model, "cpu").domain
    rows = pd.read_csv(trained / "predictions.csv")
    val = rows[rows.split == "val"]
    out = tmp_path / "out.csv"
    assert main(["predict", str(model), str(trained / "predictions.csv"), "--domain", "--out", str(out)]) == 0
    found = pd.read_csv(out)[rows.split == "val"]
    for band in BANDS:
        own = found.domain == band
        assert domain.rows[band][0] == own.sum() and (found.domain_rows[own] == own.sum()).all()
        error = np.sqrt(np.mean((val.gap_pred - val.gap)[own] ** 2))
        np.testing.assert_allclose(found.domain_error[own], error if own.sum() >= FEWEST else np.nan, rtol=1e-4)
    capsys.readouterr()
    assert main(["info", str(model)]) == 0
    said = capsys.readouterr().out
    assert all(f"{band} (similarity {domain.bounds(band)})" in said for band in BANDS)
    assert "Error of gap by domain" in (trained / "report.html").read_text()


def test_it_stands_before_the_neighbours(trained: Path) -> None:
    model = gtx.load(trained / "model.gtx", "cpu")
    both, alone = model.with_neighbours(1, domain=True), model.with_neighbours(domain=True)
    names = ["similarity", "domain", "domain_error", "domain_rows"]
    assert list(alone.output_columns([]))[-4:] == names
    assert list(both.output_columns([]))[-7:] == [*names, "neighbour_1", "neighbour_1_similarity", "neighbour_1_gap"]
    store = featurise(model.header.featuriser, ["CCO", "c1ccccc1O", "CC(=O)N1CCOCC1"], workers=0).store
    columns = alone.predict_store(store).columns()
    assert len(columns) == len(alone.output_columns([]))
    training = featurise(model.header.featuriser, list(model.header.training.smiles), workers=0).store
    np.testing.assert_allclose(columns[-4], nearest_similarity(training, store))


def test_a_model_without_it_says_why(trained: Path) -> None:
    model = gtx.load(trained / "model.gtx", "cpu")
    without: Predictor = model.with_header(replace(model.header, domain=None))
    with pytest.raises(InputError, match="has no domain: it takes"):
        without.with_neighbours(domain=True)


# --- The nearest training molecules: by definition, beside answers, and kept in the model file; scores of known ones.


FILE = str(GOLDEN / "neighbours.gtx")
NAMES = ["similarity"]
NAMES += [f"neighbour_{k}{end}" for k in (1, 2) for end in ("", "_similarity", "_solvation_water")]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return gtx.load(FILE, device="cpu")


def rows(smiles: list[str], **values: list[str]) -> TrainingRows:
    return TrainingRows.sample(smiles, range(1, len(smiles) + 1), values)


def test_the_nearest_are_about_those_of_rdkits_morgan_counts() -> None:
    smiles = molecules(80)["smiles"].tolist()
    near = Neighbours(rows(smiles[:60]), Featuriser())
    place, similarity = near.nearest(featurise(Featuriser(), smiles[60:], workers=0).store, 60)
    generator = GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    counts = [generator.GetSparseCountFingerprint(read_smiles(one)) for one in smiles]
    expected = np.array([DataStructs.BulkTanimotoSimilarity(one, counts[:60]) for one in counts[60:]])
    ours = np.take_along_axis(similarity, place.argsort(1), 1)
    assert spearmanr(ours.max(1), expected.max(1)).statistic > 0.85  # whose atoms are told apart by a ring too
    assert (ours.argmax(1) == expected.argmax(1)).mean() > 0.6
    assert (np.diff(similarity, axis=1) <= 0).all() and 0 <= similarity.min() <= similarity.max() <= 1


def test_a_molecule_is_its_own_nearest_however_it_is_written() -> None:
    near = Neighbours(rows(["CCO", "no molecule", "c1ccccc1O"]), Featuriser())
    place, similarity = near.nearest(featurise(Featuriser(), ["Oc1ccccc1", "OCC"], workers=0).store, 5)
    assert place.tolist() == [[2, 0], [0, 2]] and similarity[:, 0].tolist() == [1, 1] and similarity.max(0)[1] < 1


def test_a_model_names_them_with_what_was_measured(model: Predictor) -> None:
    kept = model.header.training
    with pytest.warns(UserWarning, match="1 of 3 SMILES cannot be used; the first is number 1, .*no neighbours"):
        found = model.neighbours([kept.smiles[3], "C1CC", "CCO"], 2)
    assert list(found) == ["smiles", "neighbour", "row", "similarity", "solvation_water"] and len(found) == 4
    assert found.neighbour[0] == kept.smiles[3] and found.row[0] == kept.rows[3] and found.similarity[0] == 1
    assert found.solvation_water[0] == float(kept.values["solvation_water"][3])
    assert found.smiles.tolist() == [kept.smiles[3]] * 2 + ["CCO"] * 2
    assert len(model.neighbours("CCO", 1000)) == len(kept)
    with pytest.raises(InputError, match="expected 1 or more neighbours, got 0"):
        model.neighbours("CCO", 0)


def test_a_file_without_rows_says_so(model: Predictor, capsys) -> None:
    with pytest.raises(InputError, match="contains no training rows"):
        model.with_header(replace(model.header, training=None)).neighbours("CCO")
    with pytest.raises(InputError, match="training: no molecule of the training rows in the model file can be read"):
        model.with_header(replace(model.header, training=rows(["C1CC"], y=["1"]))).with_neighbours()
    assert main(["predict", str(GOLDEN / "regression.gtx"), "CCO", "--neighbours", "2"]) == 2
    assert capsys.readouterr().err.startswith("gtx: this model file contains no training rows")


def test_they_stand_beside_predictions(model: Predictor, tmp_path) -> None:
    kept = model.header.training
    table = pd.DataFrame({"smiles": [kept.smiles[0], "C1CC", "CCO"], "similarity": ["a", "b", "c"]})
    table.to_csv(tmp_path / "in.csv", index=False)
    words = ["predict", FILE, str(tmp_path / "in.csv"), "--neighbours", "2"]
    assert main([*words, "--device=cpu", "--out", str(tmp_path / "out.csv")]) == 0
    first, broken, other = read(tmp_path / "out.csv")
    assert list(first)[-9:] == ["similarity1", *NAMES[1:], "error", "warning"] and first["similarity"] == "a"
    assert first["similarity1"] == first["neighbour_1_similarity"] == "1" and first["neighbour_1"] == kept.smiles[0]
    assert not any(broken[name] for name in ("similarity1", *NAMES[1:])) and broken["error"]
    near = model.neighbours("CCO", 2)
    assert [other["neighbour_1"], other["neighbour_2"]] == near.neighbour.tolist()
    assert float(other["neighbour_2_solvation_water"]) == near.solvation_water[1]
    predict_table(model.with_neighbours(2), tmp_path / "in.csv", tmp_path / "out.parquet")
    typed = pd.read_parquet(tmp_path / "out.parquet")
    assert typed["neighbour_1_solvation_water"].dtype.kind == "f" and typed["neighbour_1"].isna().tolist() == [0, 1, 0]


def test_of_few_rows_there_are_as_many_as_there_are(model: Predictor) -> None:
    few = model.with_header(replace(model.header, training=rows(["CCO"], class_=["active"])))
    beside = few.with_neighbours(2)
    store = featurise(model.header.featuriser, ["CCO", "CCN"], workers=0).store
    answers = pickle.loads(pickle.dumps(beside.predict_store(store)))  # as from a worker process
    columns = dict(zip(beside.output_columns(["smiles"]), answers.columns(), strict=True))
    assert columns["neighbour_1_class_"].tolist() == ["active"] * 2 and columns["neighbour_2"].tolist() == [None] * 2
    assert np.isnan(columns["neighbour_2_similarity"]).all() and answers.finite.all()
    with pytest.raises(InputError, match="neighbours: expected 1 to 1000, got 0"):
        model.with_neighbours(0)


def test_of_many_rows_some_are_kept_always_the_same() -> None:
    many = [f"{'C' * n}O" for n in range(1, 31)]
    kept, again = (TrainingRows.sample(many, range(30), {"y": list(map(str, range(30)))}, most=10) for _ in range(2))
    assert kept == again and len(kept) == 10 and kept.describe() == "10 of 30, drawn at random, with SMILES and values"
    assert [many[i] for i in kept.rows] == kept.smiles and kept.column("y").tolist() == kept.rows
    assert TrainingRows.from_dict(kept.to_dict()) == kept
    with pytest.raises(InputError, match="got 9 of y"):
        TrainingRows.from_dict(kept.to_dict() | {"values": {"y": ["1"] * 9}})
    large = TrainingRows.sample(["C" * 990] * 2000, range(2000), {"y": ["1"] * 1999 + ["1" * 10**6]})
    assert 1000 < len(large) < 1100 and large.trained == 2000 and "drawn at random" in large.describe()
    assert TrainingRows.from_dict(large.to_dict()) == large
    for name, wrong in {"smiles": [None] * 10, "rows": [-1] * 10, "values": [], "trained": 10**400}.items():
        with pytest.raises(InputError, match=rf"training\.{name}"):
            TrainingRows.from_dict(kept.to_dict() | {name: wrong})


# --- Scores of a table say how many of its molecules trained the model.


NEW = ["CCCCCCCCCCCC", "FC(F)(F)CCBr", "OCCOCCOCCO"]


def table(model: Predictor, path: Path, trained: int, new: int) -> Path:
    kept = model.header.training.smiles[:trained]

    values = [str(i / 7) for i in range(trained + new)]
    pd.DataFrame({"smiles": [*kept, *NEW[:new]], "solvation_water": values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.usefixtures("forks")
def test_the_others_are_scored_alone(model: Predictor, tmp_path, workers: int) -> None:
    both = model.predict_table(table(model, tmp_path / "t.csv", 5, 3), tmp_path / "p.csv", workers=workers)
    frame = pd.read_csv(tmp_path / "t.csv")
    frame.tail(3).to_csv(tmp_path / "new.csv", index=False)
    alone = model.predict_table(tmp_path / "new.csv", tmp_path / "p.csv")
    said = both.overlap
    assert str(said) == "the model was trained on 5 of these 8 molecules; the other 3 alone:"
    (ours,), (theirs,) = said.metrics["per_target"].values(), alone.metrics["per_target"].values()
    assert ours == pytest.approx(theirs) and said.metrics != both.metrics and alone.overlap is None


def test_it_is_printed_below_the_scores(model: Predictor, tmp_path, capsys) -> None:
    for trained, new, words in ((4, 2, "; the other 2 alone:"), (4, 0, ": the scores do not apply to new molecules")):
        words = f"the model was trained on 4 of these {trained + new} molecules{words}"
        file, out = table(model, tmp_path / "t.csv", trained, new), tmp_path / "p.csv"
        assert main(["predict", FILE, str(file), "--out", str(out)]) == 0
        lines = capsys.readouterr().err.splitlines()
        at = lines.index(words)
        assert lines[at - 1].startswith("solvation_water: rmse")
        assert [line.split(",")[0][:21] for line in lines[at + 1 :]] == ["solvation_water: rmse"] * bool(new)


def test_nothing_false_is_said(model: Predictor, tmp_path) -> None:
    file, out = table(model, tmp_path / "t.csv", 3, 1), tmp_path / "p.csv"
    training = model.header.training
    few = model.with_header(replace(model.header, training=replace(training, trained=10**6)))
    assert str(few.predict_table(file, out).overlap).startswith("the model was trained on at least 3 of these 4 mol")
    bare = model.with_header(replace(model.header, training=None))
    assert "contains no training rows: on how many of these 4 molecules" in str(bare.predict_table(file, out).overlap)
    table(model, tmp_path / "new.csv", 0, 3)
    assert model.predict_table(tmp_path / "new.csv", out).overlap is None
    kept = f"which contains {len(training)} of the 1,000,000 training rows"
    none = few.predict_table(tmp_path / "new.csv", out).overlap
    assert str(none) == f"none of these 3 molecules is in the model file, {kept}" and none.metrics is None
    pd.read_csv(file)[["smiles"]].to_csv(tmp_path / "bare.csv", index=False)
    assert model.predict_table(tmp_path / "bare.csv", out).overlap is None  # no scores, so nothing beside them
    beside = gtx.prediction.predict_table(model.with_neighbours(1), file, out)
    assert beside.overlap.trained == 3


def test_a_molecule_whose_neutral_parent_cannot_be_read_has_no_scaffold() -> None:
    assert foundation.identity("[SbH6+3]") == ("[SbH9]", "")  # of Tox21
    assert foundation.identity("OCC") == ("CCO", "") and foundation.identity("nonsense") == ("", "")
