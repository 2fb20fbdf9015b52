"""Sequences: texts generated from molecules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.base.schema import Entries, check, entries, integer, number, one_of
from gtx.data import PairBudgetSampler, featurise
from gtx.data.rows import Row, find_column, find_columns
from gtx.molecules import Featuriser
from gtx.sequence.model import GeneratedSequence, MoleculeToSequenceModel, beam_search, greedy_search
from gtx.sequence.options import SequenceOptions
from gtx.sequence.sequences import CHARACTER_TOKENIZER, SMILES_TOKENIZER, SequenceDataset, Tokenizer, TokenVocabulary
from gtx.settings import learned
from gtx.tasks.columns import BAD_TARGET, Columns, TargetCells
from gtx.tasks.metrics import Metric, smoothed_cross_entropy
from gtx.tasks.task import AnswerRules, Answers, Objective, Task, fresh_columns

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.data.rows import InputFile, RowLog


# --- Scores of teacher-forced sequences.

PAIRS = 50_000
"""Budget of a batch in pairs of tokens or atoms."""


def count(logits: Tensor, labels: Tensor, ptr: Tensor) -> Tensor:
    """Compute the sums behind `metrics`, for each of B sequences.

    Args:
        logits: `[N, V]`, of each step after the true ones (teacher forcing).
        labels: true tokens, int64 `[N]`, the ends included.
        ptr: int64 `[B + 1]`; sequence b has the labels `ptr[b]` to `ptr[b + 1]`, one at least.

    Returns:
        float64 `[B, 3]`: the sum of -ln p of the labels, their number, and the number that are the likeliest token.
    """
    surprise = -logits.detach().log_softmax(-1).gather(1, labels[:, None]).squeeze(1)
    right = logits.argmax(-1) == labels
    each = torch.stack([surprise.double(), torch.ones_like(surprise).double(), right.double()], 1)
    owner = torch.repeat_interleave(ptr.diff())
    return each.new_zeros(len(ptr) - 1, 3).index_add_(0, owner, each)


@torch.inference_mode()
def count_all(model: nn.Module, examples: SequenceDataset) -> Tensor:
    """Call `count` for every example, `[M, 3]`, on the model's device and in evaluation mode."""
    device = next(model.parameters()).device
    examples, counts = examples.to(device), torch.zeros(len(examples), 3, dtype=torch.float64)
    for rows in PairBudgetSampler(examples.sizes, PAIRS, shuffle=False).batches():
        batch = examples.batch(rows.to(device))
        read, labels = batch.targets.teacher_forced()
        counts[rows] = count(model(batch.source, read), labels, read.ptr).cpu()
    return counts


def metrics(counts: Tensor) -> dict[str, float | None]:
    r"""Score teacher-forced sequences from what `count` returns, `[n, 3]`; None without sequences.

    `loss` is the mean of \(-\ln p\) per label, in nats; `perplexity` its exponential, at least 1; `token_accuracy` the
    share of labels that are the likeliest token; `sequence_accuracy` the share of sequences of which all are, which
    greedy decoding generates exactly.
    """
    names = ("loss", "perplexity", "token_accuracy", "sequence_accuracy")
    if len(counts) == 0:
        return dict.fromkeys(names)
    surprise, labels, right = counts.sum(0).tolist()
    loss = surprise / labels
    sequences = float((counts[:, 2] == counts[:, 1]).double().mean())
    return dict(zip(names, (loss, math.exp(min(loss, 700.0)), right / labels, sequences), strict=True))


# --- Generated texts and their scores.


@dataclass(frozen=True, kw_only=True)
class GeneratedTexts(Answers):
    """Texts that a model generated, one for each of m molecules.

    Attributes:
        texts: generated texts.
        log_probability: float64 `[m]`, of each text.
        canonical: canonical SMILES, None if a text is not a SMILES; None as a whole for texts that are not SMILES.
        cut: mask `[m]` of the texts that were cut off at the limit.
    """

    texts: list[str]
    log_probability: np.ndarray
    canonical: list[str | None] | None
    cut: np.ndarray

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with a text."""
        return np.isfinite(self.log_probability)

    def right(self, truth: Sequence[str]) -> list[bool]:
        """Compare each text with the true one: as molecules, or, for texts that are not SMILES, as texts."""
        if self.canonical is None:
            return self.exact(truth)
        wanted = canonical_smiles(truth)
        return [a is not None and a == b for a, b in zip(self.canonical, wanted, strict=True)]

    def exact(self, truth: Sequence[str]) -> list[bool]:
        """Compare each text with the true one, character by character."""
        return [a == b for a, b in zip(self.texts, truth, strict=True)]

    def counts(self, truth: Mapping[int, str]) -> Counter[str]:
        """Count the correct texts, as `scores` takes them; `truth` has the true texts by index of the molecule."""
        rows = list(truth)
        part = self.subset(np.array(rows, np.int64))
        counts = Counter(sequences=len(rows), exact_accuracy=sum(part.exact(list(truth.values()))))
        if self.canonical is not None:
            right, canonical = part.right(list(truth.values())), part.canonical or []
            counts.update(molecule_accuracy=sum(right), invalid=canonical.count(None))
        return counts


def scores(counts: Counter[str]) -> dict[str, Any]:
    """Compute scores from `GeneratedTexts.counts`, None without texts.

    `exact_accuracy` is the share of texts that equal the true one; of SMILES also `molecule_accuracy`, the share that
    is the right molecule, and `invalid`, the number that cannot be read.
    """
    total = counts["sequences"]
    shares = {name: n / total if total else None for name, n in counts.items() if name.endswith("accuracy")}
    return shares | ({"invalid": counts["invalid"] if total else None} if "invalid" in counts else {})


@dataclass
class TextScores:
    """Counts of generated texts, compared with the true ones if the table has a column of the target."""

    target: str
    columns: Sequence[str]
    limit: int
    written: int = 0
    cut: int = 0
    invalid: int | None = None
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[Row], answers: GeneratedTexts) -> None:
        """Add some rows and the texts generated for them."""
        self.written += len(answers.texts)
        self.cut += int(answers.cut.sum())
        if answers.canonical is not None:
            self.invalid = (self.invalid or 0) + answers.canonical.count(None)
        for at in find_columns(self.columns, [self.target]).values():
            truth = {i: row.cells[at].strip() for i, row in enumerate(rows)}
            self.counts.update(answers.counts({i: text for i, text in truth.items() if text}))

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single true text."""
        if not self.counts["sequences"]:
            return None
        all_scores = scores(self.counts)
        return {**all_scores, "per_target": {self.target: all_scores}}

    def notes(self) -> list[str]:
        """State how many texts are no SMILES, and how many were cut off."""
        words = []
        if self.invalid is not None:
            words.append(f"{self.invalid} {'is' if self.invalid == 1 else 'are'} no valid SMILES")
        if self.cut:
            words.append(f"{self.cut} ran into the limit of {self.limit} tokens")
        return [f"of {self.written} sequences written, {', '.join(words)}"] if words else []


def canonical_smiles(texts: Sequence[str]) -> list[str | None]:
    """Convert texts to canonical SMILES, None for a text that is not a SMILES."""
    return featurise(Featuriser(descriptors=False), texts, workers=0).smiles


# --- The three parts of the task.

TOKENIZERS = {"smiles": SMILES_TOKENIZER, "characters": CHARACTER_TOKENIZER}
"""Tokenizers of target texts, by name."""
LONGEST = 10_000
"""Maximum number of tokens of a sequence."""
OPTIONS = {"tokens": one_of(TOKENIZERS), "max_tokens": integer(1, LONGEST), "smoothing": number(0, 1)}
"""Kinds of the values of the options."""


@dataclass(frozen=True)
class SequenceColumns(Columns):
    """One column of texts, which become their numbers in a list of the distinct texts.

    Attributes:
        texts: distinct texts of the tables.
        tokenizer: tokenizer of the texts.
        max_tokens: largest number of tokens of a text; a longer text is an error.
    """

    texts: Sequence[str] = ()
    tokenizer: Tokenizer = SMILES_TOKENIZER
    max_tokens: int = LONGEST

    def infer(self, files: Sequence[InputFile]) -> dict[str, Any]:
        (name,) = self.targets
        if not any(cell.strip() for cell in files[0].cells(name)):
            raise InputError(
                f"target column {name!r} is blank in all of the {len(files[0].rows)} rows; sequences were expected"
            )
        return {"texts": sorted({cell.strip() for file in files for cell in file.cells(name)} - {""})}

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> TargetCells:
        (name,) = self.targets
        position, number = find_column(columns, name), {text: i for i, text in enumerate(self.texts)}
        y = np.full((len(rows), 1), np.nan)
        for i, row in enumerate(rows):
            if row.error:
                continue
            cell = row.cells[position]
            if not cell.strip():
                row_log.warn(row.number, name, cell, "there is no sequence to learn; the row is only predicted")
            elif complaint := self.complaint(0, cell):
                row_log.error(row.number, name, cell, complaint, category=BAD_TARGET)
            else:
                y[i] = number[cell.strip()]
        return TargetCells(y)

    def complaint(self, target: int, cell: str) -> str:
        """Describe why a text cannot be learned; empty if it can."""
        try:
            tokens = len(self.tokenizer.split(cell.strip()))
        except InputError as reason:
            return str(reason)
        return f"has {tokens} tokens; the limit is {self.max_tokens}" if tokens > self.max_tokens else ""

    def text(self, number: float) -> str:
        """Return the text of a target; empty if there is none."""
        return "" if np.isnan(number) else self.texts[int(number)]

    def texts_of(self, store: MoleculeStore) -> list[str]:
        """Return the true text of each molecule."""
        return [self.text(number) for number in self.level.targets(store)[:, 0].tolist()]


class SequenceObjective(Objective):
    """Cross-entropy of the next token after the true tokens before it (teacher forcing)."""

    metrics: ClassVar[dict[str, Metric]] = {
        "molecule_accuracy": Metric("right molecule"),
        "exact_accuracy": Metric("right text"),
        "token_accuracy": Metric("right tokens"),
        "perplexity": Metric("perplexity", lower=True),
        "invalid": Metric("invalid SMILES", lower=True),
    }
    validation_metrics = ("token_accuracy", "perplexity")

    @property
    def out_channels(self) -> int:
        return len(self.task.vocabulary)

    def validation_outputs(self, output: tuple[Tensor, Tensor, Tensor], batch: SequenceDataset) -> Tensor:
        """Count teacher-forced tokens; other scores are of texts that are written, once, at the end."""
        logits, labels, ptr = output
        return count(logits.float(), labels, ptr)

    def validation_scorer(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        def scores(counts: Tensor) -> dict[str, float]:
            logged = {f"val_{name}": value for name, value in metrics(counts).items() if value is not None}
            return {**logged, "val_score": logged.get("val_loss", math.nan)}

        return scores

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        if self.task.vocabulary is not None:
            return {}
        texts = self.task.columns.texts_of(train)
        vocabulary = TokenVocabulary.of(texts, self.task.columns.tokenizer)
        longest = int(vocabulary.encode_all(texts).sequences.sizes.max())
        # half as long again as any it has read
        limit = min(self.task.max_tokens, longest + max(10, longest // 2))
        return {"vocabulary": vocabulary, "limit": limit}

    def examples(self, store: MoleculeStore) -> SequenceDataset:
        """Select the molecules whose text has no token that is missing in training."""
        encoded = self.task.vocabulary.encode_all(self.task.columns.texts_of(store))
        return SequenceDataset.of(store.subset(np.asarray(encoded.rows, np.int64)), encoded.sequences)

    def forward(self, model: nn.Module, batch: SequenceDataset) -> tuple[Tensor, Tensor, Tensor]:
        """Compute logits, labels, and the offsets of the sequences among them."""
        read, labels = batch.targets.teacher_forced()
        return model(batch.source, read), labels, read.ptr

    def mean_loss(self, output: tuple[Tensor, Tensor, Tensor], examples: SequenceDataset) -> Tensor:
        logits, labels, _ = output
        return smoothed_cross_entropy(logits, labels, self.task.smoothing)

    def share(self, examples: SequenceDataset) -> int:
        """Return the number of labels: every token has the same weight."""
        return len(examples.targets.items) + len(examples)

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[GeneratedSequence]:
        (model,) = cast("Sequence[MoleculeToSequenceModel]", members)
        if self.task.beams in (None, 1):
            return greedy_search(model, batch, self.task.limit)
        return [best[0] for best in beam_search(model, batch, self.task.limit, self.task.beams)]


@dataclass(frozen=True)
class SequenceAnswers(AnswerRules):
    """Generated texts, with their probabilities and, of SMILES, whether they are valid."""

    task: SequenceGenerationTask

    @property
    def writes_smiles(self) -> bool:
        """True if the texts are SMILES."""
        return self.task.columns.tokenizer == SMILES_TOKENIZER

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        suffixes: dict[str, type] = {"pred": str, "log_probability": float}
        if self.writes_smiles:
            suffixes["valid"] = bool
        (name,) = self.task.targets
        return fresh_columns(taken, ((f"{name}_{suffix}", dtype) for suffix, dtype in suffixes.items()))

    def decode(self, outputs: Sequence[GeneratedSequence], store: MoleculeStore) -> GeneratedTexts:
        cut = f"cut off at the limit of {self.task.limit} tokens"
        texts = [self.task.vocabulary.decode(one.tokens) for one in outputs]
        canonical = canonical_smiles(texts) if self.writes_smiles else None
        log_probability = np.array([one.log_probability for one in outputs], float)
        table = [np.array(texts, object), log_probability]
        if canonical is not None:
            table.append(np.array([smiles is not None for smiles in canonical], object))
        return GeneratedTexts(
            texts=texts,
            log_probability=log_probability,
            canonical=canonical,
            cut=np.array([not one.ended for one in outputs], bool),
            warnings=[[] if one.ended else [cut] for one in outputs],
            table=tuple(table),
        )

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: GeneratedTexts, rows: np.ndarray
    ) -> dict[str, Any]:
        part = store.subset(rows)
        teacher_forced = metrics(count_all(members[0], self.task.objective.examples(part)))
        all_scores: dict[str, Any] = {name: teacher_forced[name] for name in ("perplexity", "token_accuracy")}
        all_scores |= scores(answers.counts(dict(zip(rows.tolist(), self.task.columns.texts_of(part), strict=True))))
        return {**all_scores, "per_target": {self.task.targets[0]: all_scores}}

    def scores(self, columns: Sequence[str]) -> TextScores:
        return TextScores(self.task.targets[0], columns, self.task.limit)

    def notes(self) -> list[str]:
        return [f"writes {len(self.task.vocabulary.tokens)} tokens, at most {self.task.limit} in a sequence"]


# --- The task.


@dataclass(frozen=True)
class SequenceGenerationTask(Task, SequenceOptions):
    """Task of generating a text (such as a product SMILES) from a molecule, trained by teacher forcing.

    At each position the model predicts the next token after the true tokens before it.

    The model maps a molecule and the tokens so far to logits of the next token
    (`gtx.sequence.model.MoleculeToSequenceModel`). A target in a store is the number of its text in `texts`.

    Args:
        targets: the name of the one target column.
        tokens: name of the tokenizer in `TOKENIZERS`.
        max_tokens: largest number of tokens of a text; a longer text is an error.
        smoothing: label smoothing of the loss, see `gtx.tasks.metrics.smoothed_cross_entropy`.
        vocabulary, limit: the tokens, and the largest number of tokens in a text, both fitted to the training rows.
        texts: distinct texts of the tables; not stored in a model file.
        beams: width of the beam search; with 1, the likeliest token is chosen at every step, see
            `gtx.sequence.model.beam_search`. The width is not stored in a model file.

    Raises:
        InputError: there is not exactly one target, or an option is out of range.
    """

    name: ClassVar[str] = "sequence"
    writes: ClassVar[bool] = True
    network: ClassVar[str] = "molecule_to_sequence"
    page: ClassVar[str] = "gtx.sequence.report"
    unsaved: ClassVar[frozenset[str]] = frozenset({"texts", "beams"})

    vocabulary: TokenVocabulary = learned(lambda targets: Entries, needed=True)
    limit: int = learned(lambda targets: integer(1, LONGEST), needed=True)
    texts: Sequence[str] = learned()
    beams: int | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.targets) != 1:
            named = ", ".join(map(repr, self.targets)) or "none"
            raise InputError(f"task {self.name}: expected one target column, got {named}")
        check({name: getattr(self, name) for name in OPTIONS}, entries(OPTIONS))
        if self.beams is not None and self.beams < 1:
            raise InputError(f"beams: expected 1 or more, got {self.beams}")

    @cached_property
    def columns(self) -> SequenceColumns:
        tokenizer = TOKENIZERS[self.tokens] if self.vocabulary is None else self.vocabulary.tokenizer
        return SequenceColumns(self.targets, texts=self.texts or (), tokenizer=tokenizer, max_tokens=self.max_tokens)

    objective = cached_property(SequenceObjective)
    answers = cached_property(SequenceAnswers)

    def unscorable(self, store: MoleculeStore) -> dict[int, str]:
        errors = self.vocabulary.encode_all(self.columns.texts_of(store)).errors
        return {i: f"{reason}; no training row has it, so the model cannot write it" for i, reason in errors.items()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        task = super().from_dict(record)
        return replace(task, vocabulary=TokenVocabulary.from_dict(record["vocabulary"]))
