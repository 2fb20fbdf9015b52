"""The domain: bands of similarity, and the errors of validation rows in them, from training to a table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import featurise
from gtx.data.similarity import nearest_similarity
from gtx.prediction import Predictor
from gtx.prediction.domain import BANDS, FEWEST, WRONG, Domain
from gtx.tasks import BinaryClassification, Regression
from tests.tables import molecules

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
