"""`report.html` of a model that writes sequences."""

from __future__ import annotations

import os
from typing import Any

from markupsafe import Markup

from gtx.report.context import SequenceReport
from gtx.report.panels import curves, size_panel
from gtx.report.rendering import render
from gtx.report.words import METRICS

SHOWN = 12  # texts that are wrong

CURVES = [
    ("Loss, nats per token", {"train_loss": "train", "val_loss": "val"}),
    ("Validation perplexity", {"val_perplexity": "val"}),
    ("Validation token accuracy", {"val_token_accuracy": "val"}),
    ("Learning rate", {"lr": "train"}),
]


def write_sequence_report(path: str | os.PathLike[str], report: SequenceReport) -> None:
    """Write the report of a training run as one HTML file.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: what it says.
    """
    scored = report.scores[report.judged]
    metrics = {name: title for name, title in METRICS["sequence"].items() if name in scored}
    wrong = [molecule for molecule in report.split[report.judged].tolist() if not report.right[molecule]]
    render(
        path,
        "sequences.html",
        report,
        metrics=metrics,
        leading=next(iter(metrics)),
        wrong=len(wrong),
        shown=[_shown(report, molecule) for molecule in wrong[:SHOWN]],
        data_panels=[size_panel(report)],
        learning_panels=list(curves(report, CURVES)),
    )


def _shown(report: SequenceReport, molecule: int) -> dict[str, Any]:
    """A text that is wrong, beside what is right; drawn, as far as they are SMILES."""
    smiles, written = report.canonical is not None, report.written[molecule]
    return {
        "row": report.row_number(molecule),
        "source": report.smiles[molecule],
        "truth": report.truth[molecule],
        "written": written,
        "valid": not smiles or report.canonical[molecule] is not None,
        "pictures": [_picture(text) for text in (report.truth[molecule], written)] if smiles else [],
    }


def _picture(smiles: str) -> Markup | None:
    """None of what is no SMILES."""
    from gtx.molecules import MoleculeError, draw_molecule

    try:
        svg = draw_molecule(smiles, size=(260, 180))
    except MoleculeError:
        return None
    return Markup(svg[svg.index("<svg") :])
