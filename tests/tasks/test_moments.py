from __future__ import annotations

import pytest
import torch

from gtx.tasks.scaling import ELEMENTS, EXTENSIVE, TargetScaler, scaler_of


@pytest.mark.parametrize("least", [None, EXTENSIVE])
def test_parts_teach_what_all_rows_at_once_teach(least: float | None) -> None:
    """Far from zero, with blanks, an element that only one part has, and targets that are no matter of composition."""
    torch.manual_seed(0)
    composition = torch.zeros(90, ELEMENTS, dtype=torch.float64)
    composition[:, [1, 6, 8]] = torch.randint(0, 9, (90, 3)).double()
    composition[70:75, 17] = 2
    weights = torch.randn(ELEMENTS, dtype=torch.float64) * 40
    y = torch.stack([composition @ weights - 1e5, torch.randn(90).double(), torch.full((90,), 7.25).double()], 1)
    y[:, 0] += torch.randn(90)
    y[::7, 1] = torch.nan
    y[:30, 2] = torch.nan
    for beside in (composition, None):
        whole = TargetScaler.fit(y, beside, least if beside is not None else None)
        cuts = [slice(0, 30), slice(30, 30), slice(30, 71), slice(71, 90)]
        parts = scaler_of(((y[cut], None if beside is None else beside[cut]) for cut in cuts), least)
        torch.testing.assert_close(parts.sd, whole.sd, rtol=1e-6, atol=1e-9)
        assert (parts.reference is None) == (whole.reference is None)
        torch.testing.assert_close(parts.scale(y, beside), whole.scale(y, beside), rtol=1e-5, atol=1e-5, equal_nan=True)
        if whole.reference is not None:
            varies = whole.sd > 0
            torch.testing.assert_close(parts.reference[:, varies] != 0, whole.reference[:, varies] != 0)
