"""Position and distance encodings: functions of a batch, computed where it lives."""

from gtx.encodings.atoms_and_bonds import AtomTypes, Bonds, Degree, SameRing
from gtx.encodings.distance import (
    BesselDistance,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
    PairDistance,
    SummedDistance,
)
from gtx.encodings.encoding import AddEncoding, Codes, Encoding, Feature, Values
from gtx.encodings.paths import EdgePath, HopMasks, ShortestPath
from gtx.encodings.sinusoidal import Sinusoidal, sinusoidal
from gtx.encodings.space import Direction, Moments, NeighbourTypes
from gtx.encodings.spectral import LaplacianEigenvectors, RandomWalk

__all__ = [
    "AddEncoding",
    "AtomTypes",
    "BesselDistance",
    "Bonds",
    "Codes",
    "Degree",
    "Direction",
    "EdgePath",
    "Encoding",
    "ExpNormDistance",
    "Feature",
    "FourierDistance",
    "GaussianDistance",
    "HopMasks",
    "LaplacianEigenvectors",
    "Moments",
    "NeighbourTypes",
    "PairDistance",
    "RandomWalk",
    "SameRing",
    "ShortestPath",
    "Sinusoidal",
    "SummedDistance",
    "Values",
    "sinusoidal",
]
