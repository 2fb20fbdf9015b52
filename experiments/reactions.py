"""Barriers and rates from atom-mapped reaction SMILES, in published splits.

    GTX_DATA=../shared/data python -m experiments.reactions --models gtx-default chemprop
    GTX_DATA=../shared/data python -m experiments.reactions --sets lograte-components --models gtx-default
    python -m experiments.reactions --page     # prints the scores split by split, and paired differences

A set whose name ends with `-components` reads the reactants and the products as two molecules a row, in place of the
graph of the reaction; one that ends with a mode, such as `-reactants-difference`, has the codes of that mode. Files,
below `$GTX_DATA/reactions`: `lograte.csv` and `e2sn2.csv` with the columns reaction, y and split_0 to split_4 (Heid and
Green 2022, https://github.com/hesther/reactiondatabase), and `rdb7.csv.gz` with the column split, by reactant
(Spiekermann et al. 2022, https://github.com/heid-lab/reaction_database).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments import tables
from experiments.recipe import main, options_of
from experiments.runs import PublicSet
from experiments.summary import markdown
from experiments.tables import ROOT
from gtx.base.errors import InputError
from gtx.base.files import atomic_file
from gtx.molecules import Featuriser
from gtx.molecules.reactions import MODES, SIDES
from gtx.report.comparison import corrected_resampled_t
from gtx.training_data import DataSettings

COMPONENTS = "-components"


@dataclass(frozen=True, kw_only=True)
class ReactionSet(PublicSet):
    """A set of atom-mapped reactions, read in a mode."""

    mode: str = MODES[0]

    @property
    def file(self) -> Path:
        """Path of the table."""
        root = Path(os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
        name = f"{self.name}.csv.gz" if self.name == "rdb7" else f"{self.name}.csv"
        file = root / "reactions" / name
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
        made = ROOT / "runs" / self.folder / f"{self.name}.csv"
        with atomic_file(made, "w") as file:
            table.to_csv(file, index=False)
        featuriser = Featuriser(components=SIDES)
        return DataSettings(str(made), ("y",), split_column=self.splits[split], featuriser=featuriser)


FIVE_SPLITS = tuple(f"split_{k}" for k in range(5))
SPLITS = {"lograte": FIVE_SPLITS, "e2sn2": FIVE_SPLITS, "rdb7": ("split",)}
SETS: dict[str, PublicSet] = {}
for _name, _splits in SPLITS.items():
    SETS[_name] = ReactionSet(_name, "rmse", _splits, f"reactions-{_name}")
    SETS[_name + COMPONENTS] = ComponentSet(_name, "rmse", _splits, f"reactions-{_name}{COMPONENTS}")
    for _mode in MODES[1:]:
        SETS[f"{_name}-{_mode}"] = ReactionSet(_name, "rmse", _splits, f"reactions-{_name}-{_mode}", mode=_mode)


def page(out: Path) -> list[str]:
    """Write the scores of each split, and their paired differences to gtx's default on the same splits."""
    runs = [run for run in tables.runs(out) if run["folder"].startswith("reactions-")]
    ratio = {run["folder"]: run["rows"]["test"] / (run["rows"]["train"] + run["rows"]["val"]) for run in runs}
    lines = []
    for name in sorted({run["set"] for run in runs}):
        for metric in ("rmse", "mae"):
            rows = [(r["folder"], r["model"], r["split"], r["test"][metric]) for r in runs if r["set"] == name]
            frame = pd.DataFrame(rows, columns=["folder", "model", "split", "score"])
            scores = frame.pivot(index=["folder", "model"], columns="split", values="score")
            scores = scores.reindex(columns=SPLITS[name])
            gaps, cells = scores - scores.loc[f"reactions-{name}", "gtx-default"], []
            for (folder, model), each in scores.iterrows():
                known, gap = gaps.loc[folder, model].dropna().tolist(), ""
                if len(known) > 1 and any(known):
                    t = corrected_resampled_t(known, ratio[folder])
                    gap = f"{t.difference:+.3f} [{t.low:+.3f}, {t.high:+.3f}] on {len(known)}"
                texts = ["" if pd.isna(score) else f"{score:.3f}" for score in each]
                cells.append([folder.removeprefix("reactions-"), model, *texts, gap])
            heads = ["set and codes", "model", *map(str, range(len(SPLITS[name]))), "minus gtx-default"]
            align = "ll" + "r" * (len(heads) - 2)
            lines += ["", f"### {name}, test {metric.upper()}", "", *markdown(" | ".join(heads), align, cells)]
    return lines


if __name__ == "__main__":
    if "--page" in sys.argv:
        sys.argv.remove("--page")
        print(*page(options_of(__doc__).parse_args().out), sep="\n")
        sys.exit(0)
    sys.exit(main(__doc__, "experiments.reactions", SETS))
