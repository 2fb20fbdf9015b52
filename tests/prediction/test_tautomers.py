"""Averages over tautomers: every drawing of a molecule is predicted alike, and by its tautomers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gtx.cli import main
from gtx.errors import InputError
from gtx.molecules import Featuriser
from gtx.molecules.tautomers import enumerate_tautomers
from gtx.prediction import TautomerAveragingPredictor, load_predictor, predict_table

FILE = Path(__file__).parent / "golden" / "regression.gtx"
PAIRS = [
    ("Oc1ccccn1", "O=c1cccc[nH]1"),
    ("CC(=O)CC(C)=O", "CC(O)=CC(C)=O"),
    ("c1nc[nH]c1C", "c1[nH]cnc1C"),
    ("NC1=NC(=O)C=CN1", "N=C1NC=CC(=O)N1"),
]


@pytest.fixture(scope="module")
def model() -> TautomerAveragingPredictor:
    return TautomerAveragingPredictor(load_predictor(FILE, device="cpu"))


def test_tautomers_are_the_same_list_from_each_of_them() -> None:
    for one, other in PAIRS:
        first, second = (enumerate_tautomers(Featuriser(), text) for text in (one, other))
        assert first.texts == second.texts
        assert len(first.texts) > 1
        assert first.complete
        assert first.smiles != second.smiles
    ring = enumerate_tautomers(Featuriser(), "c1nc[nH]c1C")  # hydrogen on either nitrogen is as likely
    assert ring.best == 2 and set(ring.texts[:2]) == {"Cc1c[nH]cn1", "Cc1cnc[nH]1"}
    ketone = enumerate_tautomers(Featuriser(), "CC(O)=CC(C)=O")
    assert (ketone.texts[0], ketone.best) == ("CC(=O)CC(C)=O", 1)
    long = enumerate_tautomers(Featuriser(), "O=C1NC(=O)C2=C(N1)N=C(N2)CC(=O)CC(=O)CC(N)=O", most=5).texts
    assert len(long) == 5
    assert enumerate_tautomers(Featuriser(), " C[C@H](F)Cl").texts == [" C[C@H](F)Cl"]  # its text, with its centre
    assert enumerate_tautomers(Featuriser(), "C1CC").smiles is None


def test_both_drawings_get_the_mean_of_the_likeliest_tautomers_and_the_spread_of_all(
    model: TautomerAveragingPredictor,
) -> None:
    drawn = [smiles for pair in PAIRS for smiles in pair]
    found, plain = model.predict(drawn), model.predictor.predict(drawn)
    target = model.task.targets[0]
    averaged, alone = (each[f"{target}_pred"].to_numpy() for each in (found, plain))
    assert averaged[::2] == pytest.approx(averaged[1::2], abs=1e-5)
    assert abs(alone[::2] - alone[1::2]).max() > 1e-3
    for i, smiles in enumerate(drawn):
        tautomers = enumerate_tautomers(model.header.featuriser, smiles)
        each = model.predictor.predict(tautomers.texts)[f"{target}_pred"].to_numpy()
        assert averaged[i] == pytest.approx(each[: tautomers.best].mean(), abs=1e-5)
        assert found[f"{target}_tautomer_std"][i] == pytest.approx(each.std(), abs=1e-5)
        assert found["tautomers"][i] == len(tautomers.texts)


def test_rows_stay_in_order_and_those_without_other_tautomers_are_predicted_as_ever(
    model: TautomerAveragingPredictor, tmp_path: Path
) -> None:
    texts = ["CCO", "Oc1ccccn1", "C1CC", "c1ccccc1", "", "CCCl"]
    target = model.task.targets[0]
    table, out, alone = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "alone.csv"
    table.write_text("\n".join(["smiles,id", *(f"{text},{i}" for i, text in enumerate(texts))]))
    arguments = ["predict", str(FILE), str(table), "--device", "cpu"]
    assert main([*arguments, "--average", "tautomers", "--out", str(out)]) == 0
    assert main([*arguments, "--out", str(alone)]) == 0
    found, plain = pd.read_csv(out), pd.read_csv(alone)
    assert found["id"].tolist() == list(range(6))
    assert found["error"].equals(plain["error"])
    assert found["error"].notna().tolist() == [False, False, True, False, True, False]
    same = [0, 3, 5]
    assert found[f"{target}_pred"][same].to_numpy() == pytest.approx(plain[f"{target}_pred"][same].to_numpy(), abs=1e-5)
    assert found["tautomers"].tolist()[:2] == [1, 3]
    assert np.isnan(found["tautomers"][2])
    assert found[f"{target}_tautomer_std"][same].tolist() == [0, 0, 0]


@pytest.mark.slow
def test_workers_give_the_same(model: TautomerAveragingPredictor, tmp_path: Path) -> None:
    texts = [smiles for pair in PAIRS for smiles in pair] + ["C1CC"]
    outputs = [tmp_path / f"{workers}.csv" for workers in (0, 1)]
    for workers, out in enumerate(outputs):
        predict_table(model, texts, out, workers=workers)
    assert outputs[0].read_text() == outputs[1].read_text()


def test_what_has_no_average_is_refused(model: TautomerAveragingPredictor, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(FILE), "CCO", "--average", "tautomers", "--domain"]) == 2
    assert "cannot be combined with --members, --neighbours or --domain" in capsys.readouterr().err
    with pytest.raises(InputError, match="not of multiclass"):
        TautomerAveragingPredictor(load_predictor(FILE.with_name("multiclass.gtx"), device="cpu"))
    with pytest.raises(InputError, match="expected 1 or more, got 0"):
        TautomerAveragingPredictor(model.predictor, 0)
