"""The tasks whose targets are numbers: regression and classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gtx.errors import InputError
from gtx.prediction import ModelHeader, Predictions, Predictor, load_model
from gtx.prediction.conformal import conformal_interval
from gtx.training import Member, TargetScaler, TrainSettings, evaluate, fit
from gtx.workflow.dataset import Dataset, DataSettings
from gtx.workflow.outputs import report_facts
from gtx.workflow.specs import check_model, model_spec
from gtx.workflow.task import Judged


class NumberTask:
    """See `gtx.workflow.task.Task`.

    Args:
        data: the table.
        settings: the model and its training.
        start: a model file to go on from.
        baselines: also score ridge and a random forest on the same rows.

    Raises:
        InputError: there is no such model, or it does not suit.
    """

    def __init__(
        self, data: DataSettings, settings: TrainSettings, start: str | Path | None = None, baselines: bool = True
    ) -> None:
        self.data, self.settings, self.baselines = data, settings, baselines
        self.names = data.target_columns
        self.members: list[Member] = []
        self.trained: ModelHeader | None = None
        if start is None:
            check_model(settings, data.featuriser)
            return
        networks, self.trained = load_model(start)
        _refuse_contradictions(data, settings, self.trained)
        self.members = [Member(network, self.trained.scaler, [], -1, np.inf) for network in networks]
        self.data = replace(data, featuriser=self.trained.featuriser)

    def meet(self, dataset: Dataset) -> None:
        self.dataset = dataset
        if self.trained is None:
            rows = len(dataset.split["train"])
            self.model = model_spec(self.settings, self.data.featuriser, len(self.names), rows)
        else:
            arguments = self.trained.model["arguments"] | {"out_channels": len(self.names)}
            self.model = {"name": self.trained.model["name"], "arguments": arguments}

    def fit(self, out: Path, marks: dict[str, Any]) -> list[Member]:
        same_targets = self.trained is None or self.trained.targets == list(self.names)
        return fit(
            self.dataset.store,
            self.dataset.split,
            self.dataset.task,
            self.names,
            self.model,
            self.settings,
            out,
            marks,
            start=self.members,
            keep_scaler=same_targets,
        )

    def judge(self, members: Sequence[Member], header: ModelHeader) -> Judged:
        header = replace(header, scaler=members[0].scaler)
        device = "cpu" if self.settings.accelerator == "cpu" else None
        networks = [member.model for member in members]
        predictions = Predictor(networks, header, device).predict_store(self.dataset.store)
        predictor = Predictor(networks, self._with_interval(header, predictions), device)
        low, high = predictor.bounds(predictions.mean)
        predictions = predictions._replace(low=low, high=high)
        metrics = {
            part: evaluate(self.dataset.y[rows], predictions.mean[rows], self.dataset.task, self.names)
            for part, rows in self.dataset.split.items()
        }
        metrics["baseline"] = self._baselines(members[0].scaler) if self.baselines else {}
        return Judged(predictor, predictions, metrics)

    def report(self, out: Path, judged: Judged, members: Sequence[Member], seconds: float) -> list[str]:
        from gtx.report import Report, write_report

        interval = judged.predictor.header.interval
        report = Report(
            **report_facts(out, self.dataset, judged, members, self.settings, seconds),
            task=self.dataset.task,
            targets=judged.predictor.header.targets,
            y=self.dataset.y,
            prediction=judged.answers.mean,
            baselines=judged.metrics["baseline"],
            units=self.data.units,
            low=judged.answers.low,
            high=judged.answers.high,
            level=interval["level"] if interval else 0.9,
        )
        return write_report(out / "report.html", report)

    def _with_interval(self, header: ModelHeader, predictions: Predictions) -> ModelHeader:
        """Split-conformal bounds from the validation rows; classes have none."""
        val = self.dataset.split["val"]
        if self.dataset.task == "regression" and len(val):
            interval = conformal_interval(self.dataset.y[val], predictions.mean[val])
            if any(width is not None for width in interval["half_width"]):
                return replace(header, interval=interval)
        return header

    def _baselines(self, scaler: TargetScaler) -> dict[str, Any]:
        from rich.console import Console
        from rich.markup import escape

        from gtx.report import baselines, beside

        console, data = Console(stderr=True, quiet=not self.settings.progress), self.dataset
        with console.status("Baselines") as status:

            def tell(line: str) -> None:
                status.update(escape(line))  # a target may be called "IC50 [nM]"

            more = {"seed": self.settings.seed, **beside(data.store, scaler)}
            return baselines(data.smiles, data.y, data.split, data.task, self.names, progress=tell, **more)


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelHeader) -> None:
    """What a trained model decides cannot be asked for otherwise."""
    if header.task == "sequence":
        raise InputError("--from goes on from a model that predicts numbers; the one given writes sequences")
    if settings.model_arguments or settings.model not in (TrainSettings().model, header.model["name"]):
        raise InputError("a model that is trained further keeps its architecture: leave out --model, --model-arguments")
    if settings.element_reference is not None and header.targets == list(data.target_columns):
        raise InputError("a model that is trained further keeps its scale: leave out --element-reference")
    asked, kept, usual = data.featuriser.to_dict(), header.featuriser.to_dict(), type(data.featuriser)().to_dict()
    for name, value in asked.items():
        if value not in (usual[name], kept[name]):
            raise InputError(f"the trained model reads molecules with {name} {kept[name]}, not {value}")
