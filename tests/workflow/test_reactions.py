"""Reactions from a table like one of an electronic notebook, through every door."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import gtx
from gtx.cli import main
from gtx.explain import compute_attribution, explain_prediction
from gtx.molecules import Featuriser, murcko_scaffold
from gtx.prediction import Predictor
from gtx.prediction.folders import DataFramePredictor
from gtx.serve.tables import make_example, read_columns
from gtx.training_data import DataSettings, load_training_table
from tests.molecules.test_reactions import rewritten
from tests.tables import TINY_ESTIMATOR, TINY_TRAIN, read, write

ACIDS = ["C", "CC", "CCC", "c1ccccc1", "C1CC1", "ClC", "FC", "c1ccncc1"]
AGENTS = ["OS(=O)(=O)O", "", "[Na+].[Cl-]"]
COLUMNS = ["rxn", "reactants", "products", "solvent", "yield"]
SOLVENTS = ["CCO", "Cc1ccccc1", "ClCCl"]
MISSING, UNREADABLE, NO_ARROW = "CC(=O)O.CO>>CC(=O)OC", "nonsense>>C", "CCO"


def esterification(acid: str, alcohol: str) -> tuple[str, str]:
    """Write the mapped sides of an esterification; water is among the products."""
    first, second = Chem.MolFromSmiles(f"{acid}C(=O)O"), Chem.MolFromSmiles(f"{alcohol}CO")
    both = Chem.RWMol(Chem.CombineMols(first, second))
    for atom in both.GetAtoms():
        atom.SetAtomMapNum(atom.GetIdx() + 1)
    reactants, hydroxyl = Chem.MolToSmiles(both), first.GetNumAtoms() - 1
    both.RemoveBond(hydroxyl - 2, hydroxyl)
    both.AddBond(hydroxyl - 2, both.GetNumAtoms() - 1, Chem.BondType.SINGLE)
    for atom in both.GetAtoms():
        atom.SetNoImplicit(False)
        atom.SetNumExplicitHs(0)
    Chem.SanitizeMol(both)
    return reactants, Chem.MolToSmiles(both)


def notebook() -> list[list[str]]:
    rows = []
    for i, acid in enumerate(ACIDS):
        for j, alcohol in enumerate(ACIDS):
            reactants, products = esterification(acid, alcohol)
            rxn = f"{reactants}>{AGENTS[(i + j) % 3]}>{products}"
            rows.append([rxn, reactants, products, SOLVENTS[i * j % 3], str(50 + 5 * i - 3 * j)])
    reactants, products = (rewritten(">>".join(rows[3][1:3]), 1)).split(">>")
    rows.append([f"{reactants}>>{products}", reactants, products, rows[3][3], "42"])  # a duplicate, other numbers
    for bad in (MISSING, UNREADABLE, NO_ARROW):
        rows.append([bad, *f"{bad}>>".split(">>")[:2], "CCO", "33"])
    return rows


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("reactions") / "notebook.csv", notebook(), COLUMNS)


def trained(table: Path, out: Path, *words: str) -> Predictor:
    assert main(["train", str(table), "--target-columns", "yield", "--out", str(out), *words, *TINY_TRAIN]) == 0
    return gtx.load(out / "model.gtx")


def values(model: Predictor, reactions: list[Any]) -> np.ndarray:
    return model.predict(reactions)["yield_pred"].to_numpy(float)


@pytest.fixture(scope="module")
def model(table: Path) -> Predictor:
    return trained(table, table.parent / "run", "--reaction-column", "rxn")


def test_every_bad_reaction_names_row_and_atom(table: Path, model: Predictor, tmp_path) -> None:
    out = tmp_path / "p.csv"
    assert main(["predict", str(table.parent / "run" / "model.gtx"), str(table), "--out", str(out)]) == 0
    rows = read(out)
    errors = [row["error"] for row in rows if row["error"]]
    assert len(errors) == 3
    assert "row 66" in errors[0]
    assert "atom 0 (C) of the reactants" in errors[0]
    assert "(in the reactants)" in errors[1]
    assert "expected reactants>agents>products" in errors[2]
    assert all((row["yield_pred"] != "") != bool(row["error"]) for row in rows)
    told = [row for row in rows if "agents over the arrow are left out" in row["warning"]]
    assert len(told) == sum(bool(AGENTS[(i + j) % 3]) for i in range(8) for j in range(8))


def test_duplicates_stay_together_and_scaffolds_are_of_a_reactant(table: Path) -> None:
    featuriser = Featuriser(reaction="reactants-products", descriptors=False)
    for split in ("random", "scaffold"):
        settings = DataSettings(str(table), ("yield",), "rxn", split=split, featuriser=featuriser, workers=0)
        data = load_training_table(settings)
        assert data.duplicates.molecules == 1
        parts = [part for part, rows in data.split.items() for i in rows if data.smiles[i] == data.smiles[3]]
        assert parts in (["train"] * 2, ["val"] * 2, ["test"] * 2)
    owners = {(murcko_scaffold(data.smiles[i]), part) for part, rows in data.split.items() for i in rows}
    assert len(owners) == len({scaffold for scaffold, _ in owners}) == 4


def test_two_columns_agents_and_solvent(table: Path, tmp_path) -> None:
    columns = ["--reaction-columns", "reactants", "products", "--smiles-columns", "solvent"]
    model = trained(table, tmp_path / "two", *columns)
    rows = notebook()
    reactions = [(f"{row[1]}>>{row[2]}", row[3]) for row in rows[:3]]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    answers = DataFramePredictor(str(tmp_path / "two" / "model.gtx"))(frame)["yield_pred"]
    np.testing.assert_allclose(answers[:3].to_numpy(float), values(model, reactions), atol=1e-5)
    np.testing.assert_allclose(model.predict(frame)["yield_pred"][:3], answers[:3].to_numpy(float), atol=1e-5)
    assert (model.neighbours(frame, 1).groupby("reactants>>products").similarity.max() == 1).sum() > 50
    found = compute_attribution(model, reactions[1], draws=2)  # atoms of both sides and of the solvent
    assert np.isclose(found.prediction, answers[1], atol=1e-5) and found.atoms[-3:] == ["C8", "C9", "O10"]
    assert found.svg().count("<g transform") == 3
    assert len(next(iter(read_columns(model.header, make_example(model.header)).rows)).others) == 1
    other = [(rxn, "O") for rxn, _ in reactions]
    assert np.abs(values(model, other) - answers[:3].to_numpy(float)).min() > 0
    parts = ["--kernel-parts", "substructures", "descriptors", "foundation"]
    words = ["--reaction-column", "rxn", "--agents", "--split-sizes", "0.6", "0.2", "0.2", *parts]
    agents = trained(table, tmp_path / "agents", *words)
    with_agents, without = values(agents, [rows[0][0], f"{rows[0][1]}>>{rows[0][2]}"])
    assert abs(with_agents - without) > 1e-3


def test_other_doors(model: Predictor) -> None:
    reaction = notebook()[0][0]
    explanation = explain_prediction(model, reaction)
    assert explanation.svg().count("OS(=O)(=O)O") >= 1  # the agent over the arrow
    example = make_example(model.header)
    rows = list(read_columns(model.header, example).rows)
    assert np.isfinite(values(model, [row.text for row in rows])).all()
    estimator = gtx.MoleculeRegressor(reaction="reactants-difference-balanced", epochs=1, **TINY_ESTIMATOR)  # type: ignore[arg-type]
    texts = [row[0] for row in notebook()[:40]]
    estimator.fit(texts, np.arange(40.0))
    assert len(estimator.predict(texts[:3])) == 3
