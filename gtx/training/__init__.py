"""Training: the Lightning module, the batches, and the run folder, from which an interrupted training resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.training.data import MoleculeDataModule
    from gtx.training.fitting import fit
    from gtx.training.module import TrainingModule
    from gtx.training.pretrained_weights import TrainedEnsembleMember
    from gtx.training.settings import TrainSettings

# `gtx train --help` reads the settings and must not wait for Lightning
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "MoleculeDataModule",
    "TrainSettings",
    "TrainedEnsembleMember",
    "TrainingModule",
    "fit",
]
