"""Annex: compiled code that featurises molecules faster than `gtx.molecules.perception`, with identical results.

RDKit parses each text; from its binary form compiled code derives codes and descriptors. All code
of gtx that reproduces computations of RDKit is in this folder, and tests hold every result equal to RDKit's. Unusual
molecules are left to RDKit, and so are all with `GTX_FAST=0` in the environment, or without this folder.
"""

from gtx.fast.perception import featurise_with_compiled_code

__all__ = ["featurise_with_compiled_code"]
