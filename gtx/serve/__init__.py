"""HTTP service of a trained model: predictions for JSON requests and tables, and a web page.

`gtx.serve.app` needs the extra `serve`; the command reads the limits of requests, which are here, without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gtx.base.schema import check_fields
from gtx.settings import option
from gtx.settings.training import AtLeastZero

AboveZero = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the HTTP service, such as the number of molecules per request.

    Each limit is an option of `gtx serve` of the same name, and `GET /model` returns it.

    Raises:
        InputError: one of them is too small.
    """

    max_body: AboveZero = option(4 * 2**20, "bytes of a request")
    max_molecules: AboveZero = option(10_000, "rows of a request")
    max_smiles: AboveZero = option(2_000, "characters of a SMILES; a longer one is an error of its row")
    max_connections: Annotated[int, Field(ge=2)] = option(
        128, "open connections; requests on further ones get status 503"
    )
    max_explained: AboveZero = option(60, "atoms of a molecule to explain")
    timeout: Annotated[float, Field(ge=0.01, allow_inf_nan=False)] = option(
        60.0, "seconds for a request; then its work is ended"
    )
    grace: Annotated[int, Field(ge=0)] = option(5, "seconds for open requests when the service shuts down")
    wait: AtLeastZero = option(5.0, "milliseconds that a request waits to be batched with others")

    def __post_init__(self) -> None:
        check_fields(self)
