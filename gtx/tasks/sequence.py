"""A text that the model learns to write, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn

from gtx.data.columns import column_index
from gtx.errors import InputError
from gtx.schema import MappingOf, Record, anything, number, one_of, whole
from gtx.sequence import CHARACTERS, SMILES, Examples, Tokenizer, TokenVocabulary, Written, beam, greedy
from gtx.tasks.losses import smoothed_cross_entropy
from gtx.tasks.options import SequenceOptions, learned
from gtx.tasks.task import Metric, Task, fresh_columns
from gtx.tasks.teacher_forcing import count, count_all, metrics
from gtx.tasks.written import TextScores, WrittenTexts, canonical_smiles, scores

if TYPE_CHECKING:
    from pathlib import Path

    from gtx.data import MoleculeStore
    from gtx.data.ledger import Ledger
    from gtx.data.rows import Row
    from gtx.dataset import Dataset, File

TOKENIZERS = {"smiles": SMILES, "characters": CHARACTERS}
"""How a target text may be cut into tokens, by name."""
LONGEST = 10_000
"""The most tokens that a model may be asked to write."""


@dataclass(frozen=True)
class ToSequence(Task, SequenceOptions):
    """A text per molecule, learned by teacher forcing: every token given the true ones before it.

    The model maps a molecule and what was written so far to logits of the next token
    (`gtx.models.MoleculeToSequence`). A target in a store is the number of its text in `texts`.

    Args:
        targets: the name of the one target column.
        tokens: what a text is made of, one of `TOKENIZERS`.
        max_tokens: longer texts are errors.
        smoothing: of the loss, see `gtx.tasks.losses.smoothed_cross_entropy`.
        vocabulary, limit: learned of the training rows: the tokens, and how many are written at the most.
        texts: the different texts of the tables; no part of a model file.
        beams: 1 writes the likeliest token at every step, more follow as many beginnings, see `gtx.sequence.beam`; no
            part of a model file.

    Raises:
        InputError: not one target, or an option out of its range.
    """

    name: ClassVar[str] = "sequence"
    metrics: ClassVar[dict[str, Metric]] = {
        "molecule_accuracy": Metric("right molecule"),
        "exact_accuracy": Metric("right text"),
        "token_accuracy": Metric("right tokens"),
        "perplexity": Metric("perplexity", lower=True),
        "invalid": Metric("invalid SMILES", lower=True),
    }
    writes: ClassVar[bool] = True

    vocabulary: TokenVocabulary | None = learned()
    limit: int | None = learned()
    texts: Sequence[str] = learned()
    beams: int | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.targets) != 1:
            named = ", ".join(map(repr, self.targets)) or "none"
            raise InputError(f"task {self.name}: expected one target column, got {named}")
        if self.tokens not in TOKENIZERS:
            raise InputError(f"tokens: expected one of {', '.join(TOKENIZERS)}, got {self.tokens!r}")
        if not 1 <= self.max_tokens <= LONGEST:
            raise InputError(f"max_tokens: expected a number from 1 to {LONGEST:,}, got {self.max_tokens}")
        if self.beams is not None and self.beams < 1:
            raise InputError(f"beams: expected 1 or more, got {self.beams}")

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts a text into tokens."""
        return TOKENIZERS[self.tokens] if self.vocabulary is None else self.vocabulary.tokenizer

    @property
    def writes_smiles(self) -> bool:
        """Whether the texts are meant to be SMILES."""
        return self.tokenizer == SMILES

    @property
    def out_channels(self) -> int:
        return len(self.vocabulary)

    def settle(self, files: Sequence[File]) -> Self:
        (name,) = self.targets
        if not any(cell.strip() for cell in files[0].cells(name)):
            raise InputError(
                f"target column {name!r} is blank in all of the {len(files[0].rows)} rows; sequences were expected"
            )
        return replace(self, texts=sorted({cell.strip() for file in files for cell in file.cells(name)} - {""}))

    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        (name,) = self.targets
        place, number = column_index(columns, name), {text: i for i, text in enumerate(self.texts)}
        y = np.full((len(rows), 1), np.nan)
        for i, row in enumerate(rows):
            if row.error:
                continue
            cell = row.cells[place]
            if not cell.strip():
                ledger.warn(row.number, name, cell, "there is no sequence to learn; the row is only predicted")
            elif complaint := self._complaint(cell.strip()):
                ledger.error(row.number, name, cell, complaint, kind="with a bad target")
            else:
                y[i] = number[cell.strip()]
        return y

    def text(self, number: float) -> str:
        """The text of a target; empty if there is none."""
        return "" if np.isnan(number) else self.texts[int(number)]

    def fitted(self, train: MoleculeStore | Examples) -> Self:
        if self.vocabulary is not None or isinstance(train, Examples):
            return self
        own = replace(self, vocabulary=TokenVocabulary.of(self._texts(train), self.tokenizer))
        longest = int(own.examples(train).targets.sizes.max())
        # half as long again as any it has read
        return replace(own, limit=min(self.max_tokens, longest + max(10, longest // 2)))

    def labelled(self, store: MoleculeStore | Examples) -> MoleculeStore | Examples:
        return store if isinstance(store, Examples) else super().labelled(store)

    def examples(self, store: MoleculeStore | Examples) -> Examples:
        """Those whose text has no token that training lacks."""
        if isinstance(store, Examples):
            return store
        encoded = self.vocabulary.encode_all(self._texts(store))
        return Examples.of(store.subset(np.asarray(encoded.rows, np.int64)), encoded.sequences)

    def remarks(self, store: MoleculeStore) -> dict[int, str]:
        errors = self.vocabulary.encode_all(self._texts(store)).errors
        return {i: f"{reason}; no training row has it, so the model cannot write it" for i, reason in errors.items()}

    def forward(self, model: nn.Module, batch: Examples) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, labels, and the offsets of the sequences among them."""
        read, labels = batch.targets.teacher_forced()
        return model(batch.source, read), labels, read.ptr

    def training_loss(self, output: tuple[Tensor, Tensor, Tensor], batch: Examples) -> Tensor:
        logits, labels, _ = output
        return smoothed_cross_entropy(logits, labels, self.smoothing)

    def share(self, examples: Examples) -> int:
        """The number of labels: every token has the same say."""
        return len(examples.targets.items) + len(examples)

    def kept(self, output: tuple[Tensor, Tensor, Tensor], batch: Examples) -> Tensor:
        logits, labels, ptr = output
        return count(logits.float(), labels, ptr)

    def validation(self, val: MoleculeStore | Examples) -> Callable[[Tensor], dict[str, float]]:
        def found(counts: Tensor) -> dict[str, float]:
            scored = metrics(counts)
            return {**{f"val_{name}": value for name, value in scored.items()}, "val_score": scored["loss"]}

        return found

    @property
    def validated(self) -> tuple[str, ...]:
        return "token_accuracy", "perplexity"  # the others are of texts that are written, once, at the end

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        kinds = {"pred": str, "log_probability": float} | ({"valid": bool} if self.writes_smiles else {})
        return fresh_columns(taken, ((f"{self.targets[0]}_{kind}", held) for kind, held in kinds.items()))

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[Written]:
        (model,) = members
        if (self.beams or 1) == 1:
            return greedy(model, batch, self.limit)
        return [best[0] for best in beam(model, batch, self.limit, self.beams)]

    def decode(self, outputs: Sequence[Written], store: MoleculeStore) -> WrittenTexts:
        remarks = [[] if one.ended else [f"cut off at the limit of {self.limit} tokens"] for one in outputs]
        texts = [self.vocabulary.decode(one.tokens) for one in outputs]
        canonical = canonical_smiles(texts) if self.writes_smiles else None
        log_probability = np.array([one.log_probability for one in outputs], float)
        return WrittenTexts(
            texts, log_probability, canonical, remarks, np.array([not one.ended for one in outputs], bool)
        )

    def judge(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: WrittenTexts, rows: np.ndarray
    ) -> dict[str, Any]:
        part = store.subset(rows)
        teacher_forced = metrics(count_all(members[0], self.examples(part)))
        found: dict[str, Any] = {name: teacher_forced[name] for name in ("perplexity", "token_accuracy")}
        found |= scores(answers.counts(dict(zip(rows.tolist(), self._texts(part), strict=True))))
        return {**found, "per_target": {self.targets[0]: found}}

    def scores(self, columns: Sequence[str]) -> TextScores:
        return TextScores(self.targets[0], columns, self.limit)

    def write_report(self, path: Path, dataset: Dataset, answers: WrittenTexts, facts: dict[str, Any]) -> list[str]:
        from gtx.report import SequenceReport, write_sequence_report

        truth = self._texts(dataset.store)
        report = SequenceReport(
            **facts,
            metrics=self.metrics,
            target=self.targets[0],
            truth=truth,
            written=answers.texts,
            canonical=answers.canonical,
            right=answers.right(truth),
            tokens=len(self.vocabulary.tokens),
        )
        return write_sequence_report(path, report)

    def notes(self) -> list[str]:
        return [f"writes {len(self.vocabulary.tokens)} tokens, at most {self.limit} in a sequence"]

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name not in ("texts", "beams")}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        own = super().from_dict(plain)
        return replace(own, vocabulary=TokenVocabulary.from_dict(own.vocabulary))

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        kept = {"vocabulary": MappingOf(anything()), "limit": whole(1, LONGEST)}
        options = {"tokens": one_of(tuple(TOKENIZERS)), "max_tokens": whole(1, LONGEST), "smoothing": number(0, 1)}
        return Record(kept, options)

    def _texts(self, store: MoleculeStore) -> list[str]:
        return [self.text(number) for number in store.y[:, 0].tolist()]

    def _complaint(self, text: str) -> str | None:
        """Why a text cannot be learned; None if it can."""
        try:
            tokens = len(self.tokenizer.split(text))
        except InputError as reason:
            return str(reason)
        return f"has {tokens} tokens; the limit is {self.max_tokens}" if tokens > self.max_tokens else None
