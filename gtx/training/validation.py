"""How an epoch is judged: the scores of the validation rows, and the one number that decides."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gtx.data import MoleculeStore
from gtx.training.losses import masked_loss
from gtx.training.metrics import METRICS, evaluate
from gtx.training.targets import TargetScaler, composition


class Validation:
    """Scores the outputs for the rows of one store.

    `val_score` decides which epoch is kept and when to stop early; lower is better. Regression: the mean over targets
    of the RMSE (the MAE if that is the loss) in scaled units, since targets' own units cannot be averaged.
    Classification: 1 − ROC-AUC, which does not punish a ranking for overconfidence as the loss does; if no target has
    both classes here, the loss.

    Args:
        store: the validation molecules with their targets.
        scaler: fitted on the training rows.
        loss: name of the loss.
        names: of the targets.
    """

    def __init__(self, store: MoleculeStore, scaler: TargetScaler, loss: str, names: Sequence[str]) -> None:
        self.y, self.scaler, self.loss, self.names = store.y.cpu(), scaler, loss, list(names)
        self.composition = composition(store) if scaler.reference is not None else None
        self.scaled = scaler.scale(self.y, self.composition)

    def __call__(self, outputs: Tensor) -> dict[str, float]:
        """Scores of outputs `[n, T]` in scaled units: `val_loss`, `val_score` and the metrics, where defined."""
        outputs = outputs.float().cpu()
        predicted = self.scaler.unscale(outputs, self.composition)
        scores = evaluate(self.y, predicted, self.scaler.task, self.names)
        logged = {f"val_{name}": scores[name] for name in METRICS[self.scaler.task] if scores[name] is not None}
        logged["val_loss"] = float(masked_loss(self.loss)(outputs, self.scaled))
        return {**logged, "val_score": self._score(outputs, logged)}

    def _score(self, outputs: Tensor, logged: dict[str, float]) -> float:
        if self.scaler.task == "classification":
            return 1 - logged["val_roc_auc"] if "val_roc_auc" in logged else logged["val_loss"]
        error = outputs - self.scaled
        if self.loss == "mae":
            return float(error.abs().nanmean(0).nanmean())
        return float(error.square().nanmean(0).sqrt().nanmean())
