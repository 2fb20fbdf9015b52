"""Who attends to whom: the complete graph of every molecule, without its pairs."""

from gtx.graph.complete import CompleteGraph
from gtx.graph.packing import Packing

__all__ = ["CompleteGraph", "Packing"]
