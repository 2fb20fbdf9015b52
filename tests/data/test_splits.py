"""Every way to divide rows, by what it promises."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from rdkit import Chem

from gtx.base.errors import InputError
from gtx.data import SPLIT_METHODS, Split, SplitSettings, compute_group_labels
from gtx.data.rows import RowLog
from gtx.data.splits import (
    SPLIT_PARTS,
    RowsToSplit,
    SplitMethod,
    assign_folds,
    check_split_shares,
    count_shared_molecules,
    cross_validation_splits,
    divide_groups,
    parse_times,
    random_split,
    split_by_column,
)
from gtx.data.table_writer import TableWriter
from gtx.molecules import Featuriser
from gtx.training_data import DataSettings, load_training_table
from tests.tables import molecules

SMILES = [*molecules(150)["smiles"], *molecules(150)["smiles"][:30]]  # some of them twice
RANDOM = np.random.default_rng(0)
VALUES = {
    "group": np.array([f"lab {i}" for i in RANDOM.integers(0, 25, len(SMILES))], dtype=object),
    "time": RANDOM.integers(1990, 2025, len(SMILES)).astype(float),
}
MOLECULES = ("random", "scaffold", "cluster")  # that keep the rows of a molecule together


def rows_of(name: str) -> RowsToSplit:
    return RowsToSplit(SMILES, VALUES.get(name, np.zeros(len(SMILES))))


def divide(name: str, rows: RowsToSplit | None = None, **settings: object) -> Split:
    by = "a column" if SPLIT_METHODS[name].reads else None
    return SplitSettings(split=name, split_by=by, **settings).divide(rows_of(name) if rows is None else rows)


def same(one: Split, other: Split) -> bool:
    return all(np.array_equal(one[part], other[part]) for part in SPLIT_PARTS)


@pytest.fixture(scope="module")
def splits() -> dict[str, Split]:
    return {name: divide(name) for name in SPLIT_METHODS}


def assert_partition(split: Split, n: int, sizes: tuple[float, ...] = (0.8, 0.1, 0.1)) -> None:
    """Every row is in one part, in order, and the parts of size 0 alone are empty."""
    assert tuple(split) == SPLIT_PARTS and [len(rows) > 0 for rows in split.values()] == [size > 0 for size in sizes]
    assert np.array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(n))
    assert all((np.diff(rows) > 0).all() and rows.dtype == np.int64 for rows in split.values())


@pytest.mark.parametrize("name", SPLIT_METHODS)
@pytest.mark.parametrize("sizes", [(0.8, 0.1, 0.1), (0.9, 0.1, 0), (0.75, 0, 0.25), (1, 0, 0)])
def test_a_split_is_a_partition_of_nearly_the_sizes_asked_for(name: str, sizes: tuple[float, ...]) -> None:
    split = divide(name, split_sizes=sizes)
    assert_partition(split, len(SMILES), sizes)
    largest = max(Counter(SPLIT_METHODS[name].groups(rows_of(name))).values())
    for rows, size in zip(split.values(), sizes, strict=True):
        assert abs(len(rows) - len(SMILES) * size) <= largest


@pytest.mark.parametrize("name", SPLIT_METHODS)
def test_what_belongs_together_stays_together(name: str, splits: dict[str, Split]) -> None:
    method, rows = SPLIT_METHODS[name], rows_of(name)
    groups = list(method.groups(rows))
    assert sum(len({groups[i] for i in part}) for part in splits[name].values()) == len(set(groups))
    if name in MOLECULES:
        assert count_shared_molecules(SMILES, splits[name]) == {}


@pytest.mark.parametrize("name", SPLIT_METHODS)
def test_the_seed_decides_where_there_is_chance(name: str, splits: dict[str, Split]) -> None:
    assert same(divide(name), splits[name])
    assert same(divide(name, seed=1), splits[name]) is not SPLIT_METHODS[name].seeded


@pytest.mark.parametrize("name", [name for name in SPLIT_METHODS if name != "random"])
def test_the_order_of_rows_changes_nothing(name: str, splits: dict[str, Split]) -> None:
    rows, order = rows_of(name), RANDOM.permutation(len(SMILES))
    again = divide(name, RowsToSplit([rows.smiles[i] for i in order], rows.values[order]))
    assert same({part: np.sort(order[index]) for part, index in again.items()}, splits[name])


def test_spellings_of_a_molecule_have_one_group_label() -> None:
    phenol, salt = ["Oc1ccccc1", "c1cc(O)ccc1", Chem.MolFromSmiles("C1=CC=CC=C1O")], "[O-]c1ccccc1.[Na+]"
    for name in ("random", "scaffold", "cluster"):
        labels = compute_group_labels(name, [*phenol, "CCO", "OCC", "CCCCCCN"])
        assert len(set(labels[:3])) == 1 and labels[3] == labels[4] != labels[0]
    for standardise in (False, True):
        labels = compute_group_labels("random", [*phenol, salt], featuriser=Featuriser(standardise=standardise))
        assert len(set(labels)) == 2 - standardise
    pairs = compute_group_labels("random", [("OC", "C"), ("CO", "C")], featuriser=Featuriser(components=("a", "b")))
    assert pairs[0] == pairs[1]
    with pytest.raises(InputError, match="number 1, counted from 0: 'C1CC' cannot be read"):
        compute_group_labels("random", ["C", "C1CC"])
    with pytest.raises(InputError, match=r"'time' makes no groups of molecules; these do: random, scaffold, cluster$"):
        compute_group_labels("time", ["C"])


def test_time_goes_forward_and_rows_of_one_time_are_in_one_part(splits: dict[str, Split]) -> None:
    when = [VALUES["time"][splits["time"][part]] for part in SPLIT_PARTS]
    assert when[0].max() < when[1].min() and when[1].max() < when[2].min()
    few = RowsToSplit(list("CNOF"), np.array([1.0, 1, 2, 2]))
    with pytest.raises(InputError, match="at least 3 different times, and the 4 rows hold 2"):
        divide("time", few)
    with pytest.raises(InputError, match="3 folds need as many different times, and there are 2"):
        SplitSettings(split="time", split_by="year").folds(few, 3)


def test_cells_as_times() -> None:
    for cells, order in (
        (["10", " 9", "1e1", "-3.5"], [2, 1, 2, 0]),
        (["2", "\u22121", "0"], [2, 0, 1]),
        (["2024-05-17", "2023", "2024-05", "2024-05-17T08:00:00+02:00"], [2, 0, 1, 3]),
        (["2024-01-01T01:00:00+02:00", "2024-01-01T00:00:00+00:00", "2023-12-31"], [1, 2, 0]),
        (["1066-10-14", "2024-05-17", "1789-07-14"], [0, 2, 1]),
    ):
        assert np.unique(parse_times(cells)[0], return_inverse=True)[1].tolist() == order
    dates = ["2024-05", "", "03/04/2024", "now", "2024-06-01", "nan"]
    for cells in ["3", "", "nan", "inf", "4", "2024-05-17"], dates:  # of which some are no times
        times, usable = parse_times(cells)
        assert np.isnan(times).tolist() == (~usable).tolist() == [False, True, True, True, False, True]


def test_a_row_without_a_usable_cell_gets_a_warning_and_is_in_no_part() -> None:
    row_log, cells = RowLog(), ["2001", "soon", " ", "2003", "2002"]
    by_time, by_lab = (SplitSettings(split=name, split_by=by) for name, by in (("time", "year"), ("group", "lab")))
    kept, rows = by_time.candidates(cells, [1, 2, 3, 4, 9], [row_log] * 5, ["C", "N", "O", "F", "S"])
    assert kept.tolist() == [0, 3, 4] and rows.smiles == ["C", "F", "S"]
    assert rows.values.tolist() == [2001, 2003, 2002]
    said = 'row 2, column "year", value "soon": is not a number or a date such as 2024-05-17; the row is in no part'
    assert row_log.warnings[2] == [f"{said} of the split"]
    assert row_log.warnings[3][0].endswith("is blank; the row is in no part of the split")
    kept, rows = by_lab.candidates(["a", "", "b ", "c", "NA"], [1, 2, 3, 4, 5], [row_log] * 5, list("CNOFS"))
    assert kept.tolist() == [0, 2, 3] and rows.values.tolist() == ["a", "b", "c"]
    assert row_log.warnings[5] == ['row 5, column "lab", value "NA": is not filled; the row is in no part of the split']
    with pytest.raises(InputError, match="split time: no cell of column 'year' is a number or a date"):
        by_time.candidates(["x", ""], [1, 2], [row_log] * 2, ["C", "N"])
    with pytest.raises(InputError, match=r'only 2 of the 3 cells of column .year. can be read; .*: row 4, .*"soon"'):
        by_time.candidates(["2001", "soon", "2002"], [1, 4, 5], [row_log] * 3, ["C", "N", "O"])


def test_groups_stay_together_in_folds_of_rows_of_two_files(tmp_path) -> None:
    files, smiles = [], molecules(60)["smiles"]
    for name, labs, rows in ("train.csv", "abcdef", smiles[:40]), ("val.csv", "ghi", smiles[40:]):
        files.append(str(tmp_path / name))
        with TableWriter(files[-1], ["smiles", "y", "lab"]) as out:
            for i, text in enumerate(rows):
                out.write([text, str(i), labs[i % len(labs)] if i else ""])
    data = DataSettings(files[0], ("y",), val=files[1], split="group", split_by="lab", workers=0)
    dataset = load_training_table(data).in_folds(3, data)
    labs = [{dataset.place(i)[1].cells[2] for i in fold} for fold in dataset.folds]
    assert sum(map(len, labs)) == len(set().union(*labs)) and {"g", "h", "i"} < set().union(*labs)
    assert [list(file.row_log.left_out) for file in dataset.files] == [["is blank"]] * 2


def test_each_row_is_tested_in_one_fold_of_each_repeat() -> None:
    settings = SplitSettings(split="group", split_by="lab", test_folds=4, test_fold=2)
    rows = rows_of("group")
    one, other = settings.repeated(rows, 4, 2)
    for repeat in (one, other):
        assert np.array_equal(np.sort(np.concatenate([split["test"] for split in repeat])), np.arange(len(SMILES)))
        for split in repeat:
            assert sum(len({rows.values[i] for i in part}) for part in split.values()) == 25
    assert same(settings.divide(rows), one[1]) and not same(one[1], other[1])


def test_too_many_molecules_and_too_few_groups_are_said(monkeypatch) -> None:
    monkeypatch.setattr("gtx.data.splits.MOST_COMPARED", 100)
    with pytest.raises(InputError, match=r"cluster: expected at most 100 different .* got 150: split by 'scaffold'"):
        divide("cluster")
    with pytest.raises(InputError, match="at least 3 groups of rows that stay together, and the 3 rows hold 2"):
        divide("group", RowsToSplit(["C", "N", "O"], np.array(["a", "b", "a"], object)))
    for name, words in (("cluster", "at least 3"), ("scaffold", "at least 3 scaffolds, .*: split at random")):
        with pytest.raises(InputError, match=words):
            divide(name, RowsToSplit(["C", "CC", "CC", "C"]))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "c"], "split 'mine': expected 4 labels, one for each row, got 3 labels"),
        (list("abcde"), "expected 4 labels, one for each row, got 5 labels"),
        (None, r"expected 4 labels, one for each row, got NoneType of shape \(\)"),
        (np.zeros((4, 2)), r"got ndarray of shape \(4, 2\)"),
        (["a", "b", None, "c"], "expected a label for each row, got None for row 2, counted from 0: CCC$"),
        (np.array([1, np.nan, 2, 3]), "got nan for row 1, counted from 0: CC$"),
    ],
)
def test_a_method_labels_every_row(labels: object, message: str, monkeypatch) -> None:
    monkeypatch.setitem(SPLIT_METHODS, "mine", SplitMethod(lambda rows: labels))
    settings, rows = SplitSettings(split="mine"), RowsToSplit(["C", "CC", "CCC", "CCCC"])
    folds, repeats = partial(settings.folds, rows, 2), partial(settings.repeated, rows, 2, 1)
    for use in partial(settings.divide, rows), folds, repeats, partial(compute_group_labels, "mine", rows.smiles):
        with pytest.raises(InputError, match=message):
            use()
    if np.ndim(labels) == 1 and len(labels) != 4:
        with pytest.raises(InputError, match="groups: expected 4 labels, one for each row, got"):
            random_split(4, groups=labels)


def test_what_is_no_method_of_a_split_is_said(monkeypatch) -> None:
    known = "as they come, shuffled, largest first, ascending"
    with pytest.raises(InputError, match=f"order: expected one of {known}, got 'largest'; did you mean 'largest f"):
        SplitMethod(len, "largest")
    monkeypatch.setitem(SPLIT_METHODS, "mine", lambda rows: rows.smiles)
    words = r"split 'mine': expected a gtx.data.SplitMethod, got function: write SPLIT_METHODS\['mine'\] = SplitMethod"
    for name in ("mine", "group"):
        with pytest.raises(InputError, match=words):
            SplitSettings(split=name)


# --- Splits by groups and by a column.


def test_a_scaffold_split_trains_on_the_common_scaffolds_and_keeps_to_the_sizes_where_it_can():
    split = divide_groups([""] * 40 + ["ring"] * 30 + [f"rare{i}" for i in range(30)], order="largest first")
    assert_partition(split, 100)
    assert [len(rows) for rows in split.values()] == [80, 10, 10] and set(range(70)) <= set(split["train"])


def test_a_split_column():
    row_log = RowLog()
    values = ["train", " Val ", "VALID", "validation", "dev", "TEST", "valdiation", "", "Train"]
    split = split_by_column(values, row_log, "fold")
    assert {name: rows.tolist() for name, rows in split.items()} == {"train": [0, 8], "val": [1, 2, 3, 4], "test": [5]}
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


def test_a_part_that_no_group_fits_gets_nearly_its_size():
    counts = {"100 Da": 1, "110 Da": 59, "120 Da": 122, "130 Da": 177, "140 Da": 75, "150 Da": 166}
    few = [label for label, count in counts.items() for _ in range(count)]
    for seed in range(20):
        split = divide_groups(few, seed=seed)
        assert_partition(split, 600)
        assert len(split["test"]) in (59, 75) and count_shared_molecules(few, split) == {}
    assert [len(rows) for rows in random_split(10, (0.01, 0.495, 0.495)).values()] == [1, 4, 5]
    many = ["common"] * 300 + ["frequent"] * 200 + [f"rare {i}" for i in range(100)]
    split = divide_groups(many, order="largest first")
    assert [len(rows) for rows in split.values()] == [356, 44, 200]


def test_what_is_no_share():
    for sizes, message in (
        ((0, 0.5, 0.5), "the first above 0"),
        ((80, 10, 10), "split sizes 80 10 10 add up to 100; shares must add up to 1, for instance 0.8 0.1 0.1$"),
        ((1, 1, 1), "add up to 3; shares must add up to 1, for instance 0.34 0.33 0.33$"),
        ((1.1, -0.2, 0.1), "three numbers of 0 or more"),
        ((0.8, 0.2, float("nan")), "three numbers of 0 or more"),
        ((0.8, 0.2), "three numbers of 0 or more"),
    ):
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
    for folds, message in (5, "5 folds need as many groups .* and there are 3"), (1, "expected 2 or more, got 1"):
        with pytest.raises(InputError, match=message):
            assign_folds(["a", "b", "c", "a"], folds)
    with pytest.raises(InputError, match="classes: expected 4 labels, one for each row, got 3 labels"):
        cross_validation_splits(["a", "b", "c", "d"], 2, classes=[0, 1, 0])
    with pytest.raises(InputError, match="the 0 rows hold 0"):
        random_split(0)
    with pytest.raises(InputError, match="none can validate"):
        cross_validation_splits(["a", "b", "b"], 2)
