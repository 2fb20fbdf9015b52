"""Result of a run: its scores and notes, the predictions of every row, and the facts of its report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gtx.data import FeatureColumns, TableWriter
from gtx.data.feature_columns import NO_FEATURES
from gtx.data.rows import plural
from gtx.data.similarity import draw_rows, nearest_similarity
from gtx.data.splits import SPLIT_PARTS
from gtx.data.table_writer import find_unused_column_name, output_header, output_row
from gtx.kernel import KernelRidge, LearningCurve, measure_learning_curves
from gtx.kernel.regression import MOST_ROWS
from gtx.models.catalogue import CLOSED_FORM_MODELS
from gtx.nn.features import ClippedStandardScaler
from gtx.prediction import Predictor
from gtx.prediction.domain import BANDS, MOST_MEASURED, feature_values
from gtx.prediction.model_file import package_versions
from gtx.prediction.streaming import answer_rows, record_answer
from gtx.report.context import ENOUGH, Attainable, RunReport
from gtx.tasks import Answers, NumericTask, Predictions, Regression, Task
from gtx.tasks.classification import ClassTask
from gtx.tasks.metrics import with_bounds
from gtx.tasks.numeric import is_numeric
from gtx.training import TrainSettings
from gtx.training.fitting import networks_at_a_time
from gtx.training_data import (
    Dataset,
    count_weightless,
    describe_duplicates,
    left_out_lines,
    measure_noise,
    name_parts,
    outlier_lines,
)
from gtx.workflow.blending import Blended
from gtx.workflow.specs import describe_model

MAX_MESSAGES = 20  # messages that the report quotes


@dataclass(frozen=True)
class RunResult:
    """Result of a training run: its fitted task, scores and notes.

    Attributes:
        out: folder of the run.
        task: the fitted task, calibrated once the run has been scored.
        metrics: content of `metrics.json`: scores of the model by part, and for a model of several folds, whose scores
            of `val` are of out-of-fold predictions of all rows of `train`, the number of `folds`; for a blend
            `kernel_share`, the share of the kernel in each prediction; scores of network and kernel `alone`, and of
            each `baseline`, by name and part.
        predictions: predictions of the baselines for all molecules, by name, see `Baselines`.
        attainable: how good a model can get at each numeric target.
        units: units of targets, by name.
        calibration: lines about the calibration of the task, which are notes too.
        notes: notes about the data and the training, one line each.
        was_finished: whether the run was already finished, so that the scores are those of its `metrics.json`.
    """

    out: Path
    task: Any
    metrics: Mapping[str, Any]
    predictions: Mapping[str, np.ndarray] = field(default_factory=dict)
    attainable: Mapping[str, Attainable] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    calibration: Sequence[str] = ()
    notes: Sequence[str] = ()
    was_finished: bool = False

    @property
    def folded(self) -> bool:
        """True if predictions for validation rows are out-of-fold."""
        return "folds" in self.metrics


def training_lines(settings: TrainSettings, blended: Blended, result: RunResult, baselines: bool) -> list[str]:
    """Return notes about a trained and scored model, a line each."""
    predictor = blended.predictor
    lines = [] if blended.note is None else [blended.note]
    if seen := predictor.header.settings.get("seen"):
        lines.append(f"test rows: the foundation model was pretrained on {seen}")
    if predictor.header.training is not None:
        reader = "Predictor.neighbours" if predictor.task.custom else "gtx predict --neighbours"
        lines.append(
            f"model.gtx contains its training rows, for {reader}: "
            f"{predictor.header.training.describe()}; --no-training-rows leaves them out"
        )
    kernel = predictor.kernel_member.kernel if predictor.kernel_member else predictor.members[0]
    if isinstance(kernel, KernelRidge) and not kernel.has_all_rows:
        learned = f"the kernel learned from {MOST_ROWS:,} rows at most, drawn at random"
        lines.append(f"{learned}, and compares molecules with {len(kernel.row):,} of them")
    lines += result.calibration
    least = min(member.batch_pairs or settings.batch_pairs for member in blended.members)
    if least < settings.batch_pairs:
        lines.append(f"memory was short: batches of {least:,} pairs, not {settings.batch_pairs:,}")
    if baselines and predictor.kernel_member and not result.folded:
        lines.append("the baselines are fitted to the training rows alone, the kernel of the blend to more")
    if predictor.kernel_member or result.folded:
        told = "validation rows are predicted by what did not learn them; gtx predict may differ"
        lines.append(f"predictions.csv: {told}")
    for name, limits in result.attainable.items():
        errors = {part: result.metrics[part]["per_target"][name]["rmse"] for part in ("test", "val")}
        part = next((part for part, error in errors.items() if error is not None), None)
        if part is not None:
            lines.append(f"{name}: {part} {limits.describe(errors[part], result.units.get(name, ''))}")
    return lines


def data_lines(dataset: Dataset, features: FeatureColumns = NO_FEATURES) -> list[str]:
    """Return notes about the data, a line each."""
    lines = [f"{file.source}: {file.row_log.summary()}" for file in dataset.files]
    for file in dataset.files:
        if errors := file.row_log.errors:
            first = errors[min(errors)]
            lines.append(f"{file.source}: the first error: {first}; predictions.csv has the error of each row")
        if "smiles" not in file.smiles_column.lower() and not file.components:
            lines.append(f"{file.source}: the molecules are those of column {file.smiles_column!r}")
    sizes = ", ".join(f"{number} {part}" for part, number in dataset.sizes.items())
    lines.append(f"{dataset.task.name}; split {dataset.split_summary}: {sizes}")
    if (bounds := dataset.store.bounds) is not None:
        y, side = with_bounds(torch.from_numpy(dataset.y), bounds)
        parts = ((part, dataset.split[part]) for part in dataset.sizes)
        shares = (f"{(side[rows] != 0).sum()} of {(~y[rows].isnan()).sum()} {part}" for part, rows in parts)
        lines.append(f"values that are bounds: {', '.join(shares)}")
    lines += dataset.remarks
    counts = dataset.counts
    few = [f"{n} {part}" for part, n in counts.items() if n < ENOUGH[part] and (n or part != "test")]
    if few:
        cut = counts["train"] >= ENOUGH["train"] and not dataset.split_summary.startswith(("column", "file"))
        more = "; --split-sizes 0.6 0.25 0.15 gives these parts more" if cut else ""
        lines.append(
            f"warning: only {', '.join(few)}: with so few molecules, good and bad scores are mostly luck{more}"
        )
    unit = dataset.unit
    lines += _unlabelled(dataset)
    if weightless := count_weightless(dataset):
        lines.append(f"in none of the sets: {plural(weightless, f'training {unit}')} of weight 0")
    lines += left_out_lines(dataset)
    if dataset.duplicates.molecules:
        lines.append(f"repeated: {describe_duplicates(dataset)}")
    for (one, other), number in dataset.leaked.items():
        stand = f"{plural(number, unit)} {'stands' if number == 1 else 'stand'}"
        lines.append(f"warning: {stand} in both {one} and {other}, which flatters the scores")
    lines += constant_lines(dataset, features) + outlier_lines(dataset)
    if dataset.nearest is not None:
        leak = "" if dataset.leaked else f"no {unit} is in two of the sets; "
        part = "test" if len(dataset.split["test"]) else "validation"
        pairs = f"{plural(len(dataset.nearest.rows), f'{part} {unit}')} to their nearest training {unit}s"
        lines.append(f"leakage: {leak}Tanimoto similarity of {pairs}: {dataset.nearest.summary()}")
    lines += _shared_components(dataset)
    if not counts["val"]:
        lines.append(
            "warning: no rows validate: the last epoch is kept, --patience stops nothing, the network is not blended "
            "with a kernel, and no interval is calibrated; call some rows val, or give a file by --val"
        )
    return lines


def constant_lines(dataset: Dataset, features: FeatureColumns) -> list[str]:
    """Return a warning for each target and each feature column that does not vary in the training rows."""
    train, lines = dataset.train, []
    for task in (each for each in getattr(dataset.task, "tasks", (dataset.task,)) if isinstance(each, NumericTask)):
        y, _ = with_bounds(task.objective.level.targets(train), train.bounds if task.level == "molecule" else None)
        for t, (name, values) in enumerate(zip(task.targets, y.T, strict=False)):  # means of lists may follow
            if len(known := values[~values.isnan()].unique()) == 1:
                value = task.columns.labels(t)[int(known)] if isinstance(task, ClassTask) else f"{float(known):.6g}"
                lines.append(f"warning: {name} is {value} in every training row with a value: nothing can be learned")
    for name, column, _ in feature_values(train, features):
        scaler, known = ClippedStandardScaler(1), column[np.isfinite(column)]
        scaler.observe(torch.from_numpy(known)[:, None])
        if len(known) and not scaler.scale:
            low, high = float(known.min()), float(known.max())
            span = f"{low:.9g}" + ("" if low == high else f" to {high:.9g}")
            large = (
                ": of large numbers that differ little, such as times, subtract the first"
                if max(high, -low) > 1e6
                else ""
            )
            lines.append(f"warning: {name} is {span} in the training rows, read as constant{large}")
    return lines


def fold_lines(dataset: Dataset, settings: TrainSettings) -> list[str]:
    """Say how long several networks take beside one, in a line; none for one network or a model in closed form."""
    if settings.folds == 1 or settings.model in CLOSED_FORM_MODELS:
        return []
    count = networks_at_a_time(settings, dataset.counts["train"])
    times = math.ceil(settings.folds / count)
    each = f"each trained on {1 - 1 / settings.folds:.0%} of the rows that are not test"
    return [f"{settings.folds} networks, {count} at a time, {each}: up to {times} times as long as --folds 1"]


def _unlabelled(dataset: Dataset) -> list[str]:
    number = plural(dataset.unlabelled, dataset.unit)
    return [f"in none of the sets: {number} without any target value"] if dataset.unlabelled else []


def _shared_components(dataset: Dataset) -> list[str]:
    """State, for each component, how many validation or test rows share a molecule with training rows."""
    names, scored = dataset.files[0].components, "test" if len(dataset.split["test"]) else "val"
    if not names or not len(dataset.split[scored]):
        return []
    rows, train = (
        [(row.text, *row.others) for row in (dataset.place(i)[1] for i in dataset.split[part])]
        for part in (scored, "train")
    )
    counts = []
    for k, name in enumerate(names):
        seen = {row[k] for row in train}
        counts.append(f"{sum(row[k] in seen for row in rows)} have a {name} of the training rows")
    return [f"leakage: of {len(rows)} {scored} rows {', '.join(counts)}, as written; --split group keeps either apart"]


def write_predictions(out: Path, predictor: Predictor, dataset: Dataset, answers: Answers) -> None:
    """Write `predictions.csv`, every row of the table with an answer or an error, and one for each further file.

    A column `split` before the error names the part, train, val or test, or the fold of a row that was predicted
    out-of-fold; it is empty for a row in no part.
    """
    part_of = {int(dataset.rows[molecule]): part for molecule, part in name_parts(dataset).items()}
    answered = zip(answer_rows(answers), answers.finite.tolist(), answers.warnings, strict=True)
    by_row = dict(zip(dataset.rows.tolist(), answered, strict=True))
    for file, name in zip(dataset.files, ("predictions.csv", *further_names(dataset)), strict=True):
        named, row_log = predictor.output_columns(file.columns), file.row_log
        split = find_unused_column_name([*file.columns, *named], "split")
        with TableWriter(out / name, output_header(file.columns, [*named, split])) as writer:
            for i, row in enumerate(file.rows, file.start):
                cells, *notes = by_row.get(i, ([None] * len(named), True, []))
                record_answer(row_log, file.smiles_column, row, *notes)
                error, warnings = row_log.errors.get(row.number), row_log.warnings.get(row.number, [])
                *columns, last_error, last_warning = output_row(row, cells, error, warnings)
                writer.write([*columns, part_of.get(i, ""), last_error, last_warning])


def further_names(dataset: Dataset) -> list[str]:
    """Return the file names of predictions for each further file."""
    names: list[str] = []
    for file in dataset.files[1:]:  # val/data.csv and test/data.csv must not share one
        names.append(find_unused_column_name(names, f"predictions-{Path(file.source.removesuffix('.gz')).stem}"))
    return [f"{name}.csv" for name in names]


def domain_errors(predictor: Predictor, dataset: Dataset, answers: Answers) -> dict[str, Any]:
    """Return the rows and errors of the bands of the domain on validation and test rows."""
    domain, task = predictor.header.domain, predictor.task
    if domain is None or not isinstance(answers, Predictions):
        return {}
    bands = {"val": {band: (domain.rows[band], domain.errors[band]) for band in BANDS}}
    test = draw_rows(dataset.split["test"], MOST_MEASURED)
    if len(test):
        similarity = nearest_similarity(dataset.train, dataset.store.subset(test))
        on_test = domain.on(task, similarity, dataset.y[test], answers.mean[test])
        bands["test"] = {band: (on_test.rows[band], on_test.errors[band]) for band in BANDS}
    return bands


def attainable_errors(task: Task, dataset: Dataset, kernel: KernelRidge | None) -> dict[str, Attainable]:
    """Measure how good a model can get at each numeric target, from all values and a kernel of all training rows."""
    if not isinstance(task, Regression) or not is_numeric(task):
        return {}
    curves: list[LearningCurve | None] = [None] * len(task.targets)
    if kernel is not None and len(kernel.row) == len(task.drop_blanks(dataset.train)):
        curves = measure_learning_curves(kernel)
    limits = (Attainable(measure_noise(dataset.smiles, y), curve) for y, curve in zip(dataset.y.T, curves, strict=True))
    return {name: each for name, each in zip(task.targets, limits, strict=True) if each}


def run_report(
    out: Path, dataset: Dataset, blended: Blended, result: RunResult, seconds: float, notes: Sequence[str]
) -> RunReport:
    """Collect the content that the reports of all tasks have in common."""
    predictor, members = blended.predictor, blended.members
    row_logs = [file.row_log for file in dataset.files]
    model = predictor.header.model
    description = describe_model(model["name"], members[0].model, len(members))
    if predictor.kernel_member is not None:
        description += f"; prediction = {predictor.kernel_member.describe(predictor.task)}"

    def named(parts: Mapping[str, Any]) -> dict[str, Any]:
        """Name the part of validation rows `folds` where their predictions are out-of-fold."""
        return {"folds" if part == "val" and result.folded else part: own for part, own in parts.items()}

    return RunReport(
        title=Path(dataset.files[0].source).stem,
        smiles=dataset.smiles,
        store=dataset.store,
        split=named(dataset.split),
        scores=named({part: result.metrics[part] for part in SPLIT_PARTS}),
        source=", ".join(Path(file.source).name for file in dataset.files),
        rows=sum(row_log.rows for row_log in row_logs),
        errors=sum(row_log.num_errors for row_log in row_logs),
        summary="; ".join([row_log.summary() for row_log in row_logs] + _unlabelled(dataset)),
        split_summary=dataset.split_summary,
        first_errors=[message for row_log in row_logs for message in row_log.errors.values()][:MAX_MESSAGES],
        warnings=[m for row_log in row_logs for messages in row_log.warnings.values() for m in messages][:MAX_MESSAGES],
        cautions=[line.removeprefix("warning: ") for line in notes if line.startswith("warning: ")],
        repeated=describe_duplicates(dataset),
        leaked=dataset.leaked,
        unit=dataset.unit,
        histories=[member.history for member in members],
        best_epochs=[member.best_epoch for member in members],
        settings={"model": model, "training": predictor.header.settings},
        versions=package_versions(),
        model_file=str(out / "model.gtx"),
        task_class=type(predictor.task).__name__ if predictor.task.custom else "",
        model=description,
        alone={name: named(scores) for name, scores in result.metrics["alone"].items()},
        row_numbers=np.array([row.number for file in dataset.files for row in file.rows])[dataset.rows],
        units=predictor.header.units,
        baselines={name: named(scores) for name, scores in result.metrics["baseline"].items()},
        rivals=result.predictions,
        attainable=result.attainable,
        domain=named(domain_errors(predictor, dataset, blended.answers)),
        footnotes=[f"Trained, scored and reported in {seconds:.0f} s.", *result.calibration],
    )
