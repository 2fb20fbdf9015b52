"""The task whose target is a text, which the model learns to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gtx.errors import InputError
from gtx.models import build_model
from gtx.prediction import ModelHeader, SequencePredictor, WrittenTexts
from gtx.prediction.model_file import LONGEST
from gtx.prediction.written import scores
from gtx.sequence import Examples, TokenVocabulary
from gtx.training import Member, RunFolder, TrainSettings, fit_sequences
from gtx.training.sequence_metrics import count_all, metrics
from gtx.workflow.dataset import Dataset, DataSettings
from gtx.workflow.outputs import report_facts
from gtx.workflow.task import Judged


class SequenceTask:
    """See `gtx.workflow.task.Task`. Global descriptors are of no use here and are left out.

    Args:
        data: the table, with one target column.
        settings: the model and its training.
        start: must be None.
        baselines: there are none.

    Raises:
        InputError: an option that does not suit.
    """

    def __init__(
        self, data: DataSettings, settings: TrainSettings, start: str | Path | None = None, baselines: bool = True
    ) -> None:
        _check(data, settings, start)
        self.data = replace(data, featuriser=replace(data.featuriser, descriptors=False))
        self.settings = settings

    def meet(self, dataset: Dataset) -> None:
        self.dataset = dataset
        train = [dataset.text(molecule) for molecule in dataset.split["train"]]
        self.vocabulary = TokenVocabulary.of(train, self.data.tokenizer)
        self.examples = {part: self._examples(rows) for part, rows in dataset.split.items()}
        featuriser = self.data.featuriser
        arguments = {
            "size": len(self.vocabulary),
            "atom_sizes": list(featuriser.atom_sizes),
            "bond_sizes": list(featuriser.bond_sizes),
            "coordinates": featuriser.coordinates,
        }
        arguments |= dict(self.settings.model_arguments)
        self.model = {"name": "molecule_to_sequence", "arguments": arguments}

    def fit(self, out: Path, marks: dict[str, Any]) -> list[Member]:
        with torch.random.fork_rng([]):
            torch.manual_seed(self.settings.seed)
            try:
                model = build_model(self.model)
            except (TypeError, ValueError) as error:
                raise InputError(f"model {self.model['name']}: {error}") from error
        train, val = self.examples["train"], self.examples["val"]
        done = fit_sequences(model, train, val, self.settings, RunFolder(out).member(0))
        return [Member(model, None, done["history"], done["best_epoch"], done["best_score"])]

    def judge(self, members: Sequence[Member], header: ModelHeader) -> Judged:
        (member,) = members
        longest = int(self.examples["train"].targets.sizes.max())
        limit = min(self.data.max_tokens, longest + max(10, longest // 2))  # half as long again as any it has seen
        header = replace(header, vocabulary=self.vocabulary, limit=limit)
        device = "cpu" if self.settings.accelerator == "cpu" else None
        predictor = SequencePredictor([member.model], header, device)
        answers = predictor.predict_store(self.dataset.store)
        found = {part: self._scores(part, member, answers) for part in self.dataset.split}
        return Judged(predictor, answers, {**found, "baseline": {}})

    def report(self, out: Path, judged: Judged, members: Sequence[Member], seconds: float) -> list[str]:
        from gtx.report import SequenceReport, write_sequence_report

        answers = judged.answers
        truth = [self.dataset.text(molecule) for molecule in range(len(self.dataset.smiles))]
        report = SequenceReport(
            **report_facts(out, self.dataset, judged, members, self.settings, seconds),
            target=self.data.target_columns[0],
            truth=truth,
            written=answers.texts,
            canonical=answers.canonical,
            right=answers.right(truth),
            tokens=len(self.vocabulary.tokens),
        )
        return write_sequence_report(out / "report.html", report)

    def _examples(self, molecules: np.ndarray) -> Examples:
        """What can be learned or judged token by token; a text with a token that training lacks is noted."""
        encoded = self.vocabulary.encode_all([self.dataset.text(molecule) for molecule in molecules])
        for i, reason in encoded.errors.items():
            self._note(molecules[i], reason)
        return Examples.of(self.dataset.store.subset(molecules[encoded.rows]), encoded.sequences)

    def _note(self, molecule: int, reason: str) -> None:
        at = self.dataset.rows[molecule]
        file = next(file for file in reversed(self.dataset.files) if file.start <= at)
        row = file.rows[at - file.start]
        (target,) = self.data.target_columns
        reason = f"{reason}; no training row has it, so the model cannot write it"
        file.ledger.warn(row.number, target, self.dataset.text(molecule), reason)

    def _scores(self, part: str, member: Member, answers: WrittenTexts) -> dict[str, Any]:
        teacher_forced = metrics(count_all(member.model, self.examples[part]))
        found: dict[str, Any] = {name: teacher_forced[name] for name in ("perplexity", "token_accuracy")}
        truth = {molecule: self.dataset.text(molecule) for molecule in self.dataset.split[part].tolist()}
        found |= scores(answers.counts(truth))
        return {**found, "per_target": {self.data.target_columns[0]: found}}


def _check(data: DataSettings, settings: TrainSettings, start: str | Path | None) -> None:
    if start is not None:
        raise InputError("--from goes on from a model that predicts numbers; --task sequence starts anew")
    if len(data.target_columns) != 1:
        named = ", ".join(map(repr, data.target_columns)) or "none"
        raise InputError(f"--task sequence: expected one target column, got {named}")
    if not 1 <= data.max_tokens <= LONGEST:
        raise InputError(f"max_tokens: expected a number from 1 to {LONGEST:,}, got {data.max_tokens}")
    usual = TrainSettings()
    for name in ("model", "ensemble", "loss", "element_reference"):
        if getattr(settings, name) != getattr(usual, name):
            raise InputError(f"--task sequence knows no other {name} than {getattr(usual, name)}; leave it out")
