"""A bond's vector is the same from either end."""

from __future__ import annotations

import torch

from gtx.nn.bonds import BondVectorFromAtoms


def test_the_direction_of_a_bond_does_not_matter() -> None:
    readout, x = BondVectorFromAtoms(4, [3, 2]), torch.randn(3, 4)
    bond_index, codes = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([[1, 1], [1, 1], [2, 0], [2, 0]])
    found = readout(x, bond_index, codes)
    assert found.shape == (4, readout.width) == (4, 12)
    assert torch.equal(found[0::2], found[1::2])
    torch.testing.assert_close(found[0, :8], torch.cat([x[0] + x[1], (x[0] - x[1]).abs()]))
    torch.testing.assert_close(found[2, 8:], readout.embedding(codes[2:3])[0])
