"""The exception that means: this one molecule is at fault."""

from __future__ import annotations


class MoleculeError(ValueError):
    """One molecule cannot be used; the message is one line with the reason, RDKit's own where RDKit refused."""

    @classmethod
    def because(cls, what: str, error: Exception) -> MoleculeError:
        """`what`, and what RDKit's exception says in its first lines; a trace of RDKit's own code follows there."""
        lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
        return cls(f"{what}: {shortened('; '.join(lines[:2])) or type(error).__name__}")


def shortened(reason: str, most: int = 200) -> str:
    """A reason that does not list a thousand atoms."""
    return reason if len(reason) <= most else f"{reason[: most - 1]}…"
