"""From a table to a trained, scored and reported model: the whole of `gtx train`, as one function."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gtx.data import write_split
from gtx.errors import InputError
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader, Predictor, load_model, save_model
from gtx.prediction.conformal import conformal_interval
from gtx.prediction.predictor import Predictions
from gtx.training import Member, RunFolder, TrainSettings, evaluate, fit, is_main_process, run_config
from gtx.workflow.dataset import Dataset, DataSettings, fingerprint, load, sha256
from gtx.workflow.outputs import data_lines, write_predictions, write_run_report

PARTS = ("train", "val", "test")
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        out: its folder.
        metrics: as in `metrics.json`.
        notes: what was said of the data, a line each.
        was_finished: whether there was nothing left to do.
    """

    out: Path
    metrics: dict[str, Any]
    notes: Sequence[str]
    was_finished: bool = False


def train(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    overwrite: bool = False,
    start: str | Path | None = None,
    baselines: bool = True,
) -> Outcome | None:
    """Train, score on all parts of the split, and write the run's folder; called again it goes on or says it is done.

    Writes `model.gtx`, `metrics.json`, `predictions.csv` (one more per file of validation or test rows), `split.csv`,
    `report.html` and `config.yaml`.

    Args:
        data: the table.
        settings: the model and its training.
        out: the run's folder.
        overwrite: train anew whatever `out` holds.
        start: a model file to go on from; its architecture and featuriser are kept, its head is renewed where the
            number of targets differs.
        baselines: also score ridge and a random forest on the same rows.

    Returns:
        What came of it; None in all processes but the first, where several train together.

    Raises:
        InputError: the input, the settings or `out` cannot be used.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    begun = time.perf_counter()
    members: list[Member] = []
    same_targets = True
    if start is None:
        check_model(settings, data.featuriser)
    else:
        members, trained_for, model = _start(start, len(data.target_columns))
        _refuse_contradictions(data, settings, trained_for)
        data = replace(data, featuriser=trained_for.featuriser)
        same_targets = trained_for.targets == list(data.target_columns)
    dataset = load(data, cache=out / "cache", progress=settings.progress)
    if start is None:
        model = model_spec(settings, data.featuriser, len(data.target_columns), len(dataset.split["train"]))
    marks = fingerprint(data) | ({"from": sha256(start)} if start else {})
    run = RunFolder(out)
    run.open(run_config(dataset.task, data.target_columns, model, settings, marks), overwrite)
    notes = data_lines(dataset)
    if run.finished and (out / "metrics.json").exists():
        return Outcome(out, json.loads((out / "metrics.json").read_text()), notes, was_finished=True)

    for old in (*(out / name for name in OUTPUTS), *out.glob("predictions-*.csv")):  # of a run that this one overwrites
        old.unlink(missing_ok=True)
    trained = fit(
        dataset.store,
        dataset.split,
        dataset.task,
        data.target_columns,
        model,
        settings,
        out,
        marks,
        start=members,
        keep_scaler=same_targets,
    )
    if not is_main_process():
        return None
    header = ModelHeader(
        dataset.task,
        list(data.target_columns),
        data.featuriser,
        model,
        trained[0].scaler,
        dataset.files[0].smiles_column,
        split={"how": dataset.split_words, **{part: len(index) for part, index in dataset.split.items()}},
        settings=settings.decisive(),
    )
    members = [member.model for member in trained]
    device = "cpu" if settings.accelerator == "cpu" else None
    predictions = Predictor(members, header, device).predict_store(dataset.store)
    header = _with_interval(header, dataset, predictions)
    predictor = Predictor(members, header, device)
    low, high = predictor.bounds(predictions.mean)
    predictions = predictions._replace(low=low, high=high)
    metrics = _scores(dataset, predictions, data.target_columns)
    metrics["baseline"] = _baselines(dataset, data.target_columns, settings) if baselines else {}
    header.metrics.update({part: metrics[part] for part in PARTS})
    seconds = time.perf_counter() - begun

    save_model(out / "model.gtx", members, header)
    own = {part: dataset.rows[index] for part, index in dataset.split.items()}
    rows = len(dataset.files[0].rows)  # a file of validation or test rows is its own record
    write_split(out / "split.csv", {part: index[index < rows] for part, index in own.items()})
    write_predictions(out, predictor, dataset, predictions)
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    write_run_report(out, predictor, dataset, predictions, metrics, trained, settings, seconds, data.units)
    run.finish()
    return Outcome(out, metrics, notes)


def check_model(settings: TrainSettings, featuriser: Featuriser) -> None:
    """Say before the molecules are read whether there is such a model and it suits them.

    Raises:
        InputError: the model is unknown, needs coordinates that are not kept, or does not use those that are.
    """
    name = settings.model
    if name not in ARCHITECTURES:
        raise InputError(f"there is no model {name!r}; gtx has {', '.join(ARCHITECTURES)}")
    use = ARCHITECTURES[name].coordinates
    if use == "needed" and not featuriser.coordinates:
        ways = "give a file that has them with --coordinates, or --conformers to make them"
        raise InputError(f"model {name} needs coordinates: {ways}")
    if use == "none" and featuriser.coordinates:
        raise InputError(f"model {name} uses no coordinates: leave out --coordinates and --conformers")


def model_spec(settings: TrainSettings, featuriser: Featuriser, targets: int, rows: int) -> dict[str, Any]:
    """`{"name": ..., "arguments": ...}` of the model for so many targets and training rows."""
    arguments = {
        "out_channels": targets,
        "atom_sizes": list(featuriser.atom_sizes),
        "bond_sizes": list(featuriser.bond_sizes),
        "num_descriptors": featuriser.num_descriptors,
        "coordinates": featuriser.coordinates,
        "channels": default_width(rows),
    }
    return {"name": settings.model, "arguments": arguments | dict(settings.model_arguments)}


def default_width(rows: int) -> int:
    """Channels of the nodes where nothing else is asked for: 64 for under 2,000 training rows, 128 from there on."""
    return 64 if rows < 2000 else 128


def _start(path: str | Path, targets: int) -> tuple[list[Member], ModelHeader, dict[str, Any]]:
    """The members, header and model of a file, the model with as many outputs as there are targets now."""
    networks, header = load_model(path)
    members = [Member(network, header.scaler, [], -1, np.inf) for network in networks]
    arguments = header.model["arguments"] | {"out_channels": targets}
    return members, header, {"name": header.model["name"], "arguments": arguments}


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelHeader) -> None:
    """What a trained model decides cannot be asked for otherwise."""
    if settings.model_arguments or settings.model not in (TrainSettings().model, header.model["name"]):
        raise InputError("a model that is trained further keeps its architecture: leave out --model, --model-arguments")
    asked, kept, usual = data.featuriser.to_dict(), header.featuriser.to_dict(), type(data.featuriser)().to_dict()
    for name, value in asked.items():
        if value not in (usual[name], kept[name]):
            raise InputError(f"the trained model reads molecules with {name} {kept[name]}, not {value}")


def _with_interval(header: ModelHeader, dataset: Dataset, predictions: Predictions) -> ModelHeader:
    """Split-conformal bounds from the validation rows; classes have none."""
    val = dataset.split["val"]
    if dataset.task == "regression" and len(val):
        interval = conformal_interval(dataset.y[val], predictions.mean[val])
        if any(width is not None for width in interval["half_width"]):
            return replace(header, interval=interval)
    return header


def _scores(dataset: Dataset, predictions: Predictions, names: Sequence[str]) -> dict[str, Any]:
    return {
        part: evaluate(dataset.y[rows], predictions.mean[rows], dataset.task, names)
        for part, rows in dataset.split.items()
    }


def _baselines(dataset: Dataset, names: Sequence[str], settings: TrainSettings) -> dict[str, Any]:
    from rich.console import Console
    from rich.markup import escape

    from gtx.report import baselines

    console = Console(stderr=True, quiet=not settings.progress)
    with console.status("Baselines") as status:

        def tell(line: str) -> None:
            status.update(escape(line))  # a target may be called "IC50 [nM]"

        return baselines(dataset.smiles, dataset.y, dataset.split, dataset.task, names, settings.seed, progress=tell)
