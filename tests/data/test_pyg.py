"""PyG's own molecules, and what gtx's models say of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_smiles

from gtx.data import from_pyg
from gtx.errors import InputError
from tests.molecules_for_tests import SMILES, store


def theirs(y: Tensor | None = None) -> list[Data]:
    made = [from_smiles(smiles) for smiles in SMILES]
    for data in made if y is not None else ():
        data.y = y
    return made


def test_they_become_what_gtx_makes_of_their_smiles() -> None:
    ours, mine = from_pyg(theirs()), store()
    assert ours.y is None and ours.atom_columns == mine.atom_columns
    for name in ("x", "edge_index", "edge_attr", "batch"):
        assert ours.batch()[name].equal(mine.batch(range(len(SMILES)))[name])
    assert from_pyg(Batch.from_data_list(theirs()).to_data_list()).batch().x.equal(mine.batch().x)


@pytest.mark.parametrize("y", [torch.tensor([[1.5, torch.nan]]), torch.tensor([1.5, torch.nan])])
def test_targets_come_along(y: Tensor) -> None:
    made = from_pyg(theirs(y)).y
    assert made.shape == (len(SMILES), 2) and made.dtype == torch.float64
    assert made[:, 0].eq(1.5).all() and made[:, 1].isnan().all()


def test_what_cannot_be_translated_is_named() -> None:
    made = theirs(torch.ones(1, 2))
    made[2].y = torch.ones(1, 3)
    with pytest.raises(InputError, match="molecule 2: expected as many targets as molecule 0, 2, got 3"):
        from_pyg(made)
    made[2].y = None
    with pytest.raises(InputError, match=r"molecule 2: .* 2, got None"):
        from_pyg(made)
    made[4].smiles = "C1CC"
    with pytest.raises(InputError, match=r"1 of 9 molecules cannot be read: molecule 4, 'C1CC', .*unclosed ring"):
        from_pyg(made)
    del made[3].smiles
    with pytest.raises(InputError, match=r"molecule 3: expected an attribute smiles that is a text, .* got None"):
        from_pyg(made)
