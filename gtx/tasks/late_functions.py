"""Functions that fit and score. Their packages take three seconds to import; prediction needs none."""

from __future__ import annotations

from gtx.lazy import LateFunction

_NUMBERS, _CLASSES = "torchmetrics.functional.regression", "torchmetrics.functional.classification"

mean_absolute_error = LateFunction(_NUMBERS, "mean_absolute_error")
mean_squared_error = LateFunction(_NUMBERS, "mean_squared_error")
binary_accuracy = LateFunction(_CLASSES, "binary_accuracy")
binary_auroc = LateFunction(_CLASSES, "binary_auroc")
binary_average_precision = LateFunction(_CLASSES, "binary_average_precision")
multiclass_accuracy = LateFunction(_CLASSES, "multiclass_accuracy")
multiclass_f1_score = LateFunction(_CLASSES, "multiclass_f1_score")
multiclass_matthews_corrcoef = LateFunction(_CLASSES, "multiclass_matthews_corrcoef")
spearmanr = LateFunction("scipy.stats", "spearmanr")
r2_score = LateFunction("sklearn.metrics", "r2_score")  # torchmetrics takes small variances for none
roc_auc_score = LateFunction("sklearn.metrics", "roc_auc_score")
minimize_scalar = LateFunction("scipy.optimize", "minimize_scalar")
isotonic_regression = LateFunction("sklearn.isotonic", "IsotonicRegression")
