"""Each kind of table through every door: the command, the model in Python, the estimator and the service agree."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import gtx
from gtx.cli import main
from gtx.prediction import Predictor
from tests.serve.conftest import served
from tests.tables import TINY_ESTIMATOR, TINY_TRAIN, blanks, molecules, of_atoms, of_bonds, read

ROWS = 60
NEW = ["OCC=O", "CCN(C)C", "C1CC", "c1ccccc1F"]
"""Molecules to predict, one of which cannot be read."""
WORDS = [*TINY_TRAIN, "--epochs=2", "--blend=no", "--workers=0", "--split-sizes", "0.8", "0.2", "0"]
ESTIMATOR: dict[str, Any] = {**TINY_ESTIMATOR, "epochs": 2, "validation_fraction": 0.2, "workers": 0}
ESTIMATOR["settings"] = {**ESTIMATOR["settings"], "blend": "no"}


@dataclass(frozen=True)
class Kind:
    """A kind of table: columns beside its SMILES, the targets among them; words of `gtx train`; and its estimator."""

    columns: Callable[[list[str]], dict[str, list]]
    targets: tuple[str, ...]
    words: tuple[str, ...] = ()
    estimator: type[Any] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    molecules: tuple[str, ...] = ("smiles",)

    def table(self, smiles: list[str]) -> pd.DataFrame:
        """A table of some molecules; of several in a row, the others are the same in another order."""
        beside = {name: smiles[::-1] for name in self.molecules[1:]}
        readable = [text if Chem.MolFromSmiles(text) else "C" for text in smiles]
        return pd.DataFrame({self.molecules[0]: smiles, **beside, **self.columns(readable)})


def carbons(smiles: list[str]) -> list[int]:
    return [text.upper().count("C") for text in smiles]


REGRESSOR, CLASSIFIER, DEGREE = gtx.MoleculeRegressor, gtx.MoleculeClassifier, Chem.Atom.GetDegree
KINDS = {
    "values": Kind(lambda s: {"y": carbons(s)}, ("y",), estimator=REGRESSOR),
    "several targets with blanks": Kind(
        lambda s: {"y": blanks(carbons(s)), "z": [len(text) for text in s]}, ("y", "z"), estimator=REGRESSOR
    ),
    "bounds": Kind(
        lambda s: {"y": [f">{n - 1}" if i % 5 == 2 else n for i, n in enumerate(carbons(s))]},
        ("y",),
        ("--censored",),
        REGRESSOR,
        {"task_options": {"censored": True}},
    ),
    "classes": Kind(
        lambda s: {"y": ["inactive" if n < 6 else "active" for n in carbons(s)]}, ("y",), estimator=CLASSIFIER
    ),
    "several classes": Kind(
        lambda s: {"y": ["s" if n < 5 else "m" if n < 7 else "l" for n in carbons(s)]},
        ("y",),
        ("--task=multiclass",),
        CLASSIFIER,
    ),
    "lists of atoms": Kind(lambda s: {"q": of_atoms(s, DEGREE)}, ("q",), ("--task=atoms", "--sum-to=charge")),
    "classes of atoms": Kind(
        lambda s: {"q": of_atoms(s, lambda a: "ring" if a.IsInRing() else "chain")}, ("q",), ("--task=atom-classes",)
    ),
    "bonds": Kind(lambda s: {"b": of_bonds(s, Chem.Bond.GetBondTypeAsDouble)}, ("b",), ("--task=bonds",)),
    "molecules and atoms": Kind(
        lambda s: {"y": carbons(s), "q": of_atoms(s, DEGREE)}, ("y",), ("--atom-target-columns", "q")
    ),
    "extra features": Kind(
        lambda s: {"y": carbons(s), "temperature": [300 + len(text) for text in s], "q": of_atoms(s, DEGREE)},
        ("y",),
        ("--feature-columns", "temperature", "--atom-feature-columns", "q"),
        REGRESSOR,
        {"feature_columns": ["temperature"], "atom_feature_columns": ["q"]},
    ),
    "several molecules a row": Kind(
        lambda s: {"y": carbons(s)},
        ("y",),
        ("--smiles-columns", "one", "other", "--separate-encoders"),
        REGRESSOR,
        {"smiles_columns": ("one", "other"), "settings": ESTIMATOR["settings"] | {"separate_encoders": True}},
        ("one", "other"),
    ),
}


@dataclass(frozen=True)
class Trained:
    """A kind, its model from `gtx train`, and what `gtx predict` makes of new rows."""

    kind: Kind
    folder: Path
    model: Predictor
    new: pd.DataFrame

    def predicted(self, table: pd.DataFrame) -> list[dict[str, str]]:
        """Rows that `gtx predict` writes for a table."""
        source, out = self.folder / "in.csv", self.folder / "out.csv"
        table.to_csv(source, index=False)
        out.unlink(missing_ok=True)
        main(["predict", str(self.folder / "run" / "model.gtx"), str(source), f"--out={out}", "--workers=0"])
        return read(out)


@pytest.fixture(scope="module", params=KINDS)
def trained(request, tmp_path_factory) -> Trained:
    kind, folder = KINDS[request.param], tmp_path_factory.mktemp("doors")
    kind.table(list(molecules(ROWS).smiles)).to_csv(folder / "t.csv", index=False)
    words = ["train", str(folder / "t.csv"), "--target-columns", *kind.targets, f"--out={folder / 'run'}"]
    assert main([*words, *WORDS, *kind.words]) == 0
    model = gtx.load(folder / "run" / "model.gtx", "cpu")
    return Trained(kind, folder, model, kind.table(NEW))


def assert_same(one: object, other: object) -> None:
    """Compare two cells: numbers to seven digits, lists item by item, and texts."""
    if isinstance(one, str) and one.startswith("["):
        pairs = zip(json.loads(one), json.loads(str(other)), strict=True)
        for pair in pairs:
            assert_same(*pair)
        return
    try:
        assert float(str(one)) == pytest.approx(float(str(other)), rel=1e-6, abs=1e-7)
    except ValueError:
        assert str(one) == str(other)


def blank(cell: Any) -> Any:
    return "" if cell is None or cell != cell else cell


def test_the_command_the_model_and_the_service_answer_alike(trained: Trained) -> None:
    rows, names = trained.predicted(trained.new), list(trained.model.output_columns(trained.new.columns))
    frame = trained.model.predict(trained.new)
    bad = (trained.new[list(trained.kind.molecules)] == "C1CC").any(axis=1).tolist()
    assert names and [bool(row["error"]) for row in rows] == bad
    with served(trained.model) as client:
        body = client.table(trained.new.to_csv(index=False).encode()).body.decode()
    answered = list(csv.DictReader(io.StringIO(body)))
    for i, row in enumerate(rows):
        for name in names:
            assert_same(row[name], blank(frame[name][i]))
            assert_same(row[name], answered[i][name])
        assert row["error"] == answered[i]["error"] and row["error"].endswith(blank(frame["error"][i]))


def test_training_and_prediction_score_alike(trained: Trained) -> None:
    written, metrics = read(trained.folder / "run" / "predictions.csv"), trained.folder / "run" / "metrics.json"
    part = pd.DataFrame([row for row in written if row["split"] == "val"])
    names = list(trained.model.output_columns([]))
    for before, after in zip(part.to_dict("records"), trained.predicted(part.drop(columns=names)), strict=True):
        for name in names:
            assert_same(before[name], after[name])
    again = trained.model.predict_table(trained.folder / "in.csv", trained.folder / "scored.csv").metrics
    for target, scores in json.loads(metrics.read_text())["val"]["per_target"].items():
        for name, score in scores.items():
            found = again["per_target"][target][name]
            assert found == score or found == pytest.approx(score, rel=1e-6, abs=1e-9)


def test_the_estimator_answers_alike(trained: Trained) -> None:
    kind = trained.kind
    if kind.estimator is None:
        pytest.skip("targets of atoms and bonds have no estimator")
    table = pd.read_csv(trained.folder / "t.csv")
    new = trained.new[(trained.new[list(kind.molecules)] != "C1CC").all(axis=1)]
    beside = [name for option, names in kind.parameters.items() if "feature_columns" in option for name in names]
    inputs = [*kind.molecules, *beside]
    y = table[list(kind.targets)]
    estimator = kind.estimator(**ESTIMATOR | kind.parameters).fit(table[inputs], y if len(kind.targets) > 1 else y["y"])
    rows, X = trained.predicted(new), new[inputs]
    if kind.estimator is REGRESSOR:
        interval = estimator.predict_interval(X)
        answers = {"pred": estimator.predict(X), "low": interval[..., 0], "high": interval[..., 1]}
        for suffix, values in answers.items():
            for t, target in enumerate(kind.targets):
                wanted = [float(row[f"{target}_{suffix}"]) for row in rows]
                np.testing.assert_allclose(values.reshape(len(rows), -1)[:, t], wanted, rtol=1e-6)
        return
    classes, p = list(estimator.classes_), estimator.predict_proba(X)
    if len(classes) == 2:
        assert estimator.predict(X).tolist() == [row["y_class"] for row in rows]
        np.testing.assert_allclose(p[:, classes.index("active")], [float(row["y_pred"]) for row in rows], rtol=1e-6)
    else:
        assert estimator.predict(X).tolist() == [row["y_pred"] for row in rows]
        np.testing.assert_allclose(p, [[float(row[f"y_{name}"]) for name in classes] for row in rows], rtol=1e-6)
