"""Weights that others trained give their predictions in gtx's layers."""

import importlib.util

import pytest
import torch

from experiments.soltrannet import load_published, predict

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("soltrannet") is None, reason="needs `pip install --no-deps soltrannet==1.0.0`"
)
EXPECTED = {"c1ccccc1": -1.052748441696167, "[Zn+2]": -6.881845474243164, "[Na+].[Cl-]": -0.16869020462036133}
"""What the tests of SolTranNet 1.0.0 expect."""


def test_published_weights_give_published_predictions() -> None:
    found = predict(load_published(), list(EXPECTED))
    torch.testing.assert_close(found, torch.tensor(list(EXPECTED.values())), atol=1e-5, rtol=0)
