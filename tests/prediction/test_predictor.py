"""The predictor, its threads and members, and selected rows."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem

import gtx
from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.prediction import Predictor, RowSelection, predict_table
from gtx.prediction.predictor import BATCHES
from gtx.tasks import BinaryClassification, MulticlassClassification, NumericTask
from tests.molecules_for_tests import SMILES
from tests.tables import GOLDEN

NUMBERS = ["gap_pred", "gap_std", "gap_low", "gap_high"]
NUMBERS += [name.replace("gap", "solvation_water") for name in NUMBERS]


def test_each_row_has_numbers_or_an_error(predictor: Predictor) -> None:
    given = ["CCO", "C1CC", " c1ccccc1 ", "", "C C", "O=C(C)N"]
    table = predictor.predict(pd.Series(given))
    assert list(table) == ["smiles", *NUMBERS, "error", "warning"]
    assert table.smiles.tolist() == given
    bad = table.error.notna()
    assert bad.tolist() == [False, True, False, True, True, False]
    assert table.gap_pred.isna().equals(bad) and table.gap_low.isna().equals(bad)
    assert "unclosed ring" in table.error[1]
    assert table.warning[~bad].isna().all()
    assert predictor.predict("CCO").smiles.tolist() == ["CCO"]
    assert predictor.predict([]).shape == (0, len(NUMBERS) + 3)


def test_a_prediction_depends_neither_on_batch_mates_nor_on_how_the_smiles_is_written(predictor, shared_data) -> None:
    zinc = pd.read_csv(shared_data / "zinc12k" / "zinc12k.csv").smiles[::200].tolist()
    molecules = [*zinc, *SMILES]
    together = numbers(predictor, molecules)
    alone = np.concatenate([numbers(predictor, smiles) for smiles in molecules[::5]])
    assert np.abs(alone - together[::5]).max() < 1e-5
    for seed in range(3):
        how = {"randomSeed": seed, "kekuleSmiles": seed == 2}
        rewritten = [Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(text), 1, **how)[0] for text in molecules]
        assert np.abs(numbers(predictor, rewritten) - together).max() < 1e-5


@pytest.mark.slow
def test_nor_for_molecules_so_large_that_float32_would_show(predictor: Predictor) -> None:
    smiles = Chem.MolToSmiles(Chem.MolFromSequence("ACDEFGHIKLMNPQRSTVWY" * 2))
    written = [smiles, *Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(smiles), 1, randomSeed=1)]
    predicted = numbers(predictor, [*written, "CCO"])[:-1]
    assert np.ptp(predicted, axis=0).max() < 1e-5
    assert np.abs(numbers(predictor, written[0]) - predicted[0]).max() < 1e-5


def test_a_large_molecule_leaves_its_batch_mates_alone(predictor: Predictor) -> None:
    large = ["C" * 65, "C" * 90]
    alone, beside = predictor.predict(SMILES), predictor.predict([large[0], *SMILES, large[1]])
    columns = [name for name in alone if name.startswith(("gap", "solvation"))]
    assert beside[columns][1:-1].reset_index(drop=True).equals(alone[columns])  # to the last bit
    assert beside[columns].iloc[[0, -1]].reset_index(drop=True).equals(predictor.predict(large)[columns])


def test_memory_that_runs_out_makes_batches_smaller_and_says_so_once(predictor: Predictor, monkeypatch, caplog) -> None:
    smiles = ["C" * (1 + n % 7) + "O" for n in range(50)]
    expected, seen = numbers(predictor, smiles), []
    room, old = 20, type(predictor.members[0]).forward

    def forward(self: torch.nn.Module, batch: Any, *others: Any) -> Any:
        seen.append(batch.num_graphs)
        if batch.num_graphs > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.12 GiB")
        return old(self, batch, *others)

    monkeypatch.setattr(type(predictor.members[0]), "forward", forward)
    np.testing.assert_allclose(numbers(predictor, smiles), expected, rtol=1e-4, atol=1e-5)
    assert [n for n in seen if n > room] == [50, 25]
    seen.clear()
    np.testing.assert_allclose(numbers(predictor, smiles), expected, rtol=1e-4, atol=1e-5)
    assert max(seen) <= room
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["out of memory on cpu: predicting in smaller batches"]
    room = 0
    with pytest.raises(InputError, match="out of memory on cpu with a single molecule: lower `max_atoms`"):
        predictor.predict(smiles)


def numbers(predictor: Predictor, smiles: list[str] | str) -> np.ndarray:
    """Predictions in standard deviations of the targets."""
    return predictor.predict(smiles)[["gap_pred", "solvation_water_pred"]].to_numpy() / predictor.task.scaler.sd.numpy()


FEW = ["CCO", "c1ccccc1O", "CC(=O)N"]
EACH = [f"{name}_pred_{k}" for name in ("gap", "solvation_water") for k in (1, 2)]


def test_each_member_says_what_it_says_alone_and_their_mean_is_the_prediction(predictor: Predictor) -> None:
    given = [*SMILES, "C1CC"]
    table, usual = predictor.predict(given, members=True), predictor.predict(given)
    assert list(table) == ["smiles", *NUMBERS, *EACH, "error", "warning"]
    pd.testing.assert_frame_equal(table[list(usual)], usual)
    assert table[EACH].isna().all(axis=1).equals(table.error.notna()) and table.error.notna().sum() == 1
    for name in ("gap", "solvation_water"):
        each = table[[f"{name}_pred_1", f"{name}_pred_2"]].to_numpy()
        np.testing.assert_allclose(each.mean(1), table[f"{name}_pred"], rtol=1e-12)
        np.testing.assert_allclose(each.std(1, ddof=1), table[f"{name}_std"], rtol=1e-9)
        for k in (0, 1):
            alone = with_task(predictor, [k]).predict(given)
            np.testing.assert_allclose(each[:, k], alone[f"{name}_pred"], rtol=1e-12)
    one = with_task(predictor, [0]).predict(given, members=True)
    assert [name for name in one if name.endswith("_1")] == ["gap_pred_1", "solvation_water_pred_1"]
    np.testing.assert_array_equal(one.gap_pred_1, one.gap_pred)
    copy = pickle.loads(pickle.dumps(predictor.with_members()))
    assert copy.output_columns([]) == predictor.with_members().with_members().output_columns([])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "columns"),
    [
        (BinaryClassification(["gap", "solvation_water"], calibration="temperature", temperatures=(3.0, 0.4)), EACH),
        (MulticlassClassification("kind", classes=(("a", "b"),)), ["kind_a_1", "kind_a_2", "kind_b_1", "kind_b_2"]),
    ],
    ids=["calibrated classes", "several classes"],
)
def test_members_of_other_tasks(task: NumericTask, columns: list[str], predictor: Predictor) -> None:
    header = replace(predictor.header, task=task)
    table = Predictor(predictor.members, header, "cpu").predict(FEW, members=True)
    assert list(table)[-2 - len(columns) : -2] == columns
    each = table[columns].to_numpy().reshape(len(table), 2, 2)  # [m, P, members]
    plain = replace(task, temperatures=None) if isinstance(task, BinaryClassification) else task
    names = ["kind_a", "kind_b"] if isinstance(task, MulticlassClassification) else ["gap_pred", "solvation_water_pred"]
    every, one, other = predictor.members, predictor.members[:1], predictor.members[1:]
    for members, said in ((every, each.mean(2)), (one, each[..., 0]), (other, each[..., 1])):
        expected = Predictor(members, replace(header, task=plain), "cpu").predict(FEW)
        np.testing.assert_allclose(said, expected[names], rtol=1e-9)
    assert np.ptp(each, axis=2).min() > 0


def test_a_kernel_has_its_share_in_each_member_and_a_task_without_members_apart_says_so() -> None:
    table = gtx.load(GOLDEN / "mix.gtx", device="cpu").predict(SMILES[:5], members=True)
    (column,) = (name for name in table if name.endswith("_pred_1"))
    np.testing.assert_array_equal(table[column], table[column.removesuffix("_1")])
    with pytest.raises(InputError, match="members: a model of the task sequence gives no predictions of single memb"):
        gtx.load(GOLDEN / "sequence.gtx", device="cpu").predict("CCO", members=True)


def test_embeddings(predictor: Predictor) -> None:
    with pytest.warns(UserWarning, match="1 of 3 SMILES cannot be used; .* number 1, .*: 'C1CC' .*unclosed ring"):
        vectors = predictor.embed(["CCO", "C1CC", "OCC"])
    width = predictor.members[0].width
    assert vectors.shape == (3, 2 * width) and vectors.dtype == np.float32
    assert np.isnan(vectors[1]).all()
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-5)
    store = featurise(predictor.header.featuriser, ["CCO"]).store
    with torch.no_grad():
        first = predictor.members[0].embed(store.batch(torch.tensor([0])))
    np.testing.assert_allclose(vectors[0, :width], first[0].numpy(), atol=1e-5)


def test_an_element_that_a_reference_lacks_is_said(predictor: Predictor) -> None:
    reference = torch.zeros(119, 2, dtype=torch.float64)
    reference[[1, 6, 8], 1] = torch.rand(3, dtype=torch.float64)  # of one target alone
    scaler = replace(predictor.task.scaler, reference=reference)
    table = with_task(predictor, scaler=scaler).predict(["CCO", "C[Xe]C"])
    plain = with_task(predictor, scaler=replace(scaler, reference=None)).predict(["CCO", "C[Xe]C"])
    said = "solvation_water: without what element Xe contributes, which training did not show: not to be relied on"
    assert list(table.warning) == [plain.warning[0], f"{plain.warning[1]}; {said}"]
    assert table.gap_pred.equals(plain.gap_pred) and table.solvation_water_pred.notna().all()


def with_task(predictor: Predictor, members: Sequence[int] = (0, 1), **changes: object) -> Predictor:
    header = replace(predictor.header, task=replace(predictor.task, **changes))
    return Predictor([predictor.members[k] for k in members], header, "cpu")


# --- Work on batches, in threads: in order, each with its share of torch's threads, which all get back.


def test_predictions_do_not_depend_on_threads(predictor: Predictor, monkeypatch) -> None:
    """Nor do gradients appear: what is set for one thread is set in all."""
    monkeypatch.setitem(BATCHES, "cpu", (75_000, 2))
    store, before = featurise(predictor.header.featuriser, SMILES, workers=0).store, torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        several = predictor.predict_store(store)
        assert torch.get_num_threads() == 4
        torch.set_num_threads(1)
        alone = predictor.predict_store(store)
    finally:
        torch.set_num_threads(before)
    assert len(store) > 8 and torch.tensor(several.mean).allclose(torch.tensor(alone.mean), rtol=1e-6, atol=1e-6)
    assert several.warnings == alone.warnings and not predictor.outputs(store).requires_grad


# --- Selecting.


ROWS = [["a", 3.0], ["b", None], ["c", 8.0], ["d", 8.0], ["e", "-1e1"], ["f", math.nan]]


def chosen(*words: object) -> list[str]:
    return [cells[0] for cells, _ in RowSelection(*words).select(((row, None) for row in ROWS), ["id", "y_pred"])]


def test_the_best_rows_come_first_and_of_equal_ones_the_earlier() -> None:
    assert chosen() == list("abcdef")
    assert chosen(3, "y_pred") == ["c", "d", "a"]
    assert chosen(10, "y_pred", True) == ["e", "a", "c", "d"]
    values = np.random.default_rng(0).integers(0, 50, 1000)
    best = RowSelection(top=20, by="y").select((([float(y), i], None) for i, y in enumerate(values)), ["y", "i"])
    assert [cells[1] for cells, _ in best] == np.argsort(-values, kind="stable")[:20].tolist()


def test_what_cannot_be_selected_is_said() -> None:
    for words, message in (
        ([3], "`top` needs `by`, such as `top` 100 `by` y_pred"),
        ([None, None, True], "`lowest` needs `top` and `by`"),
        ([3, "y_prod"], "there is no column 'y_prod'; did you mean 'y_pred'"),
    ):
        with pytest.raises(InputError, match=message):
            chosen(*words)


def test_of_a_table_the_best_rows_are_written_with_the_types_of_its_columns(predictor: Predictor, tmp_path) -> None:
    frame = pd.DataFrame({"smiles": ["C" * (1 + i % 7) + "O" for i in range(30)] + ["C1CC"], "id": range(31)})
    frame.to_parquet(tmp_path / "in.parquet", index=False, row_group_size=4)  # the best are in no order of its groups
    every = predict_table(predictor, tmp_path / "in.parquet", tmp_path / "all.parquet")
    selection = RowSelection(5, "gap_pred")
    best = predict_table(predictor, tmp_path / "in.parquet", tmp_path / "best.parquet", selection=selection)
    whole, found = pd.read_parquet(tmp_path / "all.parquet"), pd.read_parquet(tmp_path / "best.parquet")
    expected = whole.sort_values("gap_pred", ascending=False, kind="stable").head(5)
    pd.testing.assert_frame_equal(found, expected.reset_index(drop=True))
    assert (every.written, best.written) == (31, 5) and best.row_log.summary() == every.row_log.summary()


def test_a_column_without_numbers_ranks_no_rows(predictor: Predictor, tmp_path, monkeypatch) -> None:
    (tmp_path / "in.csv").write_text("smiles,lab,day\nCCO,B,\nCO,A,3\n")
    predict = partial(predict_table, predictor, tmp_path / "in.csv", tmp_path / "out.csv")
    assert predict(selection=RowSelection(top=1, by="day")).written == 1
    (tmp_path / "out.csv").unlink()
    with monkeypatch.context() as patch, pytest.raises(InputError, match="column 'lab' holds no numbers"):
        patch.setattr(Predictor, "predict_store", None)  # no row is scored before
        predict(selection=RowSelection(top=1, by="lab"))
    for by in ("error", "warning"):
        with pytest.raises(InputError, match=f"column '{by}' holds no numbers"):
            predict(selection=RowSelection(top=1, by=by))
    assert not (tmp_path / "out.csv").exists()


def test_a_number_of_workers_that_is_none_is_refused_before_anything_is_written(predictor, tmp_path, capsys) -> None:
    with pytest.raises(InputError, match="workers: expected a number of 0 or more, got -1"):
        predict_table(predictor, ["CCO"], "-", workers=-1)
    assert capsys.readouterr().out == ""


def test_a_table_is_never_written_over_its_input(predictor: Predictor, tmp_path) -> None:
    table, link, hard = (tmp_path / name for name in ("in.csv", "link.csv", "hard.csv"))
    table.write_text("smiles\nCCO\n")
    link.symlink_to(table)
    hard.hardlink_to(table)
    for out in (table, link, hard, str(tmp_path / "other" / ".." / "in.csv")):
        with pytest.raises(InputError, match=r"cannot write .*\.csv: it is read as input; give"):
            predict_table(predictor, table, out)
    assert table.read_text() == "smiles\nCCO\n"
