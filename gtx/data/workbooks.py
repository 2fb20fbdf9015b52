"""Files that people take for tables of text and that are none: workbooks, and the UTF-16 text of spreadsheets."""

from __future__ import annotations

import os

from gtx.errors import InputError

HEAD = 4
"""How many first bytes tell."""
_REMEDY = "save it as CSV UTF-8"
_ZIP = b"PK\x03\x04"  # .xlsx, .xlsm, .xlsb, .ods
_OLE = b"\xd0\xcf\x11\xe0"  # .xls, and a workbook with a password
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what Excel calls Unicode text


def refuse_workbook(head: bytes, name: str) -> None:
    """Raise an `InputError` for the first bytes of a file that is no text of UTF-8, with what to do about it."""
    if head.startswith(_UTF_16):
        raise InputError(f"{name} is UTF-16 text: {_REMEDY}")
    ending = os.path.splitext(name.lower())[1]
    if head.startswith(_ZIP) and ending == ".zip":
        raise InputError(f"{name} is a ZIP file: unpack it, and give the table inside")
    if head.startswith(_ZIP) and ending == ".ods":
        raise InputError(f"{name} is a LibreOffice workbook: {_REMEDY}")
    if head.startswith((_ZIP, _OLE)):
        raise InputError(f"{name} is an Excel workbook: {_REMEDY}")
