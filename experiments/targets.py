"""Targets that are no plain numbers, and rows of several molecules, on real sets, beside what one would do without.

    python -m experiments.targets                  # all five, some ten minutes of one core
    python -m experiments.targets --kinds bounds   # one of them

Bounds: log solubilities (ESOL, scaffold split) of training and validation rows above -1.5 or below -5 are replaced by
`>-1.5` and `<-5`, as an assay of that range would report them; test rows keep their values, so that predictions beyond
the range can be judged. Counts: in how many of Tox21's twelve assays a molecule is active, of molecules measured in all
of them, in the scaffold split and in a random one with as many rows in each part. Shares: how the mass of a molecule of
ESOL divides between carbon, hydrogen and all other elements, which RDKit computes; the model gets no descriptors.
Components: free energies of solvation of 1,500 molecules of xtb9 (GFN2-xTB), each known in water or in octanol, at
random, so that a row is a solute and a solvent; predicted for both solvents of molecules in no training row. Together:
free energies of solvation in water and bond lengths (GFN2-xTB), and charges of atoms (Gasteiger), of 800 molecules of
xtb9, one model beside three. One seed, 20 epochs, the network alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

import gtx
from gtx.data.named_sets import load_set
from gtx.dataset import DataSettings
from gtx.molecules import Featuriser
from gtx.tasks import AtomRegression, BondRegression, Counts, MultiLevel, Regression, Shares, Task
from gtx.training import TrainSettings
from gtx.workflow import train

SETTINGS = TrainSettings(epochs=20, threads=1, accelerator="cpu", blend="no", progress=False)
LOW, HIGH = -5.0, -1.5
ELEMENTS = ("carbon", "hydrogen", "others")
SOLVENTS = {"water": "O", "octanol": "CCCCCCCCO"}


def predicted(table: pd.DataFrame, task: Task, descriptors: bool = True, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """The predictions for the test rows of a table, by a model trained on the others.

    Args:
        table: with the columns `split` and `smiles`.
        task: what is learned.
        descriptors: whether the model has those of the molecule.
        columns: those of the molecules, where a row has several.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, "table.csv")
        table.to_csv(file, index=False)
        data = DataSettings(
            str(file),
            task=task,
            split_column="split",
            workers=0,
            featuriser=Featuriser(descriptors=descriptors, components=columns),
        )
        train(data, SETTINGS, Path(folder, "run"), baselines=False, report=False)
        asked = table[table.split == "test"]
        asked = asked[[*columns]] if columns else asked.smiles
        return gtx.load(Path(folder, "run", "model.gtx"), device="cpu").predict(asked)


def bounds() -> pd.DataFrame:
    """RMSE of test rows within the range and beyond it, by what training makes of values beyond."""
    table = _set("esol")
    y = table.columns[1]
    judged = table[y][table.split == "test"].to_numpy()
    beyond = (judged < LOW) | (judged > HIGH)
    seen, exact = table.split == "test", table[y]
    outside = ~seen & ((exact < LOW) | (exact > HIGH))
    said = exact.map(lambda v: f"<{LOW:g}" if v < LOW else f">{HIGH:g}" if v > HIGH else v)
    ways = {
        "all values known": (exact, {}),
        "bounds, `--censored`": (exact.where(~outside, said), {"censored": True}),
        "bounds taken for values": (exact.where(~outside, exact.clip(LOW, HIGH)), {}),
        "bounds left out": (exact.where(~outside), {}),
    }
    rows = []
    for name, (cells, options) in ways.items():
        found = predicted(table.assign(**{y: cells}), Regression([y], **options))[f"{y}_pred"].to_numpy()
        parts = {"all": np.ones(len(judged), bool), "within": ~beyond, "beyond": beyond}
        rows.append({"way": name} | {part: _rmse(found[which] - judged[which]) for part, which in parts.items()})
    return pd.DataFrame(rows)


def counts() -> pd.DataFrame:
    """The mean Poisson deviance and the RMSE of test rows."""
    table = _set("tox21").drop_duplicates("smiles")
    assays = [name for name in table if name not in ("smiles", "split")]
    table = table[table[assays].notna().all(axis=1)]
    table = table.assign(active=table[assays].sum(axis=1).astype(int))[["smiles", "active", "split"]]
    shuffled = table.assign(split=np.random.default_rng(0).permutation(table.split))
    rows = []
    for split, rows_of in (("scaffold", table), ("random", shuffled)):
        y = rows_of.active[rows_of.split == "test"].to_numpy()
        ways = {
            "`--task counts`": predicted(rows_of, Counts(["active"])).active_pred.to_numpy(),
            "`--task regression`": predicted(rows_of, Regression(["active"])).active_pred.to_numpy(),
            "the mean": np.full(len(y), rows_of.active[rows_of.split == "train"].mean()),
        }
        for name, found in ways.items():
            scores = {"deviance": _deviance(found, y), "RMSE": _rmse(found - y), "least": found.min()}
            rows.append({"split": split, "way": name} | scores)
    return pd.DataFrame(rows)


def shares() -> pd.DataFrame:
    """The mean Kullback-Leibler divergence of test rows."""
    table = _set("esol")
    table = table.assign(**dict(zip(ELEMENTS, np.array([*map(_masses, table.smiles)]).T, strict=True)))
    table = table[["smiles", *ELEMENTS, "split"]]
    y = table[table.split == "test"][[*ELEMENTS]].to_numpy()
    mean = table[table.split == "train"][[*ELEMENTS]].mean().to_numpy()
    names = [f"{name}_pred" for name in ELEMENTS]
    ways = {
        "`--task shares`": predicted(table, Shares(ELEMENTS), descriptors=False)[names].to_numpy(),
        "`--task regression`": predicted(table, Regression(ELEMENTS), descriptors=False)[names].to_numpy(),
        "the mean": np.tile(mean, (len(y), 1)),
    }
    return pd.DataFrame(
        [
            {"way": name, "divergence": _divergence(found, y), "largest |sum - 1|": abs(found.sum(1) - 1).max()}
            for name, found in ways.items()
        ]
    )


def components() -> pd.DataFrame:
    """The RMSE of test rows in each solvent, kcal/mol."""
    table = pd.read_parquet(load_set("xtb9", download=False).path).sample(1500, random_state=0)
    table = table.rename(columns={"split_random": "split"}).reset_index(drop=True)
    in_water = (np.random.default_rng(0).random(len(table)) < 0.5) & (table.split != "test")
    parts = []
    for name, solvent in SOLVENTS.items():
        known = (in_water if name == "water" else ~in_water) | (table.split == "test")
        y = table[f"solvation_{name}"]
        parts.append(table[["smiles", "split"]].assign(solvent=solvent, y=y, known=y.where(known)))
    rows = pd.concat(parts, ignore_index=True)
    pairs = rows.dropna(subset="known")[["smiles", "solvent", "known", "split"]]
    beside = table[["smiles", "split"]].assign(
        **{name: part.known.to_numpy() for name, part in zip(SOLVENTS, parts, strict=True)}
    )
    test = rows[rows.split == "test"]
    alone = [predicted(beside[["smiles", name, "split"]].dropna(), Regression([name])) for name in SOLVENTS]
    ways = {
        "`--smiles-columns smiles solvent`": predicted(pairs, Regression(["known"]), columns=("smiles", "solvent")),
        "a target column for each solvent": predicted(beside, Regression([*SOLVENTS])),
        "a model for each solvent": pd.concat(alone, axis=1),
        "the mean": pairs[pairs.split == "train"].groupby("solvent").known.mean()[test.solvent],
    }
    found = []
    for way, answers in ways.items():
        if way.startswith("a "):
            answers = pd.concat([answers[f"{name}_pred"] for name in SOLVENTS])
        elif "known_pred" in answers:
            answers = answers.known_pred
        error = answers.to_numpy() - test.y.to_numpy()
        found.append({"way": way} | {name: _rmse(error[test.solvent == s]) for name, s in SOLVENTS.items()})
    return pd.DataFrame(found)


def together() -> pd.DataFrame:
    """RMSE of test rows: kcal/mol, e and Å."""
    table = pd.read_parquet(load_set("xtb9", download=False).path).sample(800, random_state=0)
    table = table.rename(columns={"split_random": "split"}).reset_index(drop=True)
    table["charge"] = [json.dumps(_charges(smiles)) for smiles in table.smiles]
    table["length"] = [json.dumps(_lengths(*row)) for row in zip(table.smiles, table.coordinates, strict=True)]
    names = ["solvation_water", "charge", "length"]
    table = table[["smiles", "split", *names]]
    alone = Regression(names[0]), AtomRegression(names[1]), BondRegression(names[2])
    test = table[table.split == "test"]
    ways = {
        "one model": predicted(table, MultiLevel(parts=alone)),
        "three models": pd.concat([predicted(table, task)[f"{task.targets[0]}_pred"] for task in alone], axis=1),
    }
    rows = []
    for way, found in ways.items():
        errors = [found.solvation_water_pred.to_numpy() - test.solvation_water.to_numpy()]
        for name in names[1:]:
            lists = zip(found[f"{name}_pred"], test[name], strict=True)
            errors.append(np.concatenate([np.subtract(json.loads(p), json.loads(y)) for p, y in lists]))
        rows.append({"way": way} | {name: _rmse(error) for name, error in zip(names, errors, strict=True)})
    return pd.DataFrame(rows)


KINDS: dict[str, Callable[[], pd.DataFrame]] = {
    "bounds": bounds,
    "counts": counts,
    "shares": shares,
    "components": components,
    "together": together,
}


def _set(name: str) -> pd.DataFrame:
    return pd.read_csv(load_set(f"scaffold/{name}", download=False).path)


def _rmse(error: np.ndarray) -> float:
    return float(np.sqrt(np.square(error).mean()))


def _deviance(found: np.ndarray, y: np.ndarray) -> float:
    """Of rates; one that is not positive, as a regression may give, counts as 0.01."""
    found = np.maximum(found, 0.01)
    log = np.log(np.where(y > 0, y, 1) / found)
    return float(2 * np.mean(y * log - y + found))


def _divergence(found: np.ndarray, y: np.ndarray) -> float:
    """Of shares; one that is not positive counts as 0.0001."""
    found = np.maximum(found, 1e-4)
    return float(np.mean(np.sum(np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / found), 0), axis=1)))


def _charges(smiles: str) -> list[float]:
    mol = Chem.MolFromSmiles(smiles)
    ComputeGasteigerCharges(mol)
    properties = "_GasteigerCharge", "_GasteigerHCharge"  # of the atom, and of hydrogens that are no atoms here
    return [sum(map(atom.GetDoubleProp, properties)) for atom in mol.GetAtoms()]


def _lengths(smiles: str, coordinates: np.ndarray) -> list[float]:
    place = np.reshape(coordinates, (-1, 3))
    bonds = Chem.MolFromSmiles(smiles).GetBonds()
    return [float(np.linalg.norm(place[b.GetBeginAtomIdx()] - place[b.GetEndAtomIdx()])) for b in bonds]


def _masses(smiles: str) -> np.ndarray:
    atoms = Chem.AddHs(Chem.MolFromSmiles(smiles)).GetAtoms()
    mass = np.zeros(3)
    for atom in atoms:
        mass[{6: 0, 1: 1}.get(atom.GetAtomicNum(), 2)] += atom.GetMass()
    return mass / mass.sum()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    for kind in parser.parse_args().kinds:
        print(f"{kind}\n\n{KINDS[kind]().round(4).to_string(index=False)}\n", flush=True)
