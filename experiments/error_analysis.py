"""The scores of a model on large and small test molecules, and on those near to and far from the training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from experiments import mat, scaffold
from experiments.model_comparison import shared_splits
from experiments.paired import SCORES, Split
from experiments.summary import ModelRuns
from gtx.molecules import MoleculeError, morgan_counts, read_smiles

SETS = {benchmark.folder: benchmark for benchmark in (*mat.SETS.values(), *scaffold.SETS.values())}
NEAR = (0.0, 0.3, 0.4, 0.5, 0.6, 1.0)
"""Bounds of similarity."""
FEWEST = 20
"""Test molecules a line must stand for."""


class SplitMolecules(NamedTuple):
    """The test molecules of one split.

    Attributes:
        atoms: heavy atoms of each.
        nearest: similarity of each to the nearest training molecule.
    """

    atoms: np.ndarray
    nearest: np.ndarray


class Line(NamedTuple):
    """Scores on some of the test molecules: which ones, how many, and a score per model."""

    title: str
    count: int
    scores: list[float]


def errors_by_kind(ours: ModelRuns, other: ModelRuns) -> list[Line]:
    """Scores of two models by size and by similarity, over the splits both were run on."""
    rows = {result["split"]: tuple(result["predictions"].rows) for result in ours.results}
    names = sorted(rows.keys() & {result["split"] for result in other.results})
    parts = shared_splits(ours._replace(results=[result for result in ours.results if result["split"] in names]), other)
    return by_kind(parts, [tested(ours.folder, name, rows[name]) for name in names], ours.metric)


def by_kind(parts: Sequence[Split], seen: Sequence[SplitMolecules], metric: str) -> list[Line]:
    """A line for each third of the test molecules by size, and for each step of similarity; runs are scored singly.

    Args:
        parts: the splits, two models on each.
        seen: their test molecules.
        metric: of `experiments.paired`.
    """
    ends = np.quantile(np.concatenate([one.atoms for one in seen]), (0, 1 / 3, 2 / 3, 1)).round().astype(int)
    kinds = []
    for low, high in zip(ends[:-1] + np.array([0, 1, 1]), ends[1:], strict=True):
        kinds.append((f"{low} to {high} heavy atoms", [(one.atoms >= low) & (one.atoms <= high) for one in seen]))
    for low, high in pairwise(NEAR):
        inside = [(one.nearest > low) & (one.nearest <= high) if low else one.nearest <= high for one in seen]
        kinds.append((f"similarity {low:g} to {high:g}", inside))
    found = []
    for title, masks in kinds:
        count = sum(int(mask.sum()) for mask in masks)
        if count >= FEWEST:
            both = ([(part.y, part.one) for part in parts], [(part.y, part.other) for part in parts])
            found.append(Line(title, count, [_score(each, masks, metric) for each in both]))
    return found


@cache
def tested(folder: str, split: str, rows: tuple[int, ...]) -> SplitMolecules:
    r"""The test molecules of a split of one of the sets: those of these rows of its table, from 0.

    Similarity is Tanimoto's of Morgan's counts (radius 2), \(\sum_k \min(a_k, b_k) / \sum_k \max(a_k, b_k)\).
    """
    from gtx.data import column_split, open_table
    from gtx.data.named_sets import load_set

    named = load_set(SETS[folder].name)
    table = open_table(named.path, named.smiles_column)
    column, lines = table.index(split), list(table.rows)
    learnt = column_split([line.cells[column] for line in lines])["train"]
    texts = {part: [lines[i].text for i in at] for part, at in (("train", learnt), ("test", rows))}
    texts["train"] = [text for text in texts["train"] if _readable(text)]  # no model learnt from the others
    counts = {part: morgan_counts(each, bits=1024).astype(np.int32) for part, each in texts.items()}
    total = counts["train"].sum(1)
    nearest = []
    for one in counts["test"]:
        common = np.minimum(one, counts["train"]).sum(1)
        nearest.append((common / np.maximum(one.sum() + total - common, 1)).max())
    atoms = [read_smiles(text).GetNumHeavyAtoms() for text in texts["test"]]
    return SplitMolecules(np.array(atoms), np.array(nearest))


def _readable(text: str) -> bool:
    try:
        read_smiles(text)
    except MoleculeError:
        return False
    return True


def _score(parts: Sequence[tuple[np.ndarray, np.ndarray]], chosen: Sequence[np.ndarray], metric: str) -> float:
    """The mean over splits, runs and targets; of targets that have both classes there."""
    score: Callable = SCORES[metric]
    each = [
        score(y[mask & known, t], run[mask & known, t], np.ones((1, int((mask & known).sum()))))[0]
        for (y, runs), mask in zip(parts, chosen, strict=True)
        for t in range(y.shape[1])
        for known in [~np.isnan(y[:, t])]
        if (mask & known).any()
        for run in runs
    ]
    return float(np.nanmean(each)) if np.isfinite(each).any() else float("nan")


def table(ours: ModelRuns, other: ModelRuns, titles: Mapping[str, str]) -> list[str]:
    """The lines in Markdown, `titles` by model."""
    found = errors_by_kind(ours, other)
    if not found:
        return []
    heads = " | ".join(titles[row.model] for row in (ours, other))
    lines = [
        "Scores by size, and by similarity to the nearest training molecule (Tanimoto of Morgan counts). "
        f"Groups of fewer than {FEWEST} molecules are left out.",
        "",
    ]
    lines += [f"| test molecules | number | {heads} |", "|---|--:|--:|--:|"]
    lines += [f"| {title} | {count:,} | {' | '.join(f'{s:.3f}' for s in scores)} |" for title, count, scores in found]
    return [*lines, ""]
