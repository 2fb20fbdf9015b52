"""The service of a trained model: predictions of JSON and tables over HTTP, and a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.serve.answering import Batcher
    from gtx.serve.app import make_app
    from gtx.serve.limits import Limits
    from gtx.serve.server import serve


# the command line reads the limits without FastAPI
__getattr__, __dir__ = lazy_names(
    __name__,
    {"limits": ("Limits",), "app": ("make_app",), "server": ("serve",), "answering": ("Batcher",)},
)
__all__ = [
    "Batcher",
    "Limits",
    "make_app",
    "serve",
]
