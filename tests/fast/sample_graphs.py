"""Graphs of molecules, for tests of what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence

from rdkit import Chem

from gtx.fast.graphs import Graphs, binary


def graphs_of(mols: Sequence[Chem.Mol]) -> tuple[list[Chem.Mol], Graphs]:
    """Those of the molecules whose binary form is as usual, and the graphs of these."""
    usual = [mol for mol in mols if Graphs.read([binary(mol)])[0]]
    count, graphs = Graphs.read([binary(mol) for mol in usual])
    assert count == len(usual)
    return usual, graphs
