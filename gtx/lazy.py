"""Annexes: folders of gtx that may be deleted."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import overload

from gtx.base.errors import InputError


@overload
def annex(name: str) -> ModuleType | None: ...
@overload
def annex(name: str, user: str) -> ModuleType: ...
def annex(name: str, user: str | None = None) -> ModuleType | None:
    """Import an annex: a folder of gtx that may have been deleted.

    Args:
        name: of the folder, optionally followed by a dot and a module.
        user: what needs it, such as "a folder of tables"; named in the error.

    Returns:
        The module; None if it was deleted and `user` is None.

    Raises:
        InputError: it was deleted, and `user` needs it.
    """
    room = name.partition(".")[0]
    if find_spec(f"gtx.{room}"):
        return import_module(f"gtx.{name}")
    if user is None:
        return None
    raise InputError(f"{user} needs gtx/{room}, which this gtx lacks")
