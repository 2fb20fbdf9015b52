"""Training: the Lightning module, the batches, and the run folder, from which an interrupted training resumes."""

from __future__ import annotations

from gtx.settings.training import TrainSettings
from gtx.training.data import MoleculeDataModule
from gtx.training.fitting import fit
from gtx.training.module import TrainedMember, TrainingModule

__all__ = [
    "MoleculeDataModule",
    "TrainSettings",
    "TrainedMember",
    "TrainingModule",
    "fit",
]
