"""Rings beside those of `tests.molecules_for_tests`."""

RINGS = [
    "c1ccc2ccccc2c1",  # naphthalene: fused
    "C1CCC2(CC1)CCOC2",  # spiro
    "C1CC2CCC1C2",  # norbornane: bridged
    "C12C3C4C1C5C2C3C45",  # cubane: many shortest paths
    "C1CCC=CC1",  # cyclohexene: two shortest paths across, over other bonds
]
