"""Position and distance encodings: functions of a batch, computed where it lives."""

from gtx.encodings.atom_types import AtomTypes
from gtx.encodings.bessel_distance import BesselDistance
from gtx.encodings.bonds import Bonds
from gtx.encodings.degree import Degree
from gtx.encodings.direction import Direction
from gtx.encodings.edge_path import EdgePath
from gtx.encodings.encoding import AddEncoding, Codes, Encoding, Feature, Values
from gtx.encodings.exp_norm_distance import ExpNormDistance
from gtx.encodings.fourier_distance import FourierDistance
from gtx.encodings.gaussian_distance import GaussianDistance
from gtx.encodings.hop_masks import HopMasks
from gtx.encodings.laplacian import LaplacianEigenvectors
from gtx.encodings.moments import Moments
from gtx.encodings.neighbour_types import NeighbourTypes
from gtx.encodings.pair_distance import PairDistance
from gtx.encodings.random_walk import RandomWalk
from gtx.encodings.same_ring import SameRing
from gtx.encodings.shortest_path import ShortestPath
from gtx.encodings.sinusoidal import Sinusoidal, sinusoidal
from gtx.encodings.summed_distance import SummedDistance

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
