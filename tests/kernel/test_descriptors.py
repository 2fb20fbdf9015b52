"""The kernel of descriptors is its definition."""

import numpy as np
import torch
from sklearn.gaussian_process.kernels import Matern

from gtx.kernel import DescriptorKernel


def test_it_is_the_matern_kernel_of_clipped_scores_of_what_varies() -> None:
    draws = torch.randn(60, 7, generator=torch.Generator().manual_seed(0))
    draws[:, 3] = 2.0  # never varies, and is no descriptor then
    draws[0, 0], draws[1, 1] = 1e6, torch.nan
    model = DescriptorKernel(7)
    model.scaler.observe(draws)
    model.set_references(draws[:40])
    model.length.fill_(0.8)
    z = model.z_scores(draws).numpy()
    assert z[0, 0] == 5 and z[1, 1] == 0 and (z[:, 3] == 0).all()
    expected = Matern(0.8 * np.sqrt(6), nu=1.5)(z, z[:40])
    np.testing.assert_allclose(model(draws).numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(model.gram(0.8).numpy(), expected[:40], atol=1e-6)
    assert torch.linalg.eigvalsh(model.gram(0.8)).min() > -1e-9


def test_scores_are_held_to_the_last_bit() -> None:
    draws = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
    model = DescriptorKernel(5)
    model.scaler.observe(draws)
    model.set_references(draws)
    again = DescriptorKernel(5, rows=60)
    again.load_state_dict(model.state_dict())
    for other in (again, again.double()):
        assert torch.equal(other(draws), model(draws))
    assert (model.z_scores(draws) - model.scaler(draws)).abs().max() <= 2**-13
