"""How sure a model is of a number: one file a method, all with the same answers, a standard deviation and an interval.

`METHODS` names them by the words that the command line and model files use. `none` is no method: an interval of one
width for all molecules.
"""

from gtx.tasks.uncertainty.dropout import McDropout
from gtx.tasks.uncertainty.ensemble import Ensemble
from gtx.tasks.uncertainty.evidential import Evidential
from gtx.tasks.uncertainty.method import Method, Spread
from gtx.tasks.uncertainty.quantiles import Quantiles
from gtx.tasks.uncertainty.similarity import Similarity
from gtx.tasks.uncertainty.variance import Variance

METHODS: dict[str, Method] = {
    "variance": Variance(),
    "quantiles": Quantiles(),
    "evidential": Evidential(),
    "dropout": McDropout(),
    "ensemble": Ensemble(),
    "similarity": Similarity(),
}

__all__ = ["METHODS", "Method", "Spread"]
