"""Training: the Lightning module, batches for it, and the folder of a run that resumes."""

from __future__ import annotations

from gtx.lazy import lazy_names

# `gtx train --help` reads the settings and must not wait for Lightning
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "adopting": ("Adoption",),
        "member": ("Member",),
        "module": ("PropertyModule",),
        "ranks": ("from_main", "is_main_process", "main_first", "together"),
        "run": ("RunFolder", "differences", "run_config"),
        "data": ("MoleculeData",),
        "locking": ("alone", "locked"),
        "settings": ("TrainSettings",),
        "fitting": ("fit",),
    },
)
