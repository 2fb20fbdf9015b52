"""Which model is trained, and whether it suits the molecules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import nn

from gtx.data import FeatureColumns
from gtx.data.columns import listed
from gtx.errors import InputError, did_you_mean
from gtx.models import ARCHITECTURES, CLOSED_FORM, GraphTransformer, build_model
from gtx.molecules import Featuriser
from gtx.prediction.loading import foundation_spec
from gtx.tasks import Task
from gtx.training import TrainSettings
from gtx.training.fitting import check_machine
from gtx.training.optimise import check_head_first, freeze

WRITER = "molecule_to_sequence"
KERNEL_PARTS = ("substructures", "descriptors")
"""What the kernel compares by default."""
MOST_WEIGHTS = 10**9
"""With their gradients, moments and average these take 20 GB."""


def check_model(settings: TrainSettings, featuriser: Featuriser, features: FeatureColumns | None = None) -> None:
    """Say before the molecules are read whether there is such a model and it suits them.

    Raises:
        InputError: the model is unknown, an argument is misspelt, or the model needs coordinates that are not kept, or
            does not use those that are.
    """
    name = settings.model
    check_machine(settings)
    if features:
        features.check(featuriser)
    if settings.kernel_parts is not None:
        if settings.blend == "no" and name not in CLOSED_FORM:
            raise InputError("--kernel-parts: there is no kernel with --blend no")
        kernel_parts(settings, featuriser)
    if settings.separate_encoders and not featuriser.components:
        raise InputError("separate encoders are for rows of several molecules: give --smiles-columns")
    if name in CLOSED_FORM:
        _check_kernel(settings, featuriser, features)
        return
    if name not in ARCHITECTURES:
        every = [*ARCHITECTURES, *CLOSED_FORM]
        near = did_you_mean(name, every)
        raise InputError(f"there is no model {name!r}{near or '; gtx has ' + ', '.join(every)}")
    known = {*signature(ARCHITECTURES[name].make).parameters, *signature(GraphTransformer).parameters}
    for argument in settings.model_arguments:
        if argument not in known and (near := did_you_mean(argument, known)):
            raise InputError(f"model {name} has no argument {argument!r}{near}")
    use = ARCHITECTURES[name].coordinates
    if use == "needed" and not featuriser.coordinates:
        ways = "give a file that has them with --coordinates, or --conformers to make them"
        raise InputError(f"model {name} needs coordinates: {ways}")
    if use == "none" and featuriser.coordinates:
        raise InputError(f"model {name} uses no coordinates: leave out --coordinates and --conformers")
    if features and features.bonds and not ARCHITECTURES[name].bonds:
        raise InputError(f"model {name} embeds neither bonds nor pairs of atoms: leave out --bond-feature-columns")
    usual = {"out_channels": 1, "num_descriptors": num_descriptors(featuriser, features), "channels": default_width(1)}
    check_size(name, featuriser, usual | settings.model_arguments)


def check_size(name: str, featuriser: Featuriser, arguments: dict[str, Any]) -> None:
    """Raise an `InputError` if a model cannot be made, or would not fit into any memory."""
    sizes = {"atom_sizes": list(featuriser.atom_sizes), "bond_sizes": list(featuriser.bond_sizes)}
    spec = {"name": name, "arguments": {**sizes, "coordinates": featuriser.coordinates, **arguments}}
    try:
        with torch.device("meta"):  # shapes, without memory
            weights = sum(p.numel() for p in build_model(spec).parameters())
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError) as reason:
        raise InputError(f"the model cannot be made: {reason}") from None
    if weights > MOST_WEIGHTS:
        raise InputError(f"model {name} would have {weights:,} weights, and gtx trains up to {MOST_WEIGHTS:,}")


def check_rows(task: Task, settings: TrainSettings) -> None:
    """Raise an `InputError` if a task needs training rows that are to be left out of the model file."""
    if task.reads_similarity and settings.training_rows is False:
        raise InputError(
            f"uncertainty {task.uncertainty} compares with training rows: leave out "
            "training_rows=False (--no-training-rows)"
        )


def check_rates(spec: dict[str, Any], settings: TrainSettings) -> None:
    """Say before anything is written whether a model has the parts that are to learn slower.

    Raises:
        InputError: it has not, or nothing would learn, or nothing would wait.
    """
    if spec["name"] in CLOSED_FORM or not (settings.rates or settings.head_first):
        return
    try:
        with torch.device("meta"):  # names, without memory
            model = build_model(spec)
        freeze(model, settings.rates or {})
        check_head_first(model, settings.rates or {}, settings.head_first)
    except (TypeError, ValueError) as reason:
        raise InputError(str(reason)) from None


def without_all_rows(settings: TrainSettings) -> TrainSettings:
    """The settings of a training whose rows are never held together.

    Raises:
        InputError: something is asked for that needs all of them.
    """
    if settings.model in CLOSED_FORM:
        raise InputError(f"model {settings.model} needs all training rows in memory: train it on a table")
    for option, given in (("--blend kernel", settings.blend == "kernel"), ("--training-rows", settings.training_rows)):
        if given:
            raise InputError(f"{option} needs all training rows in memory, which a store is not for: leave it out")
    return replace(settings, blend="no", training_rows=False)


def _check_kernel(settings: TrainSettings, featuriser: Featuriser, features: FeatureColumns | None) -> None:
    name = settings.model
    if features and name == "tanimoto":
        raise InputError(f"model {name} reads molecules alone: leave out {', '.join(features.options)}")
    if features and features.widths:
        unread = [option for option in features.options if option != "--feature-columns"]
        raise InputError(f"model {name} reads features of molecules alone: leave out {', '.join(unread)}")
    if unknown := set(settings.model_arguments) - {"labels"}:
        raise InputError(f"model {name} has no argument {min(unknown)!r}; it has labels")
    if settings.keep_by:
        raise InputError(f"model {name} has no epochs to choose from: leave out --keep-by")
    if settings.ensemble > 1:
        raise InputError(f"model {name} has one solution: leave out --ensemble, got {settings.ensemble}")
    if featuriser.coordinates:
        raise InputError(f"model {name} uses no coordinates: leave out --coordinates and --conformers")


def model_spec(
    settings: TrainSettings, featuriser: Featuriser, task: Task, rows: int, features: FeatureColumns | None = None
) -> dict[str, Any]:
    """`{"name": ..., "arguments": ...}` of the model for a task, fitted, and so many training rows."""
    sizes = {"atom_sizes": list(featuriser.atom_sizes), "bond_sizes": list(featuriser.bond_sizes)}
    sizes["coordinates"] = featuriser.coordinates
    given = dict(settings.model_arguments)
    if task.writes:
        return {"name": WRITER, "arguments": {"size": task.out_channels, **sizes, **given}}
    if settings.model in CLOSED_FORM:
        parts = kernel_parts(settings, featuriser)
        spec = kernel_spec(task, featuriser, features, settings.model, parts)
        return spec | {"arguments": spec["arguments"] | given}
    arguments = {
        "out_channels": task.out_channels,
        **sizes,
        "num_descriptors": num_descriptors(featuriser, features),
        "channels": default_width(rows),
        **(features.widths if features else {}),
    }
    if task.also:
        arguments["also"] = dict(task.also)
    if task.per != "molecule":
        arguments["per"] = task.per
    elif settings.model == "standard":
        arguments["substructures"] = featuriser.constitution
    spec = {"name": settings.model, "arguments": arguments | given}
    return spec | components_spec(settings, featuriser, features)


def components_spec(
    settings: TrainSettings, featuriser: Featuriser, features: FeatureColumns | None
) -> dict[str, dict[str, Any]]:
    """The entry of a specification for rows of several molecules; none where a row has one."""
    if not featuriser.components:
        return {}
    count, width = len(featuriser.components), features.width if features else 0
    return {"components": {"count": count, "separate": settings.separate_encoders, "further": width}}


def num_descriptors(featuriser: Featuriser, features: FeatureColumns | None) -> int:
    """D, of the molecule and of the columns beside it."""
    return featuriser.num_descriptors + (features.width if features else 0)


def kernel_parts(settings: TrainSettings, featuriser: Featuriser) -> tuple[str, ...]:
    """Return what a kernel of these settings compares: substructures, descriptors, foundation.

    Raises:
        InputError: substructures are left out, or the foundation cannot read such molecules.
    """
    parts = settings.kernel_parts
    if parts is None:
        return KERNEL_PARTS if settings.model != "tanimoto" else KERNEL_PARTS[:1]
    if "substructures" not in parts:
        raise InputError(f"--kernel-parts: expected substructures among them, got {' '.join(parts) or 'none'}")
    if settings.model == "tanimoto":
        raise InputError("--kernel-parts: model tanimoto compares substructures alone; take --model kernel")
    if "foundation" in parts and (featuriser.components or featuriser.hydrogens):
        rows = "rows of several molecules" if featuriser.components else "molecules with hydrogens as atoms"
        raise InputError(f"--kernel-parts: the foundation does not read {rows}: leave out foundation")
    return tuple(parts)


def kernel_spec(
    task: Task,
    featuriser: Featuriser,
    features: FeatureColumns | None,
    name: str = "kernel",
    parts: Sequence[str] = KERNEL_PARTS,
) -> dict[str, Any]:
    """Return the `model_spec` of a kernel; of several molecules a row, it reads the descriptors of all side by side."""
    sizes: dict[str, Any] = {"atom_sizes": list(featuriser.atom_sizes), "bond_sizes": list(featuriser.bond_sizes)}
    if "foundation" in parts:
        sizes["foundation"] = foundation_spec()
    if name == "kernel" and "descriptors" in parts:
        own = featuriser.num_descriptors * max(1, len(featuriser.components))
        sizes["num_descriptors"] = own + (features.width if features else 0)
    return {"name": name, "arguments": {"out_channels": task.num_predictions, **sizes}}


def learned_spec(spec: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """The specification of a trained model: some, solved in closed form, are as large as what they have learned."""
    return spec | {"arguments": spec["arguments"] | getattr(model, "learned_arguments", {})}


def describe_model(name: str, model: nn.Module, count: int) -> str:
    """A model in a few words, and how many there are of it."""
    if name in CLOSED_FORM:
        compares = f" by {listed(model.kernel_names)}" if "foundation" in model.kernel_names else ""
        return f"{'Tanimoto ' * (name == 'tanimoto')}kernel of {len(model.row):,} training molecules{compares}"
    weights = sum(p.numel() for p in model.parameters())
    return f"{count} × " * (count > 1) + f"{name} graph transformer, {weights:,} weights"


def default_width(rows: int) -> int:
    """Channels of the nodes where nothing else is asked for: 64 for under 8,000 training rows, 128 from there on.

    So that a run on a set such as Tox21 takes minutes on two cores.
    """
    return 64 if rows < 8000 else 128
