"""Position and distance encodings: functions of a batch, computed where it lives."""

from gtx.encodings.bonds import Bonds
from gtx.encodings.degree import Degree
from gtx.encodings.edge_path import EdgePath
from gtx.encodings.encoding import AddEncoding, Codes, Encoding, Feature, Values
from gtx.encodings.gaussian_distance import GaussianDistance
from gtx.encodings.pair_distance import PairDistance
from gtx.encodings.random_walk import RandomWalk
from gtx.encodings.shortest_path import ShortestPath

__all__ = [
    "AddEncoding",
    "Bonds",
    "Codes",
    "Degree",
    "EdgePath",
    "Encoding",
    "Feature",
    "GaussianDistance",
    "PairDistance",
    "RandomWalk",
    "ShortestPath",
    "Values",
]
