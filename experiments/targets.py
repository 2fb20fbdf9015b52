"""Targets that are no plain numbers, and rows of several molecules, on real sets, beside what one would do without.

    python -m experiments.targets                  # all four, some ten minutes of one core
    python -m experiments.targets --kinds bounds   # one of them

Bounds: log solubilities (ESOL, scaffold split) of training and validation rows above -1.5 or below -5 are replaced by
`>-1.5` and `<-5`, as an assay of that range would report them; test rows keep their values, so that predictions beyond
the range can be judged. Shares: how the mass of a molecule of
ESOL divides between carbon, hydrogen and all other elements, which RDKit computes; the model gets no descriptors.
Components: free energies of solvation of 1,500 molecules of xtb9 (GFN2-xTB), each known in water or in octanol, at
random, so that a row is a solute and a solvent; predicted for both solvents of molecules in no training row. Together:
free energies of solvation in water and bond lengths (GFN2-xTB), and charges of atoms (Gasteiger), of 800 molecules of
xtb9, one model beside three. One seed, 20 epochs, the network alone.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges
from scipy.special import rel_entr

import gtx
from experiments.runs import read_set
from gtx.molecules import Featuriser
from gtx.tasks import (
    AtomRegression,
    BondRegression,
    FractionRegression,
    MoleculeAtomBondTask,
    Regression,
    Task,
)
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model

SETTINGS = TrainSettings(epochs=20, threads=1, accelerator="cpu", blend="no", progress=False)
LOW, HIGH = -5.0, -1.5
ELEMENTS = ("carbon", "hydrogen", "others")
SOLVENTS = {"water": "O", "octanol": "CCCCCCCCO"}


def predicted(table: pd.DataFrame, task: Task, descriptors: bool = True, columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Predict the test rows of a table by a model trained on the others.

    Args:
        table: with the columns `split` and `smiles`.
        task: what is learned.
        descriptors: whether the model reads descriptors.
        columns: columns of the molecules, if a row has several.
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
        train_model(data, SETTINGS, Path(folder, "run"), baselines=False, report=False)
        asked = table[table.split == "test"]
        asked = asked[[*columns]] if columns else asked.smiles
        return gtx.load(Path(folder, "run", "model.gtx"), device="cpu").predict(asked)


def bounds() -> list[dict]:
    """Compute the RMSE of test rows within the range and beyond it, by what training makes of values beyond."""
    table = read_set("scaffold/esol")
    y = table.columns[1]
    exact, test = table[y], table.split == "test"
    beyond = (exact < LOW) | (exact > HIGH)
    outside = beyond & ~test
    reported = exact.map(lambda v: f"<{LOW:g}" if v < LOW else f">{HIGH:g}" if v > HIGH else v)
    ways = {
        "all values known": (exact, {}),
        "bounds, `--censored`": (exact.where(~outside, reported), {"censored": True}),
        "bounds taken for values": (exact.where(~outside, exact.clip(LOW, HIGH)), {}),
        "bounds left out": (exact.where(~outside), {}),
    }
    rows = []
    for name, (cells, options) in ways.items():
        predictions = predicted(table.assign(**{y: cells}), Regression([y], **options))[f"{y}_pred"].to_numpy()
        error, far = predictions - exact[test].to_numpy(), beyond[test].to_numpy()
        rows.append({"way": name, "all": rms(error), "within": rms(error[~far]), "beyond": rms(error[far])})
    return rows


def shares() -> list[dict]:
    """Compute the mean Kullback-Leibler divergence of test rows; a share that is not positive counts as 0.0001."""
    table = read_set("scaffold/esol")[["smiles", "split"]]
    table[[*ELEMENTS]] = [mass_shares(smiles) for smiles in table.smiles]
    y = table[table.split == "test"][[*ELEMENTS]].to_numpy()
    names = [f"{name}_pred" for name in ELEMENTS]
    ways = {
        "`--task fractions`": predicted(table, FractionRegression(ELEMENTS), descriptors=False)[names].to_numpy(),
        "`--task regression`": predicted(table, Regression(ELEMENTS), descriptors=False)[names].to_numpy(),
        "the mean": np.tile(table[table.split == "train"][[*ELEMENTS]].mean(), (len(y), 1)),
    }
    rows = []
    for name, share in ways.items():
        divergence = float(rel_entr(y, np.maximum(share, 1e-4)).sum(1).mean())
        rows.append({"way": name, "divergence": divergence, "largest |sum - 1|": abs(share.sum(1) - 1).max()})
    return rows


def components() -> list[dict]:
    """Compute the RMSE of test rows in each solvent, kcal/mol."""
    table = read_xtb9(1500)
    test = table.split == "test"
    in_water = (np.random.default_rng(0).random(len(table)) < 0.5) & ~test
    beside = table[["smiles", "split"]].copy()
    for name in SOLVENTS:
        known = (in_water if name == "water" else ~in_water) | test
        beside[name] = table[f"solvation_{name}"].where(known)
    parts = [beside.rename(columns={name: "y"}).assign(solvent=solvent) for name, solvent in SOLVENTS.items()]
    pairs = pd.concat(parts, ignore_index=True)[["smiles", "solvent", "y", "split"]].dropna()
    together = predicted(beside, Regression([*SOLVENTS]))
    alone = [predicted(beside[["smiles", name, "split"]].dropna(), Regression([name])) for name in SOLVENTS]
    means = pairs[pairs.split == "train"].groupby("solvent").y.mean()
    ways = {
        "`--smiles-columns smiles solvent`": predicted(pairs, Regression(["y"]), columns=("smiles", "solvent")).y_pred,
        "a target column for each solvent": pd.concat([together[f"{name}_pred"] for name in SOLVENTS]),
        "a model for each solvent": pd.concat(
            [each[f"{name}_pred"] for name, each in zip(SOLVENTS, alone, strict=True)]
        ),
        "the mean": means[pairs.solvent[pairs.split == "test"]],
    }
    rows, asked = [], pairs[pairs.split == "test"]
    for way, values in ways.items():
        error = values.to_numpy() - asked.y.to_numpy()
        rows.append({"way": way} | {name: rms(error[asked.solvent == s]) for name, s in SOLVENTS.items()})
    return rows


def together() -> list[dict]:
    """Compute the RMSE of test rows: kcal/mol, e and Å."""
    table = read_xtb9(800)
    table["charge"] = [json.dumps(charges(smiles)) for smiles in table.smiles]
    table["length"] = [json.dumps(bond_lengths(*row)) for row in zip(table.smiles, table.coordinates, strict=True)]
    names = ["solvation_water", "charge", "length"]
    table = table[["smiles", "split", *names]]
    alone = Regression(names[0]), AtomRegression(names[1]), BondRegression(names[2])
    test = table[table.split == "test"]
    ways = {
        "one model": predicted(table, MoleculeAtomBondTask(tasks=alone)),
        "three models": pd.concat([predicted(table, task)[f"{task.targets[0]}_pred"] for task in alone], axis=1),
    }
    rows = []
    for way, found in ways.items():
        errors = {names[0]: found.solvation_water_pred.to_numpy() - test.solvation_water.to_numpy()}
        for name in names[1:]:
            lists = zip(found[f"{name}_pred"], test[name], strict=True)
            errors[name] = np.concatenate([np.subtract(json.loads(p), json.loads(y)) for p, y in lists])
        rows.append({"way": way} | {name: rms(error) for name, error in errors.items()})
    return rows


KINDS = {"bounds": bounds, "shares": shares, "components": components, "together": together}


def read_xtb9(rows: int) -> pd.DataFrame:
    """Read some rows of xtb9 in its random split."""
    table = read_set("xtb9").sample(rows, random_state=0)
    return table.rename(columns={"split_random": "split"}).reset_index(drop=True)


def rms(error: np.ndarray) -> float:
    """Compute the root mean square."""
    return float(np.sqrt(np.square(error).mean()))


def charges(smiles: str) -> list[float]:
    """Compute Gasteiger charges of the atoms, those of hydrogens with the atom that carries them, e."""
    mol = Chem.MolFromSmiles(smiles)
    ComputeGasteigerCharges(mol)
    properties = "_GasteigerCharge", "_GasteigerHCharge"  # of the atom, and of hydrogens that are no atoms here
    return [sum(map(atom.GetDoubleProp, properties)) for atom in mol.GetAtoms()]


def bond_lengths(smiles: str, coordinates: np.ndarray) -> list[float]:
    """Compute bond lengths, Å."""
    place = np.reshape(coordinates, (-1, 3))
    bonds = Chem.MolFromSmiles(smiles).GetBonds()
    return [float(np.linalg.norm(place[b.GetBeginAtomIdx()] - place[b.GetEndAtomIdx()])) for b in bonds]


def mass_shares(smiles: str) -> np.ndarray:
    """Divide the mass of a molecule between `ELEMENTS`."""
    mass = np.zeros(3)
    for atom in Chem.AddHs(Chem.MolFromSmiles(smiles)).GetAtoms():
        mass[{6: 0, 1: 1}.get(atom.GetAtomicNum(), 2)] += atom.GetMass()
    return mass / mass.sum()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    for kind in parser.parse_args().kinds:
        print(f"{kind}\n\n{pd.DataFrame(KINDS[kind]()).round(4).to_string(index=False)}\n", flush=True)
