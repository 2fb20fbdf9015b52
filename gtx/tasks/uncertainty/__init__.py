"""Methods of uncertainty for numbers, each with a standard deviation and an interval.

`METHODS` names them by the words that the command line and model files use. `none` is no method: an interval of one
width for all molecules.
"""

from gtx.tasks.uncertainty.methods import (
    Ensemble,
    Evidential,
    McDropout,
    Method,
    Quantiles,
    Similarity,
    Spread,
    Variance,
)

METHODS: dict[str, Method] = {
    "variance": Variance(),
    "quantiles": Quantiles(),
    "evidential": Evidential(),
    "dropout": McDropout(),
    "ensemble": Ensemble(),
    "similarity": Similarity(),
}

__all__ = ["METHODS", "Method", "Spread"]
