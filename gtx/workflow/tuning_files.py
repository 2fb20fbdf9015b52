"""The files of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gtx.data import TableWriter
from gtx.files import write_text
from gtx.workflow.tuning_study import Tried

CONFIG, RECORD = "best.yaml", "tuning.json"


def write_best(path: Path, best: Tried, options: Mapping[str, Any]) -> None:
    """What was chosen, as `gtx train --config` takes it."""
    head = f"# Trial {best.number} of gtx tune, validation score {best.score:.4g}.\n# gtx train --config {path}\n"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    write_text(path, head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120))


def write_trials(path: Path, tried: Sequence[Tried]) -> None:
    """A row for each trial, with its choices, its score and its error."""
    names = list(dict.fromkeys(name for each in tried for name in each.taken))
    with TableWriter(path, ["study", "trial", "state", "score", "seconds", *names, "error"]) as writer:
        for each in tried:
            seconds = None if each.seconds is None else round(each.seconds, 1)
            cells = [each.study, each.number, each.state, each.score, seconds, *map(each.taken.get, names)]
            writer.write(["" if cell is None else str(cell) for cell in [*cells, each.error]])


def write_picture(path: Path, tried: Sequence[Tried], importances: Mapping[str, float]) -> None:
    """What mattered, and the scores trial by trial."""
    from gtx.report.comparison_figure import write_figure
    from gtx.report.tuning_figure import tuning_figure

    done = [each for each in tried if each.score is not None]
    scores = [(each.number, each.score, each.state == "complete") for each in done]
    default = next((each.score for each in done if each.default), None)
    write_figure(tuning_figure(importances, scores, default), path)
