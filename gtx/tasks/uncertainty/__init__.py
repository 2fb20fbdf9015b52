"""Methods of uncertainty for numbers, each with a standard deviation and an interval.

The keys of `UNCERTAINTY_METHODS` are the words that the command line and model files use. `none` is no method: an
interval of one width for all molecules.
"""

from gtx.tasks.uncertainty.methods import (
    Ensemble,
    Evidential,
    Quantiles,
    Similarity,
    UncertaintyMethod,
    Variance,
)

UNCERTAINTY_METHODS: dict[str, UncertaintyMethod] = {
    "variance": Variance(),
    "quantiles": Quantiles(),
    "evidential": Evidential(),
    "ensemble": Ensemble(),
    "similarity": Similarity(),
}
"""Methods of uncertainty by the words that `--uncertainty` and model files use."""

__all__ = ["UNCERTAINTY_METHODS", "PredictionUncertainty", "UncertaintyMethod"]
