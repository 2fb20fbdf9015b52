"""The exception that means: this one molecule is at fault."""

from __future__ import annotations


class MoleculeError(ValueError):
    """One molecule cannot be used; the message is one line with the reason, RDKit's own where RDKit refused."""
