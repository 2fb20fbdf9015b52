"""Limits on the requests to the service."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

from gtx.base.errors import InputError

Number = TypeVar("Number", int, float)


def _limit(default: Number, about: str, least: float = 1) -> Number:
    return field(default=default, metadata={"help": about, "least": least})


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the HTTP service, such as the number of molecules per request.

    Each limit is an option of `gtx serve` of the same name, and `GET /model` returns it.

    Raises:
        InputError: one of them is too small.
    """

    max_body: int = _limit(4 * 2**20, "bytes of a request")
    max_molecules: int = _limit(10_000, "rows of a request")
    max_smiles: int = _limit(2_000, "characters of a SMILES; a longer one is an error of its row")
    max_connections: int = _limit(128, "open connections; requests on further ones get status 503", 2)
    max_explained: int = _limit(60, "atoms of a molecule to explain")
    timeout: float = _limit(60.0, "seconds for a request; then its work is ended", 0.01)
    grace: int = _limit(5, "seconds for open requests when the service shuts down", 0)
    wait: float = _limit(5.0, "milliseconds that a request waits to be batched with others", 0)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), one.metadata["least"]
            if not least <= value < float("inf"):
                raise InputError(f"{one.name}: expected a number of {least} or more, got {value}")
