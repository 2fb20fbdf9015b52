"""Cells to targets: blanks and mistakes told apart, classes by their labels, and no label is ever dropped."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.data.cells import BLANK_WORDS, read_weights
from gtx.data.feature_columns import FeatureColumns
from gtx.data.rows import InputFile, Row, RowLog
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression, Task
from gtx.tasks.combined import InferredTask

COLUMNS = ["smiles", "y", "z"]


def rows_of(*cells: tuple[str, str]) -> list[Row]:
    return [Row(number, ["C", *pair], "C") for number, pair in enumerate(cells, start=1)]


def file_of(*cells: tuple[str, str]) -> InputFile:
    return InputFile("table.csv", COLUMNS, "smiles", rows_of(*cells), RowLog(), 0)


def settled(task: Task | InferredTask, *cells: tuple[str, str]) -> Task:
    return task.infer_from_table([file_of(*cells)])


def column(*labels: str) -> list[tuple[str, str]]:
    return [(label, "") for label in labels]


YZ = ["y", "z"]
NUMBERS, INFERRED, TWO, SEVERAL = (
    kind(YZ) for kind in (Regression, InferredTask, BinaryClassification, MulticlassClassification)
)


def test_numbers_with_blanks_and_bad_cells():
    row_log = RowLog()
    rows = [*rows_of(("1.5", ""), ("nan", "2"), ("x", "3"), ("4", "inf")), Row(5, ["C", "9", ""], "C", error="ragged")]
    y = Regression(["z", "y"]).columns.parse(rows, COLUMNS, row_log).y
    assert np.array_equal(y, [[np.nan, 1.5], [2, np.nan]] + [[np.nan] * 2] * 3, equal_nan=True)
    assert row_log.errors == {
        3: f'row 3, column "y", value "x": is not a finite number, nor blank: {BLANK_WORDS}',
        4: f'row 4, column "z", value "inf": is not a finite number, nor blank: {BLANK_WORDS}',
    }
    with pytest.raises(InputError, match='row 3, column "y", value "x"'):
        Regression(["y"]).columns.parse(rows, COLUMNS, RowLog("fail"))


@pytest.mark.parametrize("cell", ["-1e200", "9.96920996838687e+36"])
def test_a_number_that_would_spoil_the_others_is_an_error_of_its_row(cell):
    task, rows = Regression(["y", "z"]), rows_of(("1", "1e30"), ("2", "-1e30"), ("3", cell))
    row_log = RowLog()
    y = task.columns.parse(rows, COLUMNS, row_log).y
    assert np.isfinite(y[:2]).all() and np.isnan(y[2]).all() and list(row_log.errors) == [3]
    message = f'row 3, column "z", value "{cell}": is too large: a target lies between -1e+30 and 1e+30; where'
    assert row_log.errors[3].startswith(message)
    scores = task.answers.scores(COLUMNS)  # what is only scored is never refused
    scores.add(rows, SimpleNamespace(mean=np.ones((3, 2))))
    found = scores.metrics()["per_target"]["z"]
    assert found["mae"] == 1e30 and np.isfinite(found["rmse"])


def test_hopeless_targets_are_refused():
    for cells, task, message in (
        (["low", "", "high", "x"], INFERRED, "'y' holds text: .*--task multiclass"),
        (["1,5", "-0,2", "", "3,1"], INFERRED, "'y' holds text: .*decimal point: 1.5 and not"),
        (["", "NaN"], INFERRED, "'y' is blank in all of the 2 rows"),
        (["inf", "inf"], NUMBERS, "'y' holds no value: 'inf' is not a finite number"),
        (["", "NaN"], SEVERAL, "'y' is blank in all of the 2 rows; classes were expected"),
        (["1e31", ""], NUMBERS, "'y' holds no value: '1e31' is too large"),
        ([">1", "<2"], Regression(YZ, censored=True), "'y' holds bounds alone; exact values were"),
        (["1", "1", ""], INFERRED, "target column 'y' that are not blank hold '1' and none 0; classification needs"),
        (["0", "0", "7", "2"], TWO, "'y' holds 3 classes, '0', '2', '7'.*--task multiclass"),
        (["a", "a"], SEVERAL, "target column 'y' that are not blank hold 'a'; multiclass needs two or more"),
        (["a", "a"], INFERRED, "'y' that are not blank hold 'a'; there is nothing to learn"),
        (["a", "caf\udce9"], SEVERAL, r"'y', classes\[1\]: expected a text in UTF-8, got 'caf.udce9'"),
        (["a", "b" * 10_001], TWO, r"'y', classes\[1\]: .* at most 10,000 characters"),
    ):
        with pytest.raises(InputError, match=message):
            settled(task, *zip(cells, "0111", strict=False))
    with pytest.raises(InputError, match="'z' is blank in all of the 2 rows; classes were expected"):
        settled(INFERRED, *column("yes", "no"))


def test_two_labels_of_any_kind_are_two_classes():
    """Numbers in order, else the one that names what is looked for comes last: its probability is predicted."""
    for labels, classes in (
        (("0", "1.0", "", "1"), ("0", "1")),
        (("-0.0", "1", "0"), ("0", "1")),
        (("inactive", "active", " active"), ("inactive", "active")),
        (("10", "9"), ("9", "10")),
        (("True", "False", "TRUE"), ("False", "TRUE")),
        (("mutagen", "non-mutagen"), ("non-mutagen", "mutagen")),
        (("BBB+", "BBB-"), ("BBB-", "BBB+")),
        (("+", "\u2212"), ("\u2212", "+")),
        (("CNS (+)", "CNS (-)"), ("CNS (-)", "CNS (+)")),
        (("inhibitor", "noninhibitor"), ("noninhibitor", "inhibitor")),
        (("inhibitor", "inactive"), ("inactive", "inhibitor")),
        (("binder", "not a binder"), ("not a binder", "binder")),
        (("permeable", "impermeable"), ("impermeable", "permeable")),
        (("stable", "unstable"), ("unstable", "stable")),
        (("high risk", "low risk"), ("low risk", "high risk")),
        (("active", "weakly active"), ("weakly active", "active")),
        (("-1", "1"), ("-1", "1")),
    ):
        task = settled(BinaryClassification(["y"]), *column(*labels))
        assert task.columns.labels(0) == classes
        y = task.columns.parse(rows_of(*column(*labels)), COLUMNS, RowLog()).y[:, 0]
        known = [label.strip() for label in labels if label]
        place = {name: i for i, name in enumerate(classes)} | {"-0.0": 0, "1.0": 1, "True": 1, "TRUE": 1}
        assert y[~np.isnan(y)].tolist() == [place[label] for label in known]


def test_the_positive_class_can_be_said():
    cells = column("BBB+", "BBB-", "", "BBB+")
    task = settled(BinaryClassification(["y"], positive="BBB-"), *cells)
    assert task.columns.labels(0) == ("BBB+", "BBB-")
    assert task.columns.parse(rows_of(*cells), COLUMNS, RowLog()).y[:, 0].tolist()[:2] == [0, 1]
    (note,) = task.answers.notes()
    assert note == "y: y_pred is the probability of the positive class, 'BBB-'; the other class is 'BBB+'"
    assert settled(InferredTask(["y"], positive="0.0"), *column("1", "0")).columns.labels(0) == ("1", "0")
    with pytest.raises(InputError, match=r"positive: target 'y' has the classes 'BBB-', 'BBB\+', not 'bbb'"):
        settled(BinaryClassification(["y"], positive="bbb"), *cells)
    with pytest.raises(InputError, match="positive: regression has no such option"):
        settled(InferredTask(["y"], positive="1"), *column("1", "0", "7"))


THOUSANDS = "if its commas separate thousands, write 1334 and not 1,334, or 1.334 if its comma is a decimal comma"


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        (["1,334", "22,100", "", "3,000"], THOUSANDS),
        (["1,334", "200", "15", "3"], THOUSANDS),
        ([">1,334", "200", "15", "3"], "write >1334 and not >1,334"),
        (["1,334,567", "2,000", "3"], "write 1334567 and not 1,334,567$"),
        (["1,334.5", "2,000"], r"write 1334\.5 and not 1,334\.5$"),
        (["1,334", "0,512", "2,771"], "write numbers with a decimal point: 1.5 and not 1,5"),
        (["1,334", "2,5", "7"], "write numbers with a decimal point: 1.5 and not 1,5"),
        (["-3,85", "n.d.", "<-9,5", "-0,5", "-1,25"], "write numbers with a decimal point: 1.5 and not 1,5"),
    ],
)
@pytest.mark.parametrize("kind", [InferredTask, Regression])
def test_commas_of_thousands_are_told_from_decimal_commas(cells, advice, kind):
    file = file_of(*column(*cells))
    try:
        task = kind(["y"]).infer_from_table([file])
    except InputError as error:
        message = str(error)
    else:
        task.columns.parse(file.rows, COLUMNS, file.row_log)
        message = file.row_log.errors[1]
    assert re.search(advice, message)


def test_so_are_those_of_weights_and_features():
    row_log = RowLog()
    read_weights(rows_of(*column("1", "1,334", "2,000")), COLUMNS, "y", row_log)
    assert row_log.errors[2].endswith(f"is no weight: a number of 0 or more was expected; {THOUSANDS}")
    for cell, advice in ("1,334", f"; {THOUSANDS}"), ("1,5", "1.5 and not 1,5"), ("x", "of at most 1e+30"):
        with pytest.raises(InputError) as error:
            FeatureColumns(("t",)).read_one({"t": cell})
        assert str(error.value).endswith(advice)


def test_a_label_that_the_training_table_lacks_is_an_error_of_its_row():
    task, row_log = settled(BinaryClassification(["y"]), *column("a", "b")), RowLog()
    y = task.columns.parse(rows_of(*column("b", "c", "")), COLUMNS, row_log).y
    assert np.array_equal(y[:, 0], [1, np.nan, np.nan], equal_nan=True)
    assert row_log.errors == {2: 'row 2, column "y", value "c": is neither a nor b, nor blank'}
    task, row_log = settled(MulticlassClassification(["y"]), *column("a", "b", "10", "9")), RowLog()
    assert task.columns.labels(0) == ("9", "10", "a", "b")
    assert task.columns.parse(rows_of(*column("d")), COLUMNS, row_log).y.size
    assert "is none of the classes '9', '10', 'a', 'b' of the training table" in row_log.errors[1]


def test_the_task_is_inferred():
    for y, z, task in (
        (["0", "", "1"], ["1", "1", "0"], BinaryClassification),
        (["0", "", "1"], ["1", "0", "0.5"], Regression),
        (["active", "inactive"], ["1", "0"], BinaryClassification),
        (["1", "0", "1"], ["1", "oops", "0"], BinaryClassification),
        (["-1", "1", "-1.0"], ["1", "2", ""], BinaryClassification),
        (["1", "2", "3", "3", "3", "3"], ["1", "oops", "4", "oops", "oops", "5"], Regression),
        (["5", "5", ">7", "6"], ["1", "0", "0", "0"], Regression),
    ):
        assert type(settled(INFERRED, *zip(y, z, strict=True))) is task


PAIR, BITS = ["active", "inactive"] * 15, ["0", "1"] * 15
ONE = InferredTask(["y"])


def test_what_two_different_values_decide_is_said():
    for cells, wanted, classes, remark in (
        (BITS, ONE, ("0", "1"), ""),
        (PAIR, ONE, ("inactive", "active"), ""),
        (["-1", "1", "-1"], ONE, ("-1", "1"), "learned as two classes, as it holds two different numbers, -1"),
        (["2", "1", "2.0"], ONE, ("1", "2"), "learned as two classes, as it holds two different numbers, 1 and"),
        ([*BITS, "n.d."], ONE, ("0", "1"), "'0' and '1'; 1 of 31 cells holds something else, such as 'n.d.'"),
        ([*PAIR, "1"], ONE, ("inactive", "active"), "'inactive' and 'active'; 1 of 31 cells holds something el"),
        ([*PAIR, "Active"], ONE, ("inactive", "active"), "something else, such as 'Active', and their rows are"),
        ([*BITS, "0.5"], BinaryClassification(["y"]), ("0", "1"), ""),
        ([*BITS, "0.5"], ONE, None, "learned as numbers, although it holds 0 and 1; only 1 of 31 cells holds s"),
        (["1", "2", "3", "4"], ONE, None, ""),
    ):
        file = file_of(*column(*cells))
        task = wanted.infer_from_table([file])
        if classes is None:
            assert type(task) is Regression
        else:
            assert task.columns.labels(0) == classes
            task.columns.parse(file.rows, COLUMNS, file.row_log)
            assert list(file.row_log.errors) == ([31] if len(cells) > 30 else [])  # an odd cell is an error of its row
        remarks = "; ".join(wanted.remarks([file])) if wanted is ONE else ""
        assert remark in remarks and bool(remark) == bool(remarks)


def test_texts_and_numbers_that_are_no_two_classes_are_refused_and_one_target_of_numbers_makes_all_numbers():
    words = r"holds texts and numbers: '1' \(4 rows\), 'active' \(3 rows\), 'inactive' \(3 rows\)\. For two classes"
    with pytest.raises(InputError, match=words):
        settled(InferredTask(["y"]), *column(*["active", "inactive"] * 3, *"1111"))
    (remark,) = InferredTask(["y", "z"]).remarks([file_of(("0", "0.1"), ("1", "0.2"), ("1", "7"))])
    words = "although it holds 0 and 1 alone, because z holds 3 different numbers: for classes train it alone"
    assert remark == f"warning: y: learned as numbers, {words}"


def test_an_option_that_the_task_found_does_not_have_is_refused():
    cells = ("1", ""), ("2", ""), ("3", "")
    assert settled(InferredTask(["y"], loss="mae", class_weights=None), *cells).loss == "mae"
    with pytest.raises(InputError, match="loss: classification has no such option; leave it out, or say"):
        settled(InferredTask(["y"], loss="mae"), ("1", ""), ("0", ""))
    with pytest.raises(InputError, match=r"uncertanty: regression has no such option; .*; did you mean 'uncertainty'"):
        settled(InferredTask(["y"], uncertanty="variance"), *cells)
    with pytest.raises(InputError, match=r"target column 'y' is named twice$"):
        settled(InferredTask(["y", "y"]), *cells)
