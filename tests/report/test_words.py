from __future__ import annotations

import pytest

from gtx.report.kinds import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (-2.2e-16, "0"),
        (0.29, "0.290"),
        (-1.2, "−1.20"),
        (12.34, "12.3"),
        (345.6, "346"),
        (12345.6, "12,346"),
        (0.00012, "1.2e−04"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text
