"""The page for people: one answer that holds its styles and its scripts, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_PART = re.compile(r"<(style|script)>([\w.]+)</\1>")  # <script>page.js</script>


@cache
def page() -> str:
    """The page as HTML, with the files that it names put in."""
    return _PART.sub(lambda part: f"<{part[1]}>\n{_text(part[2])}</{part[1]}>", _text("page.html"))


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


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
