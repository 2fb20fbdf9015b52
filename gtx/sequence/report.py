"""The page of a report about a model that writes sequences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtx.report.context import RunReport
from gtx.report.gallery import Gallery
from gtx.report.kinds import titles
from gtx.report.page import render
from gtx.report.panels import RATE, learning_curves, size_panel
from gtx.sequence.task import GeneratedTexts, SequenceGenerationTask, canonical_smiles

if TYPE_CHECKING:
    from gtx.training_data import Dataset


SHOWN = 12  # texts that are wrong

SEQUENCE_CURVES = {
    "Loss, nats per token": {"train_loss": "train", "val_loss": "val"},
    "Validation perplexity": {"val_perplexity": "val"},
    "Validation token accuracy": {"val_token_accuracy": "val"},
    **RATE,
}


def write_run_report(
    task: SequenceGenerationTask, path: Path, dataset: Dataset, answers: GeneratedTexts, report: RunReport
) -> list[str]:
    """Write `report.html` of a run, see `gtx.report.write_run_report`."""
    scored, truth = report.scores[report.judged], task.columns.texts_of(dataset.store)
    metrics = {name: title for name, title in titles(task.metrics).items() if name in scored}
    right = answers.right(truth)
    wrong = [molecule for molecule in report.split[report.judged].tolist() if not right[molecule]]
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
        target=task.targets[0],
        tokens=len(task.vocabulary.tokens),
        smiles=answers.canonical is not None,
        metrics=metrics,
        leading=next(iter(metrics)),
        wrong=len(wrong),
        shown=[_shown(report, molecule, truth[molecule], answers, gallery) for molecule in wrong[:SHOWN]],
        data_panels=of_data,
        learning_panels=gallery.take_panels(),
    )


def _shown(report: RunReport, molecule: int, truth: str, answers: GeneratedTexts, gallery: Gallery) -> dict[str, Any]:
    """Collect a wrong text beside the right one; drawn, if they are SMILES."""
    row, written, canonical = report.row_numbers[molecule], answers.texts[molecule], answers.canonical
    texts = {} if canonical is None else {"right": truth, "written": written}
    return {
        "row": row,
        "source": report.smiles[molecule],
        "truth": truth,
        "written": written,
        "valid": canonical is None or canonical[molecule] is not None,
        "pictures": [
            gallery.molecule(text, f"What is {what} in row {row}")
            for (what, text), smiles in zip(texts.items(), canonical_smiles([*texts.values()]), strict=True)
            if smiles is not None
        ],
    }
