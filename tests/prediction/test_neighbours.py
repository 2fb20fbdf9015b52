"""The nearest training molecules: by definition, beside answers, and kept in the model file; scores of known ones."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import DataStructs
from scipy.stats import spearmanr

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import featurise
from gtx.molecules import Featuriser, read_smiles
from gtx.molecules.descriptors import GetMorganGenerator
from gtx.prediction import Predictor, foundation, predict_table
from gtx.prediction.domain import Neighbours, TrainingRows
from tests.tables import GOLDEN, molecules, read

FILE = str(GOLDEN / "neighbours.gtx")
NAMES = ["similarity"]
NAMES += [f"neighbour_{k}{end}" for k in (1, 2) for end in ("", "_similarity", "_solvation_water")]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return gtx.load(FILE, device="cpu")


def rows(smiles: list[str], **values: list[str]) -> TrainingRows:
    return TrainingRows.sample(smiles, range(1, len(smiles) + 1), values)


def test_the_nearest_are_about_those_of_rdkits_morgan_counts() -> None:
    smiles = molecules(80)["smiles"].tolist()
    near = Neighbours(rows(smiles[:60]), Featuriser())
    place, similarity = near.nearest(featurise(Featuriser(), smiles[60:], workers=0).store, 60)
    generator = GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    counts = [generator.GetSparseCountFingerprint(read_smiles(one)) for one in smiles]
    expected = np.array([DataStructs.BulkTanimotoSimilarity(one, counts[:60]) for one in counts[60:]])
    ours = np.take_along_axis(similarity, place.argsort(1), 1)
    assert spearmanr(ours.max(1), expected.max(1)).statistic > 0.85  # whose atoms are told apart by a ring too
    assert (ours.argmax(1) == expected.argmax(1)).mean() > 0.6
    assert (np.diff(similarity, axis=1) <= 0).all() and 0 <= similarity.min() <= similarity.max() <= 1


def test_a_molecule_is_its_own_nearest_however_it_is_written() -> None:
    near = Neighbours(rows(["CCO", "no molecule", "c1ccccc1O"]), Featuriser())
    place, similarity = near.nearest(featurise(Featuriser(), ["Oc1ccccc1", "OCC"], workers=0).store, 5)
    assert place.tolist() == [[2, 0], [0, 2]] and similarity[:, 0].tolist() == [1, 1] and similarity.max(0)[1] < 1


def test_a_model_names_them_with_what_was_measured(model: Predictor) -> None:
    kept = model.header.training
    with pytest.warns(UserWarning, match="1 of 3 SMILES cannot be used; the first is number 1, .*no neighbours"):
        found = model.neighbours([kept.smiles[3], "C1CC", "CCO"], 2)
    assert list(found) == ["smiles", "neighbour", "row", "similarity", "solvation_water"] and len(found) == 4
    assert found.neighbour[0] == kept.smiles[3] and found.row[0] == kept.rows[3] and found.similarity[0] == 1
    assert found.solvation_water[0] == float(kept.values["solvation_water"][3])
    assert found.smiles.tolist() == [kept.smiles[3]] * 2 + ["CCO"] * 2
    assert len(model.neighbours("CCO", 1000)) == len(kept)
    with pytest.raises(InputError, match="expected 1 or more neighbours, got 0"):
        model.neighbours("CCO", 0)


def test_a_file_without_rows_says_so(model: Predictor, capsys) -> None:
    with pytest.raises(InputError, match="contains no training rows"):
        model.with_header(replace(model.header, training=None)).neighbours("CCO")
    with pytest.raises(InputError, match="training: no molecule of the training rows in the model file can be read"):
        model.with_header(replace(model.header, training=rows(["C1CC"], y=["1"]))).with_neighbours()
    assert main(["predict", str(GOLDEN / "regression.gtx"), "CCO", "--neighbours", "2"]) == 2
    assert capsys.readouterr().err.startswith("gtx: this model file contains no training rows")


def test_they_stand_beside_predictions(model: Predictor, tmp_path) -> None:
    kept = model.header.training
    table = pd.DataFrame({"smiles": [kept.smiles[0], "C1CC", "CCO"], "similarity": ["a", "b", "c"]})
    table.to_csv(tmp_path / "in.csv", index=False)
    words = ["predict", FILE, str(tmp_path / "in.csv"), "--neighbours", "2"]
    assert main([*words, "--device=cpu", "--out", str(tmp_path / "out.csv")]) == 0
    first, broken, other = read(tmp_path / "out.csv")
    assert list(first)[-9:] == ["similarity1", *NAMES[1:], "error", "warning"] and first["similarity"] == "a"
    assert first["similarity1"] == first["neighbour_1_similarity"] == "1" and first["neighbour_1"] == kept.smiles[0]
    assert not any(broken[name] for name in ("similarity1", *NAMES[1:])) and broken["error"]
    near = model.neighbours("CCO", 2)
    assert [other["neighbour_1"], other["neighbour_2"]] == near.neighbour.tolist()
    assert float(other["neighbour_2_solvation_water"]) == near.solvation_water[1]
    predict_table(model.with_neighbours(2), tmp_path / "in.csv", tmp_path / "out.parquet")
    typed = pd.read_parquet(tmp_path / "out.parquet")
    assert typed["neighbour_1_solvation_water"].dtype.kind == "f" and typed["neighbour_1"].isna().tolist() == [0, 1, 0]


def test_of_few_rows_there_are_as_many_as_there_are(model: Predictor) -> None:
    few = model.with_header(replace(model.header, training=rows(["CCO"], class_=["active"])))
    beside = few.with_neighbours(2)
    store = featurise(model.header.featuriser, ["CCO", "CCN"], workers=0).store
    answers = pickle.loads(pickle.dumps(beside.predict_store(store)))  # as from a worker process
    columns = dict(zip(beside.output_columns(["smiles"]), answers.columns(), strict=True))
    assert columns["neighbour_1_class_"].tolist() == ["active"] * 2 and columns["neighbour_2"].tolist() == [None] * 2
    assert np.isnan(columns["neighbour_2_similarity"]).all() and answers.finite.all()
    with pytest.raises(InputError, match="neighbours: expected 1 to 1000, got 0"):
        model.with_neighbours(0)


def test_of_many_rows_some_are_kept_always_the_same() -> None:
    many = [f"{'C' * n}O" for n in range(1, 31)]
    kept, again = (TrainingRows.sample(many, range(30), {"y": list(map(str, range(30)))}, most=10) for _ in range(2))
    assert kept == again and len(kept) == 10 and kept.describe() == "10 of 30, drawn at random, with SMILES and values"
    assert [many[i] for i in kept.rows] == kept.smiles and kept.column("y").tolist() == kept.rows
    assert TrainingRows.from_dict(kept.to_dict()) == kept
    with pytest.raises(InputError, match="got 9 of y"):
        TrainingRows.from_dict(kept.to_dict() | {"values": {"y": ["1"] * 9}})
    large = TrainingRows.sample(["C" * 990] * 2000, range(2000), {"y": ["1"] * 1999 + ["1" * 10**6]})
    assert 1000 < len(large) < 1100 and large.trained == 2000 and "drawn at random" in large.describe()
    assert TrainingRows.from_dict(large.to_dict()) == large
    for name, wrong in {"smiles": [None] * 10, "rows": [-1] * 10, "values": [], "trained": 10**400}.items():
        with pytest.raises(InputError, match=rf"training\.{name}"):
            TrainingRows.from_dict(kept.to_dict() | {name: wrong})


# --- Scores of a table say how many of its molecules trained the model.


NEW = ["CCCCCCCCCCCC", "FC(F)(F)CCBr", "OCCOCCOCCO"]


def table(model: Predictor, path: Path, trained: int, new: int) -> Path:
    kept = model.header.training.smiles[:trained]

    values = [str(i / 7) for i in range(trained + new)]
    pd.DataFrame({"smiles": [*kept, *NEW[:new]], "solvation_water": values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.usefixtures("forks")
def test_the_others_are_scored_alone(model: Predictor, tmp_path, workers: int) -> None:
    both = model.predict_table(table(model, tmp_path / "t.csv", 5, 3), tmp_path / "p.csv", workers=workers)
    frame = pd.read_csv(tmp_path / "t.csv")
    frame.tail(3).to_csv(tmp_path / "new.csv", index=False)
    alone = model.predict_table(tmp_path / "new.csv", tmp_path / "p.csv")
    said = both.overlap
    assert str(said) == "the model was trained on 5 of these 8 molecules; the other 3 alone:"
    (ours,), (theirs,) = said.metrics["per_target"].values(), alone.metrics["per_target"].values()
    assert ours == pytest.approx(theirs) and said.metrics != both.metrics and alone.overlap is None


def test_it_is_printed_below_the_scores(model: Predictor, tmp_path, capsys) -> None:
    for trained, new, words in ((4, 2, "; the other 2 alone:"), (4, 0, ": the scores do not apply to new molecules")):
        words = f"the model was trained on 4 of these {trained + new} molecules{words}"
        file, out = table(model, tmp_path / "t.csv", trained, new), tmp_path / "p.csv"
        assert main(["predict", FILE, str(file), "--out", str(out)]) == 0
        lines = capsys.readouterr().err.splitlines()
        at = lines.index(words)
        assert lines[at - 1].startswith("solvation_water: rmse")
        assert [line.split(",")[0][:21] for line in lines[at + 1 :]] == ["solvation_water: rmse"] * bool(new)


def test_nothing_false_is_said(model: Predictor, tmp_path) -> None:
    file, out = table(model, tmp_path / "t.csv", 3, 1), tmp_path / "p.csv"
    training = model.header.training
    few = model.with_header(replace(model.header, training=replace(training, trained=10**6)))
    assert str(few.predict_table(file, out).overlap).startswith("the model was trained on at least 3 of these 4 mol")
    bare = model.with_header(replace(model.header, training=None))
    assert "contains no training rows: on how many of these 4 molecules" in str(bare.predict_table(file, out).overlap)
    table(model, tmp_path / "new.csv", 0, 3)
    assert model.predict_table(tmp_path / "new.csv", out).overlap is None
    kept = f"which contains {len(training)} of the 1,000,000 training rows"
    none = few.predict_table(tmp_path / "new.csv", out).overlap
    assert str(none) == f"none of these 3 molecules is in the model file, {kept}" and none.metrics is None
    pd.read_csv(file)[["smiles"]].to_csv(tmp_path / "bare.csv", index=False)
    assert model.predict_table(tmp_path / "bare.csv", out).overlap is None  # no scores, so nothing beside them
    beside = gtx.prediction.predict_table(model.with_neighbours(1), file, out)
    assert beside.overlap.trained == 3


def test_a_molecule_whose_neutral_parent_cannot_be_read_has_no_scaffold() -> None:
    assert foundation.identity("[SbH6+3]") == ("[SbH9]", "")  # of Tox21
    assert foundation.identity("OCC") == ("CCO", "") and foundation.identity("nonsense") == ("", "")
