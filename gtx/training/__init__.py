"""Training: losses, metrics, target scales, the Lightning module, the folder of a run."""

from __future__ import annotations

from importlib import import_module

_LAZY = {
    "Member": "member",
    "PropertyModule": "module",
    "RunFolder": "run",
    "StoreDataModule": "datamodule",
    "TargetScaler": "targets",
    "TrainSettings": "settings",
    "composition": "targets",
    "evaluate": "metrics",
    "fit": "fitting",
    "is_main_process": "run",
    "masked_loss": "losses",
    "run_config": "run",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> object:
    # `gtx train --help` reads the settings and must not wait for Lightning
    if name in _LAZY:
        return getattr(import_module(f"gtx.training.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.training' has no attribute {name!r}")
