"""HTTP service of a trained model: predictions for JSON requests and tables, and a web page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.serve.app import make_app
    from gtx.serve.limits import ServiceLimits
    from gtx.serve.server import serve_model


# the command line reads the limits without FastAPI
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "ServiceLimits",
    "make_app",
    "serve_model",
]
