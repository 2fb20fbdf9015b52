"""The files of a finished run: predictions of every row, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gtx.data import TableWriter, fresh_name
from gtx.prediction import Predictor, library_versions
from gtx.prediction.predictor import NOT_FINITE, Predictions, output_columns
from gtx.prediction.streaming import output_header, output_row, shown
from gtx.training import Member, TrainSettings
from gtx.workflow.dataset import Dataset

FIRST = 20  # messages that the report quotes


def data_lines(dataset: Dataset) -> list[str]:
    """What there is to say of the data, a line each."""
    lines = [f"{file.source}: {file.ledger.summary()}" for file in dataset.files]
    sizes = ", ".join(f"{len(index)} {part}" for part, index in dataset.split.items())
    lines.append(f"{dataset.task}; split {dataset.split_words}: {sizes}")
    if dataset.duplicates.molecules:
        lines.append(f"repeated: {dataset.duplicates}")
    for (one, other), count in dataset.leaked.items():
        lines.append(f"warning: {count} molecules stand in both {one} and {other}, which flatters the scores")
    return lines


def write_predictions(out: Path, predictor: Predictor, dataset: Dataset, predictions: Predictions) -> None:
    """`predictions.csv`, every row of the table as it was with numbers or an error; and one for every further file."""
    table = predictions.table()
    numbers = np.full((sum(len(file.rows) for file in dataset.files), table.shape[1]), np.nan)
    numbers[dataset.rows] = table
    unseen = dict(zip(dataset.rows.tolist(), predictions.unseen, strict=True))
    not_finite = set(dataset.rows[~predictions.finite].tolist())
    for file, name in zip(dataset.files, ("predictions.csv", *_further(dataset)), strict=True):
        columns = output_columns(predictor.header, file.columns, len(predictor.members))
        with TableWriter(out / name, output_header(file.columns, columns)) as writer:
            for i, row in enumerate(file.rows, file.start):
                if unseen.get(i):
                    file.ledger.warn(row.number, file.smiles_column, shown(row), unseen[i])
                if i in not_finite:
                    file.ledger.error(row.number, file.smiles_column, shown(row), NOT_FINITE, "without a finite output")
                error, warnings = file.ledger.errors.get(row.number), file.ledger.warnings.get(row.number, [])
                writer.write(output_row(row, numbers[i], error, warnings))


def _further(dataset: Dataset) -> list[str]:
    names: list[str] = []
    for file in dataset.files[1:]:  # val/data.csv and test/data.csv must not share one
        names.append(fresh_name(names, f"predictions-{Path(file.source.removesuffix('.gz')).stem}"))
    return [f"{name}.csv" for name in names]


def write_run_report(
    out: Path,
    predictor: Predictor,
    dataset: Dataset,
    predictions: Predictions,
    metrics: dict[str, Any],
    members: Sequence[Member],
    settings: TrainSettings,
    seconds: float,
    units: dict[str, str],
) -> None:
    """`report.html`."""
    from gtx.report import DataCard, Report, count_atoms, write_report

    ledgers = [file.ledger for file in dataset.files]
    num_atoms, elements = count_atoms(dataset.store)
    card = DataCard(
        source=", ".join(Path(file.source).name for file in dataset.files),
        rows=sum(ledger.rows for ledger in ledgers),
        errors=sum(ledger.num_errors for ledger in ledgers),
        summary="; ".join(ledger.summary() for ledger in ledgers),
        split=dataset.split_words,
        num_atoms=num_atoms,
        elements=elements,
        first_errors=[message for ledger in ledgers for message in ledger.errors.values()][:FIRST],
        warnings=[m for ledger in ledgers for messages in ledger.warnings.values() for m in messages][:FIRST],
        repeated=str(dataset.duplicates) if dataset.duplicates.molecules else "",
        leaked=dataset.leaked,
    )
    weights = sum(p.numel() for p in predictor.members[0].parameters())
    count = len(predictor.members)
    report = Report(
        title=Path(dataset.files[0].source).stem,
        task=dataset.task,
        targets=predictor.header.targets,
        smiles=dataset.smiles,
        y=dataset.y,
        prediction=predictions.mean,
        split=dataset.split,
        scores={part: metrics[part] for part in dataset.split},
        baselines=metrics["baseline"],
        data=card,
        histories=[member.history for member in members],
        best_epochs=[member.best_epoch for member in members],
        settings={"model": predictor.header.model, "training": settings.decisive()},
        versions=library_versions(),
        model_file=str(out / "model.gtx"),
        model=f"{count} × " * (count > 1) + f"{predictor.header.model['name']} graph transformer, {weights:,} weights",
        units=units,
        low=predictions.low,
        high=predictions.high,
        level=predictor.header.interval["level"] if predictor.header.interval else 0.9,
        row_numbers=np.array([row.number for file in dataset.files for row in file.rows])[dataset.rows],
        footnotes=[f"Trained, scored and reported in {seconds:.0f} s."],
    )
    write_report(out / "report.html", report)
