"""Any Lightning logger, by its class path."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger

from gtx.errors import InputError

EXTRAS = {"TensorBoardLogger": "tensorboard", "WandbLogger": "wandb", "MLFlowLogger": "mlflow"}
"""What installs a logger of Lightning, by the name of its class."""


def make_logger(path: str, arguments: dict[str, Any], folder: Path) -> Logger:
    """Make the logger of class `path`, e.g. `pytorch_lightning.loggers.TensorBoardLogger`.

    Args:
        path: module and class.
        arguments: of the class; a `save_dir` it takes is `folder` unless it is given.
        folder: of the run's member.

    Raises:
        InputError: there is no such class, what it needs is not installed, it is no logger, or the arguments do not
            suit it.
    """
    module, _, name = path.rpartition(".")
    try:
        made = getattr(import_module(module), name)
        if "save_dir" in inspect.signature(made).parameters:
            arguments = {"save_dir": folder, **arguments}
        logger = made(**arguments)
    except ModuleNotFoundError as error:
        if name not in EXTRAS:
            raise InputError(f"logger {path}: {error}") from error
        raise InputError(
            f"logger {path} is not installed: in the folder of gtx, pip install '.[{EXTRAS[name]}]'"
        ) from error
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"logger {path}: {error}") from error
    if not isinstance(logger, Logger):
        raise InputError(f"logger {path}: expected a class of Lightning loggers, got {type(logger).__name__}")
    return logger
