import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
from gtx.base.errors import InputError
from gtx.data import MoleculeStore, Row, Table
from gtx.prediction import Predictor, predict_table, streaming
from gtx.tasks.task import Answers
from tests.serve.conftest import made

NUMBERS = ["gap_pred", "gap_std", "gap_low", "gap_high"]
NUMBERS += [name.replace("gap", "solvation_water") for name in NUMBERS]


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_cells_stay_as_they_are_and_a_row_has_numbers_or_an_error(predictor: Predictor, tmp_path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [
        ["id", "smiles", "gap_pred", "note", "error"],
        ["007", " CCO ", "nan", "", "1e-3"],
        ["nan", "C1CC", "NULL", 'a "quoted", cell', ""],
        ["8", "", "", "two\nlines", ""],
        ["", "C[Si](C)(C)C", "1_000", "é", "x"],
        ["9", "CC"],
        ["10", "C=O", "", "", "", "surplus"],
    ]
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    outcome = predict_table(predictor, source, out)
    header, *written = read(out)
    assert header == [*rows[0], "gap_pred1", *NUMBERS[1:], "error1", "warning"]
    assert [row[:5] for row in written[:4]] == rows[1:5]
    assert written[4][:5] == ["9", "CC", "", "", ""] and written[5][4] == ",surplus"
    for row in written:
        numbers, error = row[5:-2], row[-2]
        assert all(cell == "" for cell in numbers) if error else np.isfinite(float(numbers[0]))
    errors = [row[-2] for row in written]
    assert errors[1].startswith('row 2, column "smiles", value "C1CC": ') and "unclosed ring" in errors[1]
    assert "empty" in errors[2] and "2 cells" in errors[4] and "6 cells" in errors[5]
    assert errors[0] == errors[3] == ""
    assert written[3][-1] == 'row 4, column "smiles", value "C[Si](C)(C)C": not seen in training: element Si'
    assert outcome.row_log.summary().startswith("6 rows: 2 read, 4 errors")
    assert outcome.metrics is None


def test_the_molecules_of_one_row_are_texts(tmp_path) -> None:
    predictor, out = made(components=("solute", "solvent")), tmp_path / "out.csv"
    predict_table(predictor, ["CCO", "O"], out)
    header, row = read(out)
    expected = predictor.predict(pd.DataFrame({"solute": ["CCO"], "solvent": ["O"]}))["y_pred"].item()
    assert header[:3] == ["solute", "solvent", "y_pred"] and row[:2] == ["CCO", "O"]
    assert float(row[2]) == pytest.approx(expected, rel=1e-5)
    said = "this model reads solute and solvent: expected a SMILES of each, or a table with these columns; got"
    for texts, count in (("CCO", 1), (["CCO", "O", "C"], 3)):
        with pytest.raises(InputError, match=f"^{said} {count} SMILES$"):
            predict_table(predictor, texts, out)


def test_the_column_of_molecules_is_found(predictor: Predictor, tmp_path) -> None:
    """As in the table of training, as it is asked for, or as the only one that reads as molecules."""
    trained_on = Predictor(predictor.members, replace(predictor.header, smiles_column="drug"))
    expected, note = predictor.predict(["CCO"]).gap_pred[0], "the molecules are those of column 'structure'"
    tables = ("drug,smiles\nCCO,CC\n", None), ("drug,Smiles\nCC,CCO\n", "Smiles"), ("id,structure\n1,CCO\n", None)
    for text, asked in tables:
        (tmp_path / "in.csv").write_text(text)
        outcome = predict_table(trained_on, tmp_path / "in.csv", tmp_path / "out.csv", smiles_column=asked)
        assert float(pd.read_csv(tmp_path / "out.csv").gap_pred[0]) == pytest.approx(expected, rel=1e-5)
        assert outcome.notes == ([note] if "structure" in text else [])


def test_a_bad_request_is_refused_and_leaves_no_file(predictor: Predictor, tmp_path) -> None:
    (tmp_path / "in.csv").write_text("structure,y\nC1CC,1\nC(C,2\n")
    out = tmp_path / "out.csv"
    with pytest.raises(gtx.InputError, match=r"no column called 'smiles'.* `smiles_column`; .* 'structure', 'y'"):
        predict_table(predictor, tmp_path / "in.csv", out)
    with pytest.raises(gtx.InputError, match="no column 'Structure'; did you mean 'structure'"):
        predict_table(predictor, tmp_path / "in.csv", out, smiles_column="Structure")
    with pytest.raises(gtx.InputError, match=r"row 1.*unclosed ring"):
        predict_table(predictor, tmp_path / "in.csv", out, smiles_column="structure", on_error="fail")
    (tmp_path / "file").write_text("")
    with pytest.raises(gtx.InputError, match="cannot write"):
        predict_table(predictor, tmp_path / "in.csv", tmp_path / "file" / "out.csv", smiles_column="structure")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "in.csv"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.usefixtures("forks")
def test_no_more_than_a_few_chunks_are_in_hand(workers: int, predictor: Predictor, tmp_path, monkeypatch) -> None:
    read_so_far, ahead = 0, []

    def rows() -> Iterator[Row]:
        nonlocal read_so_far
        for number in range(1, 401):
            read_so_far += 1
            yield Row(number, ["C"], "C")

    class Watched(streaming.TableWriter):
        def write(self, *row: object) -> None:
            ahead.append(read_so_far - len(ahead))
            super().write(*row)

    monkeypatch.setattr(streaming, "default_chunk_size", lambda featuriser: 10)
    monkeypatch.setattr(streaming, "TableWriter", Watched)
    monkeypatch.setattr(streaming, "open_table", lambda *_: Table(["smiles"], "smiles", rows()))
    outcome = predict_table(predictor, "in.csv", tmp_path / "out.csv", workers=workers)
    assert outcome.row_log.rows == len(ahead) == 400
    assert max(ahead) <= 10 * (2 * workers + 3)
    assert not outcome.row_log.errors and not outcome.row_log.warnings  # messages are not kept either


@pytest.mark.usefixtures("forks")
def test_workers_predict_the_same_bytes(predictor: Predictor, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "default_chunk_size", lambda featuriser: 10)
    source = tmp_path / "in.csv"
    source.write_text("smiles,name\n" + "".join(f"{'C' * (i % 7)}O,{i}\nC1CC,broken\n" for i in range(20)))
    asked, own = [], Predictor.predict_store
    monkeypatch.setattr(Predictor, "predict_store", lambda self, store: asked.append(len(store)) or own(self, store))
    written = []
    for workers in (0, 2):
        outcome = predict_table(predictor, source, tmp_path / "out.csv", workers=workers)
        assert outcome.row_log.rows == 40 and outcome.row_log.num_errors == 20
        written.append((tmp_path / "out.csv").read_bytes())
    assert written[0] == written[1]
    assert asked == [5, 5, 5, 5, 1]  # with workers this process predicts one molecule, which compiles what is to be


@pytest.mark.usefixtures("forks")
def test_a_model_on_a_gpu_stays_there_and_workers_read(predictor: Predictor, tmp_path, monkeypatch) -> None:
    asked = []

    class Elsewhere:
        header, task, device = predictor.header, predictor.task, torch.device("cuda")
        output_columns = staticmethod(predictor.output_columns)

        def predict_store(self, store: MoleculeStore) -> Answers:
            asked.append(len(store))
            return predictor.predict_store(store)

    (tmp_path / "in.csv").write_text("smiles\n" + "C\nCCO\nC1CC\n" * 40)
    monkeypatch.setattr("gtx.prediction.streaming.default_chunk_size", lambda featuriser: 10)
    for workers, model in ((2, Elsewhere()), (0, predictor)):
        predict_table(model, tmp_path / "in.csv", tmp_path / f"{workers}.csv", workers=workers)
    assert asked == [54, 26]  # of 80 and of 40 rows: several chunks at a time
    together, apart = (pd.read_csv(tmp_path / f"{workers}.csv") for workers in (2, 0))
    pd.testing.assert_frame_equal(together, apart, rtol=1e-5)  # other batches round otherwise
