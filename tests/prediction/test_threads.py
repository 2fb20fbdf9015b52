"""Work on batches, in threads: in order, each with its share of torch's threads, which all get back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from gtx.data import featurise
from gtx.prediction import Predictor
from gtx.prediction.predictor import BATCHES, in_threads
from tests.molecules_for_tests import SMILES


@pytest.fixture
def threads() -> Iterator[None]:
    """Torch has four."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("count", "share"), [(2, 2), (9, 1)])
def test_all_in_order_each_with_its_share(threads: None, count: int, share: int) -> None:
    together = threading.Barrier(min(count, 3), timeout=20)  # which nobody passes alone

    def work(item: int) -> tuple[int, int]:
        if item < 3:
            together.wait()
        return 10 * item, torch.get_num_threads()

    assert in_threads(work, range(count)) == [(10 * item, share) for item in range(count)]
    with ThreadPoolExecutor(1) as other:
        assert torch.get_num_threads() == 4 == other.submit(torch.get_num_threads).result()


def test_a_failure_is_raised_and_the_threads_come_back(threads: None) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        in_threads(lambda item: int("1" if item else "on purpose"), range(5))
    assert torch.get_num_threads() == 4


def test_predictions_do_not_depend_on_threads(
    predictor: Predictor, threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do gradients appear: what is set for one thread is set in all."""
    monkeypatch.setitem(BATCHES, "cpu", (75_000, 2))
    store = featurise(predictor.header.featuriser, SMILES, workers=0).store
    several = predictor.predict_store(store)
    torch.set_num_threads(1)
    alone = predictor.predict_store(store)
    assert len(store) > 8 and torch.tensor(several.mean).allclose(torch.tensor(alone.mean), rtol=1e-6, atol=1e-6)
    assert several.warnings == alone.warnings and not predictor.outputs(store)[0].requires_grad
