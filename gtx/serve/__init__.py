"""A trained model behind an address: JSON and tables in and out, and a page for people."""

from __future__ import annotations

from gtx.lazy import lazy_names

# the command line reads the limits without FastAPI
__getattr__, __dir__ = lazy_names(
    __name__,
    {"limits": ("Limits",), "app": ("make_app",), "server": ("serve",), "batching": ("Batcher",)},
)
