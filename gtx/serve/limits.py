"""How much a request may ask for, and for how long it may wait."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from gtx.errors import InputError


def _limit(default: float, about: str, least: float = 1) -> float:
    return field(default=default, metadata={"help": about, "least": least})


@dataclass(frozen=True)
class Limits:
    """What a service accepts. Each is an option of `gtx serve` of the same name, and is told by `GET /model`.

    Raises:
        InputError: one of them is too small.
    """

    max_body: int = _limit(4 * 2**20, "bytes of a request")
    max_molecules: int = _limit(10_000, "rows of a request")
    max_smiles: int = _limit(2_000, "characters of a SMILES; a longer one is an error of its row")
    max_requests: int = _limit(128, "requests under way at once; more are told to come again")
    max_explained: int = _limit(60, "atoms of a molecule that is explained")
    timeout: float = _limit(60.0, "seconds for a request, from its first byte to the last of the answer", 0.01)
    wait: float = _limit(5.0, "milliseconds that a request waits for others to be predicted with it", 0)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), one.metadata["least"]
            if not least <= value < float("inf"):
                raise InputError(f"{one.name}: expected a number of {least} or more, got {value}")
