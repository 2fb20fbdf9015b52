"""Training: losses, metrics, target scales, the Lightning module, the folder of a run."""

from __future__ import annotations

from gtx.lazy import lazy_names

# `gtx train --help` reads the settings and must not wait for Lightning
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "member": ("Member",),
        "module": ("PropertyModule",),
        "run": ("RunFolder", "is_main_process", "run_config"),
        "datamodule": ("StoreDataModule",),
        "targets": ("TargetScaler", "composition", "extensive_part"),
        "settings": ("TrainSettings",),
        "metrics": ("evaluate",),
        "fitting": ("fit",),
        "losses": ("masked_loss", "smoothed_cross_entropy"),
        "sequence_module": ("SequenceModule", "fit_sequences"),
        "sequence_metrics": ("exact",),
    },
)
