"""Training: the Lightning module, batches for it, and the folder of a run that resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.training.adopting import Adoption, Member
    from gtx.training.data import MoleculeData
    from gtx.training.fitting import fit
    from gtx.training.module import PropertyModule
    from gtx.training.ranks import alone, from_main, is_main_process, main_first, together
    from gtx.training.run import RunFolder, run_config
    from gtx.training.settings import TrainSettings


# `gtx train --help` reads the settings and must not wait for Lightning
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "adopting": (
            "Adoption",
            "Member",
        ),
        "module": ("PropertyModule",),
        "ranks": (
            "alone",
            "from_main",
            "is_main_process",
            "main_first",
            "together",
        ),
        "run": (
            "RunFolder",
            "run_config",
        ),
        "data": ("MoleculeData",),
        "settings": ("TrainSettings",),
        "fitting": ("fit",),
    },
)
__all__ = [
    "Adoption",
    "Member",
    "MoleculeData",
    "PropertyModule",
    "RunFolder",
    "TrainSettings",
    "alone",
    "fit",
    "from_main",
    "is_main_process",
    "main_first",
    "run_config",
    "together",
]
