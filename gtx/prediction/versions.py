"""Which versions a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import gtx

LIBRARIES = ("torch", "torch-geometric", "rdkit", "pytorch-lightning", "numpy")


def library_versions() -> dict[str, str]:
    """Versions of gtx, Python and the libraries that decide a result."""
    found = {"gtx": gtx.__version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # installed without its metadata
            found[library] = "unknown"
    return found
