"""The parts of attention one can swap, and the sum over all pairs."""

from gtx.attention.complete import attend
from gtx.attention.normalisers import Normaliser, Softmax
from gtx.attention.scores import ScaledDot, Score

__all__ = ["Normaliser", "ScaledDot", "Score", "Softmax", "attend"]
