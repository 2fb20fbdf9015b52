"""Molecules in, sequences out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data import MoleculeStore
from gtx.errors import InputError
from gtx.prediction.base import BasePredictor, fresh_columns, name_unseen
from gtx.prediction.model_file import ModelHeader
from gtx.prediction.written import TextScores, WrittenTexts, canonical_smiles
from gtx.sequence import SMILES, Written, beam, greedy


class SequencePredictor(BasePredictor):
    """Writes a text for each molecule. `predict` gives `<target>_pred`, its `<target>_log_probability` and, of a model
    that writes SMILES, `<target>_valid`: whether it is one.

    Args:
        members: one network, a `gtx.models.MoleculeToSequence`.
        header: what the file says of it.
        device: where it runs; by default a GPU if there is one.
        beams: 1 takes the likeliest token at every step, more follow as many beginnings, see `gtx.sequence.beam`.

    Raises:
        InputError: less than one beam.
    """

    def __init__(
        self, members: Sequence[nn.Module], header: ModelHeader, device: str | None = None, beams: int = 1
    ) -> None:
        super().__init__(members, header, device)
        if beams < 1:
            raise InputError(f"beams: expected 1 or more, got {beams}")
        self.beams, self.vocabulary = beams, header.vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ([deepcopy(member).cpu() for member in self.members], self.header, None, self.beams)

    @property
    def writes_smiles(self) -> bool:
        """Whether the texts are meant to be SMILES."""
        return self.vocabulary.tokenizer == SMILES

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        (target,) = self.header.targets
        kinds = {"pred": str, "log_probability": float} | ({"valid": bool} if self.writes_smiles else {})
        return fresh_columns(taken, ((f"{target}_{kind}", type_) for kind, type_ in kinds.items()))

    def predict_store(self, store: MoleculeStore) -> WrittenTexts:
        """Write for molecules that are featurised already, by the header's featuriser."""
        held, (model,), limit = store.to(self.device), self.members, self.header.limit

        @torch.inference_mode()
        def run(rows: Tensor) -> tuple[list[Written], list[list[tuple[str, int, int]]]]:
            batch = held.batch(rows.to(self.device))
            if self.beams == 1:
                written = greedy(model, batch, limit)
            else:
                written = [best[0] for best in beam(model, batch, limit, self.beams)]
            return written, model.encoder.unseen(batch)

        batches = self._batches(store)
        made = self._run_all(run, batches)
        done: list[Written | None] = [None] * len(store)
        remarks: list[list[str]] = [[] for _ in range(len(store))]
        for rows, (written, found) in zip(batches, made, strict=True):
            for row, one, codes in zip(rows.tolist(), written, found, strict=True):
                done[row] = one
                remarks[row] += [name_unseen(codes)] if codes else []
                remarks[row] += [] if one.ended else [f"cut off at the limit of {limit} tokens"]
        texts = [self.vocabulary.decode(one.tokens) for one in done]
        canonical = canonical_smiles(texts) if self.writes_smiles else None
        log_probability = np.array([one.log_probability for one in done], float)
        cut = np.array([not one.ended for one in done], bool)
        return WrittenTexts(texts, log_probability, canonical, remarks, cut)

    def scores(self, columns: Sequence[str]) -> TextScores:
        return TextScores(self.header, columns)
