"""gtx itself: the defaults of `gtx train`, the same without a part, and the mean prediction of five such models."""

from __future__ import annotations

import numpy as np

from experiments.parts import PARTS, Part
from experiments.problem import Answer, Problem
from gtx.errors import InputError
from gtx.prediction import load
from gtx.training import TrainSettings
from gtx.workflow import train

MEMBERS = 5


def answer(problem: Problem) -> Answer:
    """Train one model, or average those that seeds 0 to 4 gave, out of their files."""
    return average(problem) if problem.run.model == "gtx-ensemble" else single(problem)


def single(problem: Problem) -> Answer:
    """`gtx train` with its defaults, less a part if the model's name says so, and one thread; resumes."""
    part = PARTS.get(problem.run.model, Part("as it is"))
    own = {**problem.run.benchmark.settings, **part.settings, "model_arguments": dict(part.arguments)}
    settings = TrainSettings(**own, seed=problem.run.seed, threads=1, progress=False)
    train(problem.data, settings, problem.folder, baselines=False)
    return _read([problem.folder / "model.gtx"], problem)


def average(problem: Problem) -> Answer:
    """The mean prediction of five models; nothing is trained.

    Raises:
        InputError: one of their files is not there.
    """
    members = [problem.run._replace(model="gtx", seed=seed) for seed in range(MEMBERS)]
    files = [member.folder(problem.runs) / "model.gtx" for member in members]
    for member, file in zip(members, files, strict=True):
        if not file.exists():
            raise InputError(f"gtx-ensemble averages trained models: expected {file}; run gtx with seed {member.seed}")
    return _read(files, problem)


def _read(files: list, problem: Problem) -> Answer:
    predictors = [load(file, device="cpu") for file in files]
    prediction = np.mean([one.predict_store(problem.dataset.store).mean for one in predictors], axis=0)
    header = predictors[0].header
    decisive = {name: value for name, value in header.settings.items() if name != "seed"}
    return Answer(
        prediction,
        sum(p.numel() for one in predictors for member in one.members for p in member.parameters()),
        {"model": header.model, "training": decisive, "featuriser": header.featuriser.to_dict()},
    )
