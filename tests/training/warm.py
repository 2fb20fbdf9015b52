"""What the server of forks has done once for all of them: imports, and compiled loops read from their cache."""

import torch

import tests.training.distributed  # noqa: F401
from gtx.tasks import Regression

from .task import model, store

torch.set_num_threads(1)
with torch.no_grad():
    model(Regression(["y"]))(store().batch(range(8)))
