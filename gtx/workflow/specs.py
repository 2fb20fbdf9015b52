"""Specifications of models, and checks that a model suits the molecules."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import nn

from gtx.base.errors import InputError, did_you_mean
from gtx.data.feature_columns import NO_FEATURES, FeatureColumns
from gtx.data.rows import listed
from gtx.encodings.sides import sizes_of_sides
from gtx.kernel import KernelRidge
from gtx.models import ARCHITECTURES, build_model
from gtx.models.catalogue import CLOSED_FORM_MODELS
from gtx.molecules import Featuriser
from gtx.prediction.foundation_embedding import foundation_spec
from gtx.tasks import InferredTask, Task
from gtx.training import TrainSettings
from gtx.training.fitting import check_machine
from gtx.training.optimise import freeze

KERNEL_PARTS = ("substructures", "descriptors", "foundation")
"""Default inputs of the kernel."""
KERNEL_SETTINGS = {"model", "model_arguments", "kernel_parts", "blend", "folds", "training_rows", "seed"}
KERNEL_SETTINGS |= {"accelerator", "threads", "progress"}
"""Settings that a model in closed form has too; the others are of the training of networks."""
MAX_WEIGHTS = 10**9
"""Largest number of weights; with gradients, moments and average they take 20 GB."""


def check_model_settings(
    settings: TrainSettings,
    featuriser: Featuriser,
    features: FeatureColumns = NO_FEATURES,
    task: Task | InferredTask | None = None,
) -> None:
    """Raise an `InputError`, before molecules are read, unless the model of the settings exists and can read them.

    The model of a task with a network of its own is this network.
    """
    name, usual = settings.model, TrainSettings()
    check_machine(settings)
    if isinstance(task, Task) and task.network:
        for option in ("model", "folds"):
            if getattr(settings, option) != getattr(usual, option):
                raise InputError(f"task {task.name} has no other {option} than {getattr(usual, option)}; leave it out")
        if features.columns:
            raise InputError(f"task {task.name} reads molecules alone: leave out {', '.join(features.options)}")
        name, arguments = task.network, {"size": 100}
    else:
        if settings.kernel_parts is not None:
            if settings.blend == "no" and name not in (*CLOSED_FORM_MODELS, "standard"):
                none = f"model {name} reads none of them, and there is no kernel with `blend` no"
                raise InputError(f"kernel_parts: {none}")
            kernel_parts(settings, featuriser)
        if settings.separate_encoders and not featuriser.components:
            raise InputError("separate encoders are for rows of several molecules: give `smiles_columns`")
        if name in CLOSED_FORM_MODELS:
            _check_kernel(settings, featuriser, features)
            return
        _check_architecture(settings, featuriser)
        arguments = {"out_channels": 1, "channels": default_width(1)} | features.network_inputs(featuriser)
    check_size(name, featuriser, arguments | settings.model_arguments)


def _check_architecture(settings: TrainSettings, featuriser: Featuriser) -> None:
    """Raise an `InputError` unless there is such an architecture, its arguments can be stored, and its use of
    coordinates suits the molecules.
    """
    name = settings.model
    if name not in ARCHITECTURES:
        names = [*ARCHITECTURES, *CLOSED_FORM_MODELS]
        hint = did_you_mean(name, names)
        raise InputError(f"there is no model {name!r}{hint or '; gtx has ' + ', '.join(names)}")
    for argument, value in settings.model_arguments.items():
        if isinstance(value, nn.Module):
            own = f"{argument} is a {type(value).__name__}, and a model file holds plain values alone"
            raise InputError(f"model_arguments: {own}: make the model yourself, and train it by gtx.training.fit")
    use = ARCHITECTURES[name].coordinates
    if use == "needed" and not featuriser.coordinates:
        ways = "give a file that has them with `coordinates`, or `conformers` to make them"
        raise InputError(f"model {name} needs coordinates: {ways}")
    if use == "none" and featuriser.coordinates:
        raise InputError(f"model {name} uses no coordinates: leave out `coordinates` and `conformers`")


def check_size(name: str, featuriser: Featuriser, arguments: dict[str, Any]) -> None:
    """Raise an `InputError` if a model cannot be made, or would not fit into any memory."""
    spec = {"name": name, "arguments": featuriser.input_sizes | {"coordinates": featuriser.coordinates} | arguments}
    try:
        with torch.device("meta"):  # shapes, without memory
            weights = sum(p.numel() for p in build_model(spec).parameters())
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError) as reason:
        raise InputError(f"the model cannot be made: {reason}") from None
    if weights > MAX_WEIGHTS:
        raise InputError(f"model {name} would have {weights:,} weights, and gtx trains up to {MAX_WEIGHTS:,}")


def check_training_rows_option(task: Task, settings: TrainSettings) -> None:
    """Raise InputError if a task needs the training rows at prediction, but the model file is to leave them out."""
    if task.answers.reads_similarity and settings.training_rows is False:
        words = f"uncertainty {getattr(task, 'uncertainty', '')} compares with training rows"
        raise InputError(f"{words}: leave out training_rows=False (--no-training-rows)")


def check_rates(spec: dict[str, Any], settings: TrainSettings) -> None:
    """Raise an `InputError`, before anything is written, unless `rates` and `head_first` suit the model."""
    if spec["name"] in CLOSED_FORM_MODELS or not (settings.rates or settings.head_first):
        return
    try:
        with torch.device("meta"):  # names, without memory
            model = build_model(spec)
        freeze(model, settings.rates or {}, settings.head_first)
    except (TypeError, ValueError) as reason:
        raise InputError(str(reason)) from None


def _check_kernel(settings: TrainSettings, featuriser: Featuriser, features: FeatureColumns) -> None:
    name = settings.model
    if features.columns and name == "tanimoto":
        raise InputError(f"model {name} reads molecules alone: leave out {', '.join(features.options)}")
    if features.widths:
        unread = [option for option in features.options if option != "`feature_columns`"]
        raise InputError(f"model {name} reads features of molecules alone: leave out {', '.join(unread)}")
    if unknown := set(settings.model_arguments) - {"labels"}:
        raise InputError(f"model {name} has no argument {min(unknown)!r}; it has labels")
    usual = TrainSettings()
    others = [f.name for f in fields(settings) if f.name not in KERNEL_SETTINGS]
    if surplus := [other for other in others if getattr(settings, other) != getattr(usual, other)]:
        options = ", ".join(f"`{other}`" for other in surplus)
        raise InputError(f"model {name} is solved in closed form and has no training by epochs: leave out {options}")
    if featuriser.coordinates:
        raise InputError(f"model {name} uses no coordinates: leave out `coordinates` and `conformers`")


def make_model_spec(
    settings: TrainSettings, featuriser: Featuriser, task: Task, rows: int, features: FeatureColumns = NO_FEATURES
) -> dict[str, Any]:
    """Make the specification of a model, `{"name": ..., "arguments": ...}`, from the settings and the data.

    The task is fitted; the number of training rows sets the default width. A kernel reads the descriptors of all
    molecules of a row side by side.
    """
    arguments: dict[str, Any]
    sizes = featuriser.input_sizes
    if task.network:
        arguments = {"size": task.objective.out_channels, **sizes, "coordinates": featuriser.coordinates}
        return {"name": task.network, "arguments": arguments | settings.model_arguments}
    parts, closed = kernel_parts(settings, featuriser), settings.model in CLOSED_FORM_MODELS
    if closed:
        arguments = {"out_channels": task.objective.num_predictions, **sizes}
        if "descriptors" in parts:
            count = max(1, len(featuriser.components))
            arguments["num_descriptors"] = featuriser.num_descriptors * count + features.width
    else:
        inputs, outputs = features.network_inputs(featuriser), task.network_outputs
        arguments = {**outputs, **inputs, "channels": default_width(rows)}
        if task.level == "molecule" and settings.model == "standard":
            arguments["substructures"] = featuriser.constitution
    if "foundation" in parts and (closed or "substructures" in arguments):
        arguments["foundation"] = foundation_spec(sizes_of_sides(**sizes))
    spec: dict[str, Any] = {"name": settings.model, "arguments": arguments | settings.model_arguments}
    if featuriser.components and not closed:
        count = len(featuriser.components)
        spec["components"] = {"count": count, "separate": settings.separate_encoders, "further": features.width}
    return spec


def kernel_parts(settings: TrainSettings, featuriser: Featuriser) -> tuple[str, ...]:
    """Return the inputs of the kernel: substructures, descriptors, foundation. The network reads the last one too.

    By default all that can be: the foundation reads neither rows of several molecules nor hydrogens as atoms. Its
    embeddings of both sides of reactions are compared only on demand.
    """
    parts = settings.kernel_parts
    unread = "rows of several molecules" if featuriser.components else "molecules with hydrogens as atoms"
    readable = not (featuriser.components or featuriser.hydrogens)
    if parts is None:
        every = readable and featuriser.unit == "molecule"
        return KERNEL_PARTS[: 1 if settings.model == "tanimoto" else 3 if every else 2]
    if "substructures" not in parts:
        raise InputError(f"kernel_parts: expected substructures among them, got {' '.join(parts) or 'none'}")
    if settings.model == "tanimoto":
        raise InputError("kernel_parts: model tanimoto compares substructures alone; take `model` kernel")
    if "foundation" in parts and not readable:
        raise InputError(f"kernel_parts: the foundation does not read {unread}: leave out foundation")
    return tuple(parts)


def add_learned_arguments(spec: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """Add to a specification the sizes of a model that is solved in closed form, which depend on its training rows."""
    return spec | {"arguments": spec["arguments"] | getattr(model, "learned_arguments", {})}


def describe_model(name: str, model: nn.Module, count: int) -> str:
    """Describe a model of `count` networks in a few words."""
    if isinstance(model, KernelRidge):
        title = "Tanimoto kernel" if name == "tanimoto" else "kernel"
        inputs = f", compares {listed(model.kernel_names)} embeddings" if "foundation" in model.kernel_names else ""
        return f"{title} of {len(model.row):,} training molecules{inputs}"
    weights = sum(p.numel() for p in model.parameters())
    each = f"{name} graph transformer, {weights:,} weights"
    return f"{count} × {each}" if count > 1 else each


def default_width(rows: int) -> int:
    """Return the default number of channels: a run on a set such as Tox21 then takes minutes on two cores."""
    return 64 if rows < 8000 else 128
