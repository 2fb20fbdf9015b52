from __future__ import annotations

import numpy as np
import pytest

from gtx.report import count_atoms
from tests.molecules_for_tests import store


def test_atoms_and_elements_are_counted():
    num_atoms, elements = count_atoms(store(["CCO", "[Na+].[Cl-]", "c1ccccc1Cl", "CC"]))
    np.testing.assert_array_equal(num_atoms, [3, 2, 7, 2])
    assert elements == {"C": 3, "Cl": 2, "O": 1, "Na": 1}
    assert list(elements)[:2] == ["C", "Cl"]


def test_arrays_of_another_shape_are_refused(make_report):
    with pytest.raises(ValueError, match=r"prediction: expected \[\d+, 2\], .* got \[3, 2\]"):
        make_report(prediction=np.zeros((3, 2)), scores={}, baselines={})
