"""The page for people: one answer that holds its style and its script, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("page.html")


@cache
def page() -> str:
    """The page as HTML."""
    return FILE.read_text(encoding="utf-8")


@cache
def policy() -> str:
    """Its Content-Security-Policy: no style and no script but those in it, by their hashes, and no other address."""
    hashes = {
        kind: " ".join(f"'sha256-{_hash(text)}'" for text in re.findall(rf"<{kind}>(.*?)</{kind}>", page(), re.DOTALL))
        for kind in ("style", "script")
    }
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {hashes['style']}",
            f"script-src {hashes['script']}",
            "connect-src 'self'",
            "img-src 'self' data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
