"""A table that `gtx predict` scores in part says of how many rows, and what the others have; cells as in training."""

from types import SimpleNamespace

import numpy as np

from gtx.cli import main
from gtx.data.rows import InputFile, Row, RowLog
from gtx.tasks import BinaryClassification, FractionRegression, InferredTask, MulticlassClassification, Regression, Task
from tests.tables import GOLDEN, write


def rows_of(*cells: object) -> list[Row]:
    return [Row(number, ["CC", str(cell)], "CC") for number, cell in enumerate(cells, start=1)]


def classes(task: Task, *cells: object) -> Task:
    return task.infer_from_table([InputFile("t.csv", ["smiles", "y"], "smiles", rows_of(*cells), RowLog(), 0)])


def scored(task: Task, *cells: object) -> tuple[dict | None, list[str]]:
    """Scores and notes where the prediction of a row is the share of the rows before it."""
    width = task.objective.num_predictions
    mean = np.linspace(0, 1, len(cells))[:, None].repeat(width, 1)
    lists = [np.zeros((2, width))] * len(cells) if task.level == "atom" else mean
    scores = task.answers.scores(["smiles", "y"])
    scores.add(rows_of(*cells), SimpleNamespace(mean=lists))
    return scores.metrics(), scores.notes()


LABELS = classes(BinaryClassification("y"), "active", "inactive")
BOOLEANS = classes(BinaryClassification("y"), "True", "False")
NUMBERS = classes(BinaryClassification("y"), 0, 1)
SEVERAL = classes(MulticlassClassification("y"), "a", "b", "c")
OF_ATOMS = classes(InferredTask("y", level="atom"), '["a", "b"]', '["b", "a"]')
VALUES, BOUNDS, CHARGES = Regression("y"), Regression("y", censored=True), Regression("y", level="atom")
NEITHER = "is neither inactive nor active, nor blank"
NO_NUMBER = "is not a finite number, nor blank"
TOO_SHORT = "has 1 item; expected one for each of the molecule's 2 atoms"


def test_what_is_not_scored_is_counted() -> None:
    for task, cells, counts, row, reason in (
        (LABELS, ["active", "Inactive", "inactive", ""], "2 of 4 rows; 1 is blank; 1", 2, NEITHER),
        (LABELS, ["Active", "Inactive", "x"], "0 of 3 rows; 3", 1, NEITHER),
        (NUMBERS, [0, "n.d.", 1, 2], "2 of 4 rows; 2", 2, "is neither 0 nor 1"),
        (SEVERAL, ["a", "b", "d"], "2 of 3 rows; 1", 3, "is none of the classes 'a', 'b', 'c' of the training table"),
        (VALUES, [1, "n.d.", 3, "1e99"], "2 of 4 rows; 2", 2, NO_NUMBER),
        (VALUES, ["1e99", "n.d.", 3], "1 of 3 rows; 2", 1, "is too large"),
        (VALUES, [1, ">3", "<=2"], "1 of 3 rows; 2", 2, "is a bound, not a number"),
        (BOUNDS, [1, ">3", "x"], "1 of 3 rows; 1 is a bound; 1", 3, NO_NUMBER),
        (CHARGES, ["[1, 2]", "[1]", "x y"], "1 of 3 rows; 2", 2, TOO_SHORT),
        (CHARGES, ["[1, 2]", "[1, x]"], "1 of 2 rows; 1", 2, "is no list of numbers: item 2, 'x'"),
        (OF_ATOMS, ['["a", "b"]', '["a", "c"]'], "1 of 2 rows; 1", 2, "item 2, 'c', is none of the classes"),
        (OF_ATOMS, ['["a", "b"]', '[["a"]]'], "1 of 2 rows; 1", 2, "is no list of classes: item 1"),
    ):
        (note,) = scored(task, *cells)[1]
        first = f'row {row}, value "{cells[row - 1]}": {reason}'
        assert note.startswith(f"y: scored on {counts} cannot be scored, the first: {first}")


def test_cells_are_read_as_in_training() -> None:
    for task, cells, plain in (
        (BOOLEANS, ["TRUE", "false", "FALSE", "true"], ["True", "False", "False", "True"]),
        (NUMBERS, ["1.0", " 0", "0.0", "1e0"], [1, 0, 0, 1]),
        (VALUES, ["1.0", " 2 ", "nan", "N/A"], [1, 2, "", ""]),
        (LABELS, ["active ", "inactive", "None", "active"], ["active", "inactive", "", "active"]),
    ):
        assert scored(task, *cells) == scored(task, *plain)
        assert scored(task, *cells)[0] is not None and scored(task, *cells)[1] == []


def test_bounds_in_lists_of_atoms_are_blanks_and_told() -> None:
    row_log, cells = RowLog(), ["['<1', '>1']", "['0.5', \">1\"]", "[0.5, 1]", "['x', 1]"]
    y, _, lists, _ = CHARGES.columns.parse(rows_of(*cells), ["smiles", "y"], row_log)
    np.testing.assert_array_equal(y[:, 0], [np.nan, 0.5, 0.75, np.nan])
    np.testing.assert_array_equal(lists[1]["y"], [0.5, np.nan])
    assert list(row_log.errors) == [4] and list(row_log.warnings) == [1, 2]
    assert row_log.warnings[1][0].endswith("2 bounds left out as blank: of atoms only exact values are learned")
    (note,) = scored(CHARGES, *cells)[1]
    assert note.startswith("y: scored on 2 of 4 rows; 1 is blank; 1 cannot be scored, the first: row 4, value")


def test_fractions_that_do_not_add_up_are_told() -> None:
    task = FractionRegression(["a", "b"])
    rows = [Row(i, ["C", *cells], "C") for i, cells in enumerate([("0.4", "0.6"), ("0.5", "0.6"), ("", "1")], start=1)]
    scores = task.answers.scores(["smiles", "a", "b"])
    scores.add(rows, SimpleNamespace(mean=np.full((3, 2), 0.5)))
    words = "the 2 fractions from 'a' to 'b' add up to 1.1, not to 1; --normalise divides each by that"
    assert scores.notes() == [
        f'a: scored on 1 of 3 rows; 1 is blank; 1 cannot be scored, the first: row 2, value "0.5": {words}',
        f'b: scored on 1 of 3 rows; 2 cannot be scored, the first: row 2, value "0.6": {words}',
    ]


def test_of_many_targets_a_few_lines_and_bounds_count_where_the_table_lacks_another() -> None:
    scores = Regression(["y", "z"], censored=True).answers.scores(["smiles", "y"])
    scores.add(rows_of(">5", 1), SimpleNamespace(mean=np.full((2, 2), 6.0)))
    assert scores.metrics()["per_target"]["y"]["bounds_kept"] == 1
    task = Regression([f"y{i}" for i in range(30)])
    scores = task.answers.scores(["smiles", *task.targets])
    scores.add([Row(1, ["C", *["x"] * 30], "C")], SimpleNamespace(mean=np.zeros((1, 30))))
    assert len(scores.notes()) == 11 and scores.notes()[-1].startswith("20 more targets have")


def test_a_decimal_comma_is_told_as_in_training() -> None:
    scores = Regression(["y"]).answers.scores(["smiles", "y"])
    scores.add(rows_of("-3,85", "2"), SimpleNamespace(mean=np.zeros((2, 1))))
    assert scores.notes()[0].endswith("; write numbers with a decimal point: 1.5 and not 1,5")


def test_it_is_printed_and_the_table_stays_as_it_is(tmp_path, capsys) -> None:
    model = str(GOLDEN / "classification.gtx")
    cells = [["CCO", 1, "x"], ["CCN", "yes", "x"], ["CCC", 0, "x"], ["C1CC", 0, "x"], ["CCCC", "", "x"]]
    columns = ["smiles", " narrow ", "other"]
    table, bare = write(tmp_path / "t.csv", cells, columns), write(tmp_path / "b.csv", cells, ["smiles", "n", "other"])
    assert main(["predict", model, str(table), "--out", str(tmp_path / "p.csv")]) == 0
    said = capsys.readouterr().err.splitlines()
    counts = "narrow: scored on 2 of 4 rows; 1 is blank; 1 cannot be scored"
    assert f'{counts}, the first: row 2, value "yes": is neither 0 nor 1, nor blank' in said
    assert any(line.startswith("narrow: roc_auc") for line in said)
    assert main(["predict", model, str(bare), "--out", str(tmp_path / "q.csv")]) == 0
    assert not any("scored on" in line for line in capsys.readouterr().err.splitlines())
    one, other = ((tmp_path / name).read_text().splitlines()[1:] for name in ("p.csv", "q.csv"))
    assert one == other
    twice = write(tmp_path / "d.csv", [["CCO", 1, 0]], ["smiles", "narrow", "narrow"])
    assert main(["predict", model, str(twice), "--out", str(tmp_path / "r.csv")]) == 0
    assert "column 'narrow': 2 are called so, and none is read" in capsys.readouterr().err
