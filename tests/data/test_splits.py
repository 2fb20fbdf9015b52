import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.data.rows import RowLog
from gtx.data.splits import (
    SPLIT_PARTS,
    assign_folds,
    check_split_shares,
    count_shared_molecules,
    cross_validation_splits,
    divide_groups,
    random_split,
    split_by_column,
    write_split,
)


def assert_partition(split: dict[str, np.ndarray], n: int) -> None:
    assert tuple(split) == SPLIT_PARTS
    assert np.array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(n))
    for rows in split.values():
        assert len(rows) and (np.diff(rows) > 0).all() and rows.dtype == np.int64


def test_a_scaffold_split_trains_on_the_common_scaffolds_and_keeps_to_the_sizes_where_it_can():
    split = divide_groups([""] * 40 + ["ring"] * 30 + [f"rare{i}" for i in range(30)], order="largest first")
    assert_partition(split, 100)
    assert [len(rows) for rows in split.values()] == [80, 10, 10] and set(range(70)) <= set(split["train"])


def test_a_split_column():
    row_log = RowLog()
    values = ["train", " Val ", "VALID", "validation", "dev", "TEST", "valdiation", "", "Train"]
    split = split_by_column(values, row_log, "fold")
    assert {name: rows.tolist() for name, rows in split.items()} == {
        "train": [0, 8],
        "val": [1, 2, 3, 4],
        "test": [5],
    }
    assert list(row_log.warnings) == [7, 8]
    said = 'row 7, column "fold", value "valdiation": is none of train, val and test'
    assert row_log.warnings[7] == [f"{said}; the row is in no part of the split; did you mean 'validation'?"]
    assert row_log.left_out == {
        "is none of train, val and test": [f"{said}; did you mean 'validation'?"],
        "is blank": ['row 8, column "fold", value "": is blank'],
    }
    assert len(split_by_column(["train", "val"])["test"]) == 0
    with pytest.raises(InputError, match=r"'fold' names no row 'train'; it holds 'A' \(2\), 'B' \(1\)"):
        split_by_column(["A", "B", "A"], column="fold")


def test_leakage_counts_molecules_on_both_sides():
    smiles = ["C", "CC", "C", "CCC", "C", "O", None, None, "O"]
    split = {"train": np.array([0, 1, 6]), "val": np.array([2, 3, 7]), "test": np.array([4, 5, 8])}
    assert count_shared_molecules(smiles, split) == {("train", "val"): 1, ("train", "test"): 1, ("val", "test"): 1}
    assert count_shared_molecules(["C", "N", "O"], {"train": [0], "val": [1], "test": [2]}) == {}


def test_a_split_is_written_row_by_row(tmp_path):
    split = random_split(50, seed=3)
    write_split(tmp_path / "split.csv", split)
    lines = (tmp_path / "split.csv").read_text().splitlines()
    assert lines[0] == "row,split" and len(lines) == 51
    for row, line in enumerate(lines[1:]):
        number, part = line.split(",")
        assert int(number) == row + 1 and row in split[part]


@pytest.mark.parametrize("sizes", [(98, 1, 1), (1, 1, 98), (5, 5), (2, 2, 1, 60)])
def test_no_part_is_empty_whatever_groups_there_are(sizes):
    groups = [str(i) for i, size in enumerate(sizes) for _ in range(size)]
    for seed in range(3):
        if len(sizes) < 3:
            with pytest.raises(InputError, match="at least 3 different molecules, and the 10 rows hold 2"):
                random_split(len(groups), seed=seed, groups=groups)
        else:
            split = random_split(len(groups), seed=seed, groups=groups)
            assert_partition(split, len(groups))
            assert count_shared_molecules(groups, split) == {}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 0.5, 0.5), "the first above 0"),
        ((80, 10, 10), "split sizes 80 10 10 add up to 100; shares must add up to 1, for instance 0.8 0.1 0.1$"),
        ((1.1, -0.2, 0.1), "three numbers of 0 or more"),
        ((0.8, 0.2, float("nan")), "three numbers of 0 or more"),
        ((0.8, 0.2), "three numbers of 0 or more"),
    ],
)
def test_what_is_no_share(sizes, message):
    with pytest.raises(InputError, match=message):
        check_split_shares(sizes)


# --- Folds.

SCAFFOLDS = [f"ring {k}" for k in np.random.default_rng(0).zipf(1.6, 400).clip(max=60)]  # a few common ones, many rare


def test_folds_are_of_like_size_as_far_as_groups_allow():
    assert sorted(map(len, assign_folds(list(map(str, range(53))), 5))) == [10, 10, 11, 11, 11]
    largest = max(map(SCAFFOLDS.count, SCAFFOLDS))
    sizes = sorted(map(len, assign_folds(SCAFFOLDS, 5)))
    assert sizes[-1] == largest > 100  # one group alone
    assert sizes[-2] - sizes[0] <= 1


def test_both_classes_are_spread_evenly_and_molecules_stay_together():
    groups = [str(i // 2) for i in range(200)]
    classes = [int(i // 2 % 10 == 0) for i in range(200)]  # 20 rows of class 1
    for seed in range(5):
        parts = assign_folds(groups, 5, seed, classes)
        assert [len(part) for part in parts] == [40] * 5
        assert [sum(classes[i] for i in part) for part in parts] == [4] * 5
        assert sum(len({groups[i] for i in part}) for part in parts) == 100


def test_what_cannot_be_dealt_is_said():
    with pytest.raises(InputError, match=r"5 folds need as many groups .* and there are 3"):
        assign_folds(["a", "b", "c", "a"], 5)
    with pytest.raises(InputError, match="none can validate"):
        cross_validation_splits(["a", "b", "b"], 2)
