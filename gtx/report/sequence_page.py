"""`report.html` of a model that writes sequences."""

from __future__ import annotations

import os
from typing import Any

from gtx.report.context import SequenceReport
from gtx.report.gallery import Gallery
from gtx.report.panels import curves, size_panel
from gtx.report.rendering import render
from gtx.report.words import titles

SHOWN = 12  # texts that are wrong

CURVES = [
    ("Loss, nats per token", {"train_loss": "train", "val_loss": "val"}),
    ("Validation perplexity", {"val_perplexity": "val"}),
    ("Validation token accuracy", {"val_token_accuracy": "val"}),
    ("Learning rate", {"lr": "train"}),
]


def write_sequence_report(path: str | os.PathLike[str], report: SequenceReport) -> list[str]:
    """Write the report of a training run as one HTML file.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: what it says.

    Returns:
        A line for each reason why a picture could not be drawn; the page says so too, in the picture's place.
    """
    scored = report.scores[report.judged]
    metrics = {name: title for name, title in titles(report.metrics).items() if name in scored}
    wrong = [molecule for molecule in report.split[report.judged].tolist() if not report.right[molecule]]
    gallery = Gallery()
    return render(
        path,
        "sequences.html",
        report,
        gallery,
        metrics=metrics,
        leading=next(iter(metrics)),
        wrong=len(wrong),
        shown=[_shown(report, molecule, gallery) for molecule in wrong[:SHOWN]],
        data_panels=gallery.panels([size_panel(report)]),
        learning_panels=gallery.panels(curves(report, CURVES)),
    )


def _shown(report: SequenceReport, molecule: int, gallery: Gallery) -> dict[str, Any]:
    """A text that is wrong, beside what is right; drawn, as far as they are SMILES."""
    smiles, written = report.canonical is not None, report.written[molecule]
    return {
        "row": report.row_number(molecule),
        "source": report.smiles[molecule],
        "truth": report.truth[molecule],
        "written": written,
        "valid": not smiles or report.canonical[molecule] is not None,
        "pictures": [
            gallery.molecule(text, f"What is {what} in row {report.row_number(molecule)}")
            for what, text in (("right", report.truth[molecule]), ("written", written))
            if smiles and _is_smiles(text)
        ],
    }


def _is_smiles(text: str) -> bool:
    from gtx.molecules import MoleculeError, read_smiles

    try:
        read_smiles(text)
    except MoleculeError:
        return False
    return True
