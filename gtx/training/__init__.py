"""Training: the Lightning module, batches for it, and the folder of a run that resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.training.data import MoleculeData
    from gtx.training.fitting import fit
    from gtx.training.module import PropertyModule
    from gtx.training.ranks import distributed_group, exclusive, from_main, is_main_process, main_first
    from gtx.training.run import RunFolder, run_config
    from gtx.training.settings import TrainSettings
    from gtx.training.weight_transfer import Member, WeightTransfer

# `gtx train --help` reads the settings and must not wait for Lightning
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "data": ("MoleculeData",),
        "fitting": ("fit",),
        "module": ("PropertyModule",),
        "ranks": ("distributed_group", "exclusive", "from_main", "is_main_process", "main_first"),
        "run": ("RunFolder", "run_config"),
        "settings": ("TrainSettings",),
        "weight_transfer": ("Member", "WeightTransfer"),
    },
)
__all__ = [
    "Member",
    "MoleculeData",
    "PropertyModule",
    "RunFolder",
    "TrainSettings",
    "WeightTransfer",
    "distributed_group",
    "exclusive",
    "fit",
    "from_main",
    "is_main_process",
    "main_first",
    "run_config",
]
