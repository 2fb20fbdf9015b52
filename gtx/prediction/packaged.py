"""The pretrained model that comes with gtx: its file, checked, and its data card."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from gtx.errors import InputError

FOUNDATION = "foundation"
"""The word that names it, wherever a model file does; a file of that name is `./foundation`, or a `Path`."""

_FOLDER = Path(__file__).with_name("foundation")


def model_path(path: str | Path) -> Path:
    """The file that a path or the word `foundation` names.

    Raises:
        InputError: the file that comes with gtx is not there, or not what its card says.
    """
    if path != FOUNDATION:
        return Path(path)
    file, expected = _FOLDER / "foundation.gtx", foundation_card()["sha256"]
    try:
        found = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as reason:
        raise InputError(f"the foundation is not in this installation of gtx: {reason}") from None
    if found != expected:
        raise InputError(f"{file} is damaged: its card says SHA-256 {expected}, it has {found}; install gtx again")
    return file


def foundation_card() -> dict[str, Any]:
    """What it was made of and how: `sha256`, and texts by heading.

    Raises:
        InputError: it is not there, or damaged.
    """
    try:
        return json.loads((_FOLDER / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise InputError(f"the foundation's card is not in this installation of gtx: {reason}") from None
