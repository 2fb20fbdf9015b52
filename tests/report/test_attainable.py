"""How good a model can get: noise of repeats, a forecast not below it, and nothing where nothing is known."""

from dataclasses import replace

import numpy as np
import pytest

from gtx.kernel import LearningCurve
from gtx.models import kernel_ridge
from gtx.report.context import FACTOR, Attainable
from gtx.report.page import write_report
from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.closed_form import fit_closed_form
from gtx.training_data import (
    FEWEST_REPEATED,
    Dataset,
    DataSettings,
    MeasurementNoise,
    load_training_table,
    measure_noise,
)
from gtx.workflow.outputs import attainable_errors
from tests.report.conftest import SMILES, SPLIT, additive

LAW = LearningCurve((200, 400, 800), (0.8, 0.6, 0.4))  # half the error with four times the rows


def test_the_noise_of_pairs_is_their_difference_over_the_root_of_two() -> None:
    random = np.random.default_rng(0)
    true, noise = random.normal(0, 5, 3000), random.normal(0, 0.4, (2, 3000))
    smiles, y = [f"m{i}" for i in range(3000)], true + noise
    found = measure_noise([*smiles, *smiles, "once", None, None, "m0"], np.array([*y[0], *y[1], 3.0, 1.0, 9.0, np.nan]))
    assert found is not None and found.molecules == 3000
    assert found.sd == pytest.approx(np.sqrt(np.mean((y[0] - y[1]) ** 2) / 2))
    assert found.sd == pytest.approx(0.4, rel=0.05)
    copies = measure_noise(smiles[:20] * 3, np.tile(true[:20], 3))
    assert copies == (pytest.approx(0), 20, 20)
    few = smiles[: FEWEST_REPEATED - 1] * 2
    assert measure_noise(few, random.normal(size=len(few))) is None


def test_a_forecast_is_that_of_the_law_but_not_below_the_noise() -> None:
    law = 0.7 / 2**0.5
    assert Attainable(curve=LAW).forecast(0.7, 2) == pytest.approx((800, law / FACTOR, law, law * FACTOR))
    assert Attainable(curve=LAW).forecast(0.7, 1) == (0, 0.7, 0.7, 0.7)
    noisy = Attainable(MeasurementNoise(0.5, 30, 0), LAW).forecast(0.7, 2)
    assert noisy == pytest.approx((800, 0.5, 0.5, law * FACTOR))
    assert Attainable(MeasurementNoise(0.9, 30, 0), LAW).forecast(0.7, 2).error == 0.7  # better than the noise already


def test_the_words_say_what_is_known_and_no_more() -> None:
    words = Attainable(MeasurementNoise(0.3, 30, 4), LAW).describe(0.61, "kcal/mol")
    assert words.startswith("RMSE 0.610 kcal/mol; repeated measurements have a standard deviation of 0.300 (30 mol")
    assert "4 of them with identical values" in words
    more = "800 more training molecules like these (twice as many) would give about 0.431"
    assert f"{more} (90% interval: 0.372 to 0.500)" in words
    assert "more" not in Attainable(MeasurementNoise(0.3, 30, 0)).describe(0.61)
    assert "repeated" not in Attainable(curve=LAW).describe(0.61)
    assert "hardly" in Attainable(curve=LAW._replace(errors=(0.4, 0.4, 0.4))).describe(0.61)
    assert not Attainable()


def test_the_page_shows_it_beside_the_score_and_in_a_picture(make_report, tmp_path) -> None:
    def page(**changes: object) -> str:
        assert write_report(tmp_path / "report.html", make_report(**changes)) == []
        return (tmp_path / "report.html").read_text()

    limits = {"letters": Attainable(MeasurementNoise(0.1, 30, 0), LAW)}
    html = page(attainable=limits)
    assert html.count("How good can it get?") == html.count("RMSE of letters by training rows") == 1
    assert "RMSE of additive by training rows" not in html
    assert "How good can it get?" not in page()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    """130 molecules, of which 110 train."""
    part = np.full(len(SMILES), "train", dtype=object)
    part[SPLIT["test"][:10]] = "test"
    lines = [f"{smiles},{additive(smiles) + len(smiles) % 3},{k}" for smiles, k in zip(SMILES, part, strict=True)]
    table = tmp_path_factory.mktemp("table") / "chains.csv"
    table.write_text("\n".join(["smiles,y,split", *lines]))
    return load_training_table(DataSettings(str(table), ("y",), split_column="split"))


def test_test_rows_have_no_part_in_the_curve(dataset: Dataset) -> None:
    def curve(dataset: Dataset) -> LearningCurve | None:
        task = Regression(("y",)).fit(dataset.train)
        model = kernel_ridge(1, num_descriptors=dataset.store.descriptors.shape[1])
        fit_closed_form(model, task, dataset.train)
        limits = attainable_errors(task, dataset, model)
        assert attainable_errors(task, replace(dataset, split=dataset.split | {"train": np.arange(3)}), model) == {}
        assert attainable_errors(BinaryClassification(("y",)), dataset, model) == {}
        assert attainable_errors(task, dataset, None) == {}
        return limits["y"].curve

    found = curve(dataset)
    assert found is not None
    assert found.rows[-1] == len(dataset.split["train"])
    y = dataset.store.y.clone()
    y[dataset.split["test"]] = 1000.0
    assert curve(replace(dataset, store=dataset.store.with_targets(y))) == found
    y[dataset.split["train"][0]] += 3
    assert curve(replace(dataset, store=dataset.store.with_targets(y))) != found
