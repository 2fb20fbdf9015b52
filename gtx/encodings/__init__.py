"""Position and distance encodings: features of atoms or pairs, computed from a batch on the device of the batch."""

from gtx.encodings.atoms_and_bonds import AtomTypes, BondFeatures, BothSides, NodeDegree
from gtx.encodings.distance import (
    BesselDistance,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
    MATDistanceAndAdjacency,
    TransformerM3DEncoding,
)
from gtx.encodings.encoding import AddEncodingToData, CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding
from gtx.encodings.paths import SameRing, ShortestPathBonds, ShortestPathLength, ShortestPathOneHot, SimplePathCounts
from gtx.encodings.sinusoidal import SinusoidalPosition
from gtx.encodings.space import NeighbourAtomTypes, NeighbourDistancesAndAngles, PairUnitVector
from gtx.encodings.spectral import LaplacianEigenvectors, RandomWalkProbabilities

__all__ = [
    "AddEncodingToData",
    "AtomTypes",
    "BesselDistance",
    "BondFeatures",
    "BothSides",
    "CategoricalFeatureSpec",
    "ContinuousFeatureSpec",
    "Encoding",
    "ExpNormDistance",
    "FourierDistance",
    "GaussianDistance",
    "LaplacianEigenvectors",
    "MATDistanceAndAdjacency",
    "NeighbourAtomTypes",
    "NeighbourDistancesAndAngles",
    "NodeDegree",
    "PairUnitVector",
    "RandomWalkProbabilities",
    "SameRing",
    "ShortestPathBonds",
    "ShortestPathLength",
    "ShortestPathOneHot",
    "SimplePathCounts",
    "SinusoidalPosition",
    "TransformerM3DEncoding",
]
