"""Position and distance encodings: features of atoms or pairs, computed from a batch on the device of the batch."""

from gtx.encodings.atoms_and_bonds import AtomTypes, BondFeatures, NodeDegree, SameRing
from gtx.encodings.distance import (
    BesselDistance,
    DistanceAdjacencyEncoding,
    DistanceWithCentrality,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
)
from gtx.encodings.encoding import AddEncoding, CategoricalFeatures, ContinuousFeatures, Encoding, Feature
from gtx.encodings.paths import PathLengthMasks, ShortestPathBonds, ShortestPathLength, SimplePathCounts
from gtx.encodings.sinusoidal import SinusoidalPosition, sinusoidal_encoding
from gtx.encodings.space import NeighbourAtomTypes, PairDirection, SpatialMoments
from gtx.encodings.spectral import LaplacianEigenvectors, RandomWalkProbabilities

__all__ = [
    "AddEncoding",
    "AtomTypes",
    "BesselDistance",
    "BondFeatures",
    "CategoricalFeatures",
    "ContinuousFeatures",
    "DistanceAdjacencyEncoding",
    "DistanceWithCentrality",
    "Encoding",
    "ExpNormDistance",
    "Feature",
    "FourierDistance",
    "GaussianDistance",
    "LaplacianEigenvectors",
    "NeighbourAtomTypes",
    "NodeDegree",
    "PairDirection",
    "PathLengthMasks",
    "RandomWalkProbabilities",
    "SameRing",
    "ShortestPathBonds",
    "ShortestPathLength",
    "SimplePathCounts",
    "SinusoidalPosition",
    "SpatialMoments",
    "sinusoidal_encoding",
]
