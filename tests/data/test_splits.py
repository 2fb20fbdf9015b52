from __future__ import annotations

import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.data.row_log import RowLog
from gtx.data.splits import (
    SPLIT_PARTS,
    check_split_shares,
    count_shared_molecules,
    random_split,
    scaffold_split,
    split_by_column,
    write_split,
)


def assert_partition(split: dict[str, np.ndarray], n: int) -> None:
    assert tuple(split) == SPLIT_PARTS
    assert np.array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(n))
    for rows in split.values():
        assert len(rows) and (np.diff(rows) > 0).all() and rows.dtype == np.int64


@pytest.mark.parametrize("n", [3, 7, 1000])
@pytest.mark.parametrize("sizes", [(0.8, 0.1, 0.1), (0.01, 0.01, 0.98), (1e-9, 1, 1)])
def test_a_random_split_is_a_partition_of_the_sizes_asked_for(n, sizes):
    split = random_split(n, sizes)
    assert_partition(split, n)
    for rows, size in zip(split.values(), sizes, strict=True):
        assert abs(len(rows) - n * size / sum(sizes)) <= 2


def test_the_seed_decides():
    a, b, c = random_split(100, seed=1), random_split(100, seed=1), random_split(100, seed=2)
    assert all(np.array_equal(a[name], b[name]) for name in SPLIT_PARTS)
    assert not np.array_equal(a["test"], c["test"])
    assert not np.array_equal(a["test"], np.arange(90, 100))


def test_too_few_rows_or_scaffolds():
    with pytest.raises(InputError, match="2 rows cannot be split into 3 parts"):
        random_split(2)
    with pytest.raises(InputError, match="at least 3 scaffolds, and there are 2"):
        scaffold_split(["a", "b"] * 50)


@pytest.mark.parametrize("seed", range(6))
def test_a_scaffold_split_keeps_scaffolds_whole_and_does_not_depend_on_the_order(seed):
    rng = np.random.default_rng(seed)
    scaffolds = [f"s{i:02.0f}" for i in rng.geometric(rng.uniform(0.02, 0.7), rng.integers(30, 200))]
    if len(set(scaffolds)) < 3:
        scaffolds += ["a", "b"]
    split = scaffold_split(scaffolds)
    assert_partition(split, len(scaffolds))
    held = {name: {scaffolds[i] for i in rows} for name, rows in split.items()}
    assert sum(map(len, held.values())) == len(set(scaffolds))
    largest = max(sorted(set(scaffolds)), key=scaffolds.count)
    assert largest in held["train"]
    order = rng.permutation(len(scaffolds))
    shuffled = scaffold_split([scaffolds[i] for i in order])
    assert {name: {scaffolds[order[i]] for i in rows} for name, rows in shuffled.items()} == held


def test_small_scaffolds_are_tested_on_and_sizes_are_kept_where_groups_allow():
    scaffolds = [""] * 40 + ["ring"] * 30 + [f"rare{i}" for i in range(30)]
    split = scaffold_split(scaffolds)
    assert [len(rows) for rows in split.values()] == [80, 10, 10]
    assert set(range(70)) <= set(split["train"])


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


@pytest.mark.parametrize("seed", range(3))
def test_groups_stay_together_in_a_random_split(seed):
    rng = np.random.default_rng(seed)
    groups = [f"C{i}" for i in rng.integers(0, 150, 200)]
    split = random_split(200, seed=seed, groups=groups)
    assert_partition(split, 200)
    assert count_shared_molecules(groups, split) == {}
    assert [len(rows) for rows in split.values()] == [160, 20, 20]
    repeated = {name: sum(groups.count(groups[i]) > 1 for i in rows) / len(rows) for name, rows in split.items()}
    assert min(repeated.values()) > 0  # repeated molecules are not all in one part


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
