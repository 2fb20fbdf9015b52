"""A model in closed form: ridge regression with the Tanimoto kernel of counts of circular substructures."""

from __future__ import annotations

from gtx.kernel.counts import Counts
from gtx.kernel.ridge import Solution, solve
from gtx.kernel.tanimoto import TanimotoKernel

__all__ = ["Counts", "Solution", "TanimotoKernel", "solve"]
