"""The page of a report about a model that writes sequences."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtx.report.context import RunReport
from gtx.report.gallery import Gallery
from gtx.report.kinds import titles
from gtx.report.page import render
from gtx.report.panels import RATE, learning_curves, size_panel

if TYPE_CHECKING:
    from gtx.sequence.task import GeneratedTexts, SequenceGenerationTask
    from gtx.training_data import Dataset


@dataclass(frozen=True, kw_only=True)
class SequenceReport(RunReport):
    """Content of the report of a run whose target is a text, for `write_sequence_report`; n molecules."""

    metrics: Mapping[str, Any]  # of the task, by name
    target: str
    truth: Sequence[str]  # [n], empty without a true text
    written: Sequence[str]  # [n]
    canonical: Sequence[str | None] | None  # SMILES [n], see `GeneratedTexts`
    right: Sequence[bool]  # [n]
    tokens: int  # in the vocabulary


SHOWN = 12  # texts that are wrong

SEQUENCE_CURVES = {
    "Loss, nats per token": {"train_loss": "train", "val_loss": "val"},
    "Validation perplexity": {"val_perplexity": "val"},
    "Validation token accuracy": {"val_token_accuracy": "val"},
    **RATE,
}


def write_sequence_report(path: str | os.PathLike[str], report: SequenceReport) -> list[str]:
    """Write one HTML file; return a line for each reason why a picture could not be drawn, as `gtx.report` does."""
    scored = report.scores[report.judged]
    metrics = {name: title for name, title in titles(report.metrics).items() if name in scored}
    wrong = [molecule for molecule in report.split[report.judged].tolist() if not report.right[molecule]]
    gallery = Gallery()
    size_panel(gallery, report)
    of_data = gallery.take_panels()
    learning_curves(gallery, report, SEQUENCE_CURVES)
    return render(
        path,
        "report.html",
        report,
        gallery,
        Path(__file__).parent,
        metrics=metrics,
        leading=next(iter(metrics)),
        wrong=len(wrong),
        shown=[_shown(report, molecule, gallery) for molecule in wrong[:SHOWN]],
        data_panels=of_data,
        learning_panels=gallery.take_panels(),
    )


def _shown(report: SequenceReport, molecule: int, gallery: Gallery) -> dict[str, Any]:
    """Collect a wrong text beside the right one; drawn, if they are SMILES."""
    canonical, written = report.canonical, report.written[molecule]
    return {
        "row": report.row_number(molecule),
        "source": report.smiles[molecule],
        "truth": report.truth[molecule],
        "written": written,
        "valid": canonical is None or canonical[molecule] is not None,
        "pictures": [
            gallery.molecule(text, f"What is {what} in row {report.row_number(molecule)}")
            for what, text in (("right", report.truth[molecule]), ("written", written))
            if canonical is not None and _is_smiles(text)
        ],
    }


def _is_smiles(text: str) -> bool:
    from gtx.molecules import MoleculeError, read_smiles

    try:
        read_smiles(text)
    except MoleculeError:
        return False
    return True


def write_run_report(
    task: SequenceGenerationTask, path: Path, dataset: Dataset, answers: GeneratedTexts, facts: RunReport
) -> list[str]:
    """Write `report.html` of a run, see `gtx.report.write_run_report`."""
    truth = task.columns.texts_of(dataset.store)
    report = SequenceReport(
        **vars(facts),
        metrics=task.metrics,
        target=task.targets[0],
        truth=truth,
        written=answers.texts,
        canonical=answers.canonical,
        right=answers.right(truth),
        tokens=0 if task.vocabulary is None else len(task.vocabulary.tokens),
    )
    return write_sequence_report(path, report)
