"""How similar the judged molecules are to the training molecules, as a report says it."""

from __future__ import annotations

from gtx.data import similarity
from gtx.data.similarity import Nearest
from gtx.report.context import RunReport
from gtx.report.words import PARTS, count


def nearest(report: RunReport) -> Nearest:
    """What the report was given, or else worked out of it, see `gtx.data.similarity.nearest`."""
    return report.nearest or similarity.nearest(report.smiles, report.split, report.judged)


def compared(report: RunReport) -> str:
    """Which molecules are compared, in words."""
    judged, trained = similarity.drawn(report.split, report.judged)
    words = []
    for part, drawn in ((report.judged, judged), ("train", trained)):
        whole = len(report.split[part])
        molecules = count(whole, f"{PARTS[part]} molecule")
        words.append(molecules if len(drawn) == whole else f"{len(drawn):,} of {molecules}, drawn at random,")
    return " with ".join(words).rstrip(",")
