"""Position and distance encodings: functions of a batch, computed where it lives."""

from gtx.encodings.bonds import Bonds
from gtx.encodings.degree import Degree
from gtx.encodings.distance import GaussianDistance
from gtx.encodings.encoding import AddEncoding, Codes, Encoding, Feature, Values
from gtx.encodings.random_walk import RandomWalk
from gtx.encodings.shortest_path import ShortestPath

__all__ = [
    "AddEncoding",
    "Bonds",
    "Codes",
    "Degree",
    "Encoding",
    "Feature",
    "GaussianDistance",
    "RandomWalk",
    "ShortestPath",
    "Values",
]
