from __future__ import annotations

import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.data.splits import assign_folds, cross_validation_splits

RANDOM = np.random.default_rng(0)
SCAFFOLDS = [f"ring {k}" for k in RANDOM.zipf(1.6, 400).clip(max=60)]  # a few common ones, many rare


@pytest.mark.parametrize("folds", [2, 10])
@pytest.mark.parametrize("groups", [list(map(str, range(53))), SCAFFOLDS], ids=["alone", "scaffolds"])
def test_every_row_is_in_one_fold_and_every_group_too(folds: int, groups: list[str]) -> None:
    parts = assign_folds(groups, folds)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(groups)))
    held = [{groups[i] for i in part} for part in parts]
    assert sum(map(len, held)) == len(set(groups))
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts)


def test_folds_are_of_like_size_as_far_as_groups_allow() -> None:
    assert sorted(map(len, assign_folds(list(map(str, range(53))), 5))) == [10, 10, 11, 11, 11]
    largest = max(map(SCAFFOLDS.count, SCAFFOLDS))
    sizes = sorted(map(len, assign_folds(SCAFFOLDS, 5)))
    assert sizes[-1] == largest > 100  # one group alone
    assert sizes[-2] - sizes[0] <= 1


def test_the_seed_decides() -> None:
    groups = list(map(str, range(100)))
    one, same, other = (assign_folds(groups, 5, seed) for seed in ((1, 0), (1, 0), (1, 1)))
    assert all(map(np.array_equal, one, same)) and not all(map(np.array_equal, one, other))
    shared = [len(np.intersect1d(a, b)) for a in one for b in other]
    assert max(shared) < 12  # dealt anew, not renumbered


def test_both_classes_are_spread_evenly_and_molecules_stay_together() -> None:
    groups = [str(i // 2) for i in range(200)]
    classes = [int(i // 2 % 10 == 0) for i in range(200)]  # 20 rows of class 1
    for seed in range(5):
        parts = assign_folds(groups, 5, seed, classes)
        assert [len(part) for part in parts] == [40] * 5
        assert [sum(classes[i] for i in part) for part in parts] == [4] * 5
        assert sum(len({groups[i] for i in part}) for part in parts) == 100


def test_what_cannot_be_dealt_is_said() -> None:
    with pytest.raises(InputError, match=r"5 folds need as many groups .* and there are 3"):
        assign_folds(["a", "b", "c", "a"], 5)
    with pytest.raises(InputError, match="none can validate"):
        cross_validation_splits(["a", "b", "b"], 2)
