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


def test_a_molecule_does_not_depend_on_its_batch_mates() -> None:
    texts = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "C", "[O-][N+](=O)c1ccc(Br)cc1"]
    model = load_published()
    alone = torch.cat([predict(model, [text]) for text in texts])
    torch.testing.assert_close(predict(model, texts), alone, atol=1e-5, rtol=0)
