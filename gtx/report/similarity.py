"""How similar the judged molecules are to the training molecules, on which their errors depend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gtx.report.context import RunReport
from gtx.report.words import PARTS, count

MOST_JUDGED, MOST_TRAINED = 1_000, 20_000  # of more molecules, as many are drawn at random: ten seconds of work at most
CHUNK = 100  # judged molecules at a time


@dataclass(frozen=True)
class Nearest:
    """The most similar training molecule of each judged one.

    Attributes:
        rows: int `[m]`, judged molecules, ascending.
        similarity: `[m]`, each one's Tanimoto similarity to the training molecule that is most similar to it.
    """

    rows: np.ndarray
    similarity: np.ndarray


def nearest(report: RunReport) -> Nearest:
    """Compare Morgan counts (radius 2, 2048 bits) of the judged molecules with those of the training molecules."""
    from gtx.molecules import morgan_counts

    judged, trained = _drawn(report)
    counts = (sparse.csr_array(morgan_counts([report.smiles[row] for row in rows])) for rows in (judged, trained))
    return Nearest(judged, nearest_tanimoto(*counts))


def nearest_tanimoto(counts: sparse.csr_array, others: sparse.csr_array) -> np.ndarray:
    r"""The highest Tanimoto similarity of every row of counts `[m, bits]` to a row of others `[n, bits]`, `[m]`.

    Of counts a and b it is \(\sum_k \min(a_k, b_k) / \sum_k \max(a_k, b_k)\), where min(a, b) is the number of levels
    1, 2, 3 and so on that both a and b reach: a product of sparse matrices of zeros and ones.
    """
    top = int(min(counts.max(), others.max()))
    ours, theirs = (
        sparse.hstack([matrix >= level for level in range(1, top + 1)], format="csr").astype(np.float32)
        for matrix in (counts, others)
    )
    sizes, sizes_of_others = (np.asarray(matrix.sum(axis=1, dtype=np.float64)) for matrix in (counts, others))
    best = []
    for start in range(0, len(sizes), CHUNK):
        shared = (ours[start : start + CHUNK] @ theirs.T).toarray()
        best.append((shared / (sizes[start : start + CHUNK, None] + sizes_of_others - shared)).max(axis=1))
    return np.concatenate(best)


def compared(report: RunReport) -> str:
    """Which molecules are compared, in words."""
    judged, trained = _drawn(report)
    words = []
    for part, drawn in ((report.judged, judged), ("train", trained)):
        whole = len(report.split[part])
        molecules = count(whole, f"{PARTS[part]} molecule")
        words.append(molecules if len(drawn) == whole else f"{len(drawn):,} of {molecules}, drawn at random,")
    return " with ".join(words).rstrip(",")


def _drawn(report: RunReport) -> tuple[np.ndarray, np.ndarray]:
    return _sample(report.split[report.judged], MOST_JUDGED), _sample(report.split["train"], MOST_TRAINED)


def _sample(rows: np.ndarray, most: int) -> np.ndarray:
    return np.sort(rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False))
