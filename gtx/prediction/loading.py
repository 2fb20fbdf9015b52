"""From a model file to what predicts with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gtx.errors import InputError
from gtx.prediction.embedding import attach_foundation
from gtx.prediction.model_file import read_model
from gtx.prediction.predictor import Predictor
from gtx.tasks import Task

KINDS = ("cpu", "cuda", "mps", "xpu")
"""Devices that compute; torch knows others that do not."""


def load(
    path: str | Path,
    device: str | None = None,
    beams: int | None = None,
    *,
    model: nn.Module | Callable[[], nn.Module] | None = None,
    task: type[Task] | None = None,
) -> Predictor:
    """Open a model file (also as `gtx.load`).

    Args:
        path: a `model.gtx`, or `foundation` for the pretrained model that comes with gtx.
        device: as torch names it; by default a GPU if there is one.
        beams: of a model that writes sequences, see `gtx.tasks.ToSequence`.
        model: for a file with weights of a model that is not gtx's own: a module of that shape, or a function that
            makes one.
        task: for a task that is not gtx's own: its class.

    Raises:
        InputError: there is no such file, it cannot be used, there is no such device, or `beams` does not suit.
    """
    members, header, kernel_member = read_model(path, model, task)
    if beams is not None:
        if "beams" not in {field.name for field in fields(header.task)}:
            raise InputError(
                f"{path} predicts numbers ({header.task.name}): beams are for a model that writes sequences"
            )
        chosen: dict[str, Any] = {"beams": beams}
        header = replace(header, task=replace(header.task, **chosen))
    try:
        for module in (*members, kernel_member) if model is None else ():
            if module is not None:
                attach_foundation(module)
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    try:
        if torch.device(device or "cpu").type not in KINDS:
            raise InputError(f"device: expected one of {', '.join(KINDS)}, such as cuda:1, got {device!r}")
        return Predictor(members, header, device, kernel_member)
    except (RuntimeError, AssertionError) as reason:  # torch built without CUDA asserts
        raise InputError(f"device {device!r} cannot be used: {str(reason).splitlines()[0]}") from None
