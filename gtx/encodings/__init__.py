"""Position and distance encodings: features of atoms or pairs, computed from a batch on the device of the batch."""

from gtx.encodings.atoms_and_bonds import AtomTypes, BondFeatures, NodeDegree
from gtx.encodings.encoding import AddEncodingToData, CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding
from gtx.encodings.paths import SameRing, ShortestPathBonds, ShortestPathLength, ShortestPathOneHot, SimplePathCounts
from gtx.encodings.positions import LaplacianEigenvectors, RandomWalkProbabilities, SinusoidalPosition
from gtx.encodings.sides import BothSides
from gtx.encodings.space import (
    BesselDistance,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
    MATDistanceAndAdjacency,
    NeighbourAtomTypes,
    NeighbourDistancesAndAngles,
    PairUnitVector,
    TransformerM3DEncoding,
)

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
