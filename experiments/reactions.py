"""Reactions in the splits of Heid and Green (2022): barriers and rates from atom-mapped reaction SMILES.

    GTX_DATA=../shared/data python -m experiments.reactions --models gtx-default chemprop
    GTX_DATA=../shared/data python -m experiments.reactions --sets lograte-components --models gtx-default

A set whose name ends with `-components` reads the reactants and the products as two molecules a row, in place of the
graph of the reaction; one that ends with a mode, such as `-reactants-difference`, has the codes of that mode. Files:
https://github.com/hesther/reactiondatabase; each is `$GTX_DATA/reactions/<name>.csv` with the columns reaction, y and
split_0 to split_4.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments.recipe import main
from experiments.runs import PublicSet
from experiments.tables import ROOT
from gtx.base.errors import InputError
from gtx.base.files import whole_file
from gtx.molecules import Featuriser
from gtx.molecules.reactions import MODES, SIDES
from gtx.training_data import DataSettings

COMPONENTS = "-components"


@dataclass(frozen=True, kw_only=True)
class ReactionSet(PublicSet):
    """A set of atom-mapped reactions, read in a mode."""

    mode: str = MODES[0]

    @property
    def file(self) -> Path:
        """Path of the table.

        Raises:
            InputError: there is none.
        """
        root = Path(os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
        file = root / "reactions" / f"{self.name}.csv"
        if not file.is_file():
            raise InputError(f"expected the reactions in {file}; GTX_DATA names the folder of data sets")
        return file

    def data(self, split: int) -> DataSettings:
        column, featuriser = self.splits[split], Featuriser(reaction=self.mode)
        return DataSettings(
            str(self.file), ("y",), smiles_column="reaction", split_column=column, featuriser=featuriser
        )


class ComponentSet(ReactionSet):
    """A set of reactions whose reactants and products are two molecules a row."""

    def data(self, split: int) -> DataSettings:
        table = pd.read_csv(self.file, dtype=str)
        for side, texts in zip(SIDES, zip(*table["reaction"].str.split(">>"), strict=True), strict=True):
            table[side] = texts
        made = ROOT / "runs" / self.folder / self.file.name
        with whole_file(made, "w") as file:
            table.to_csv(file, index=False)
        featuriser = Featuriser(components=SIDES)
        return DataSettings(str(made), ("y",), split_column=self.splits[split], featuriser=featuriser)


SPLITS = tuple(f"split_{k}" for k in range(5))
SETS: dict[str, PublicSet] = {}
for _name in ("lograte", "e2sn2"):
    SETS[_name] = ReactionSet(_name, "rmse", SPLITS, f"reactions-{_name}")
    SETS[_name + COMPONENTS] = ComponentSet(_name, "rmse", SPLITS, f"reactions-{_name}{COMPONENTS}")
    for _mode in MODES[1:]:
        SETS[f"{_name}-{_mode}"] = ReactionSet(_name, "rmse", SPLITS, f"reactions-{_name}-{_mode}", mode=_mode)


if __name__ == "__main__":
    sys.exit(main(__doc__, "experiments.reactions", SETS))
