"""Texts that were written, and how good they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gtx.data import featurise
from gtx.data.rows import Row
from gtx.molecules import Featuriser


@dataclass(frozen=True)
class WrittenTexts:
    """A text for each of m molecules.

    Attributes:
        texts: what was written.
        log_probability: float64 `[m]`, of each, by the model.
        canonical: canonical SMILES, None where a text is no SMILES; None altogether where it is not meant to be one.
        remarks: per molecule, what there is to warn of.
        cut: bool `[m]`, which ran into the limit.
    """

    texts: list[str]
    log_probability: np.ndarray
    canonical: list[str | None] | None
    remarks: list[list[str]]
    cut: np.ndarray

    @property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules that a text could be written for."""
        return np.isfinite(self.log_probability)

    def columns(self) -> list[np.ndarray]:
        """As `ToSequence.output_columns` names them; None and NaN for a molecule that is not `finite`."""
        given = [self.texts]
        if self.canonical is not None:
            given.append([smiles is not None for smiles in self.canonical])
        texts, *valid = (np.where(self.finite, np.array(one, object), None) for one in given)
        return [texts, np.where(self.finite, self.log_probability, np.nan), *valid]

    def right(self, truth: Sequence[str]) -> list[bool]:
        """Whether each is as it should be: the same molecule however it is written, or, if no SMILES, the same text."""
        if self.canonical is None:
            return self.exact(truth)
        wanted = canonical_smiles(truth)
        return [a is not None and a == b for a, b in zip(self.canonical, wanted, strict=True)]

    def exact(self, truth: Sequence[str]) -> list[bool]:
        """Whether each is as it should be to the letter."""
        return [a == b for a, b in zip(self.texts, truth, strict=True)]

    def counts(self, truth: Mapping[int, str]) -> Counter[str]:
        """What `scores` are made of; `truth` by molecule, as far as it is known."""
        rows = list(truth)
        part = self.subset(rows)
        found = Counter(sequences=len(rows), exact_accuracy=sum(part.exact(list(truth.values()))))
        if self.canonical is not None:
            found.update(molecule_accuracy=sum(part.right(list(truth.values()))), invalid=part.canonical.count(None))
        return found

    def subset(self, rows: Sequence[int]) -> WrittenTexts:
        """Those of the molecules `rows`."""
        rows = list(rows)
        canonical = None if self.canonical is None else [self.canonical[i] for i in rows]
        texts, remarks = [self.texts[i] for i in rows], [self.remarks[i] for i in rows]
        return WrittenTexts(texts, self.log_probability[rows], canonical, remarks, self.cut[rows])


def scores(counts: Counter[str]) -> dict[str, Any]:
    """Out of `WrittenTexts.counts`: `exact_accuracy`, the share of texts that are right to the letter; of SMILES also
    `molecule_accuracy`, the share that is the right molecule, and `invalid`, how many are none. None of no texts."""
    total = counts["sequences"]
    shares = {name: n / total if total else None for name, n in counts.items() if name.endswith("accuracy")}
    return shares | ({"invalid": counts["invalid"] if total else None} if "invalid" in counts else {})


@dataclass
class TextScores:
    """Texts beside the true ones, as far as the table holds them, and how many are no good; counts alone are kept.

    Args:
        target: the name of the column.
        columns: of the table.
        limit: tokens at which a text is cut off.
    """

    target: str
    columns: Sequence[str]
    limit: int
    written: int = 0
    cut: int = 0
    invalid: int | None = None
    found: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[Row], answers: WrittenTexts) -> None:
        """Take in some rows and what was written for them."""
        self.written += len(answers.texts)
        self.cut += int(answers.cut.sum())
        if answers.canonical is not None:
            self.invalid = (self.invalid or 0) + answers.canonical.count(None)
        if self.columns.count(self.target) == 1:
            at = self.columns.index(self.target)
            truth = {i: row.cells[at].strip() for i, row in enumerate(rows)}
            self.found.update(answers.counts({i: text for i, text in truth.items() if text}))

    def metrics(self) -> dict[str, Any] | None:
        """As in `metrics.json`; None without a single true text."""
        if not self.found["sequences"]:
            return None
        found = scores(self.found)
        return {**found, "per_target": {self.target: found}}

    def notes(self) -> list[str]:
        """How many texts are no SMILES, and how many were cut off."""
        words = []
        if self.invalid is not None:
            words.append(f"{self.invalid} {'is' if self.invalid == 1 else 'are'} no valid SMILES")
        if self.cut:
            words.append(f"{self.cut} ran into the limit of {self.limit} tokens")
        return [f"of {self.written} sequences written, {', '.join(words)}"] if words else []


def canonical_smiles(texts: Sequence[str]) -> list[str | None]:
    """Canonical SMILES, None for what is none."""
    return featurise(Featuriser(descriptors=False), texts, workers=0).smiles
