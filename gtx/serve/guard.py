"""What every request passes: how many at once, how large, how long; and the headers of every answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gtx.serve.limits import Limits
from gtx.serve.metrics import Metrics

LIGHT = ("/", "/health", "/metrics", "/model", "/openapi.json")
"""Paths that are answered at once, however many requests are under way."""

_THROWN_AWAY = 64 * 2**20  # bytes of a body that is too large: whoever sends it all can read why it was refused

log = logging.getLogger("uvicorn.error")


class Guard:
    """Refuses what is beyond the limits, before it costs anything.

    Args:
        app: what answers.
        limits: what it accepts.
        metrics: where requests are counted.
        headers: of every answer that has no other of that name.
        hosts: by which names the service may be addressed, so that no page of another site reaches it under a name of
            its own (DNS rebinding); none: by any.
        paths: that are counted by name.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        headers: dict[str, str],
        hosts: Collection[str] = (),
        paths: Collection[str] = (),
    ) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self.hosts, self.paths = hosts, paths
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, path = time.monotonic(), scope["path"]
        answer = _Answer(send, self.headers)
        refusal = self._refused(scope)
        if refusal is None:
            refusal = await self._answer(scope, self._bounded(scope, receive), answer)
        if refusal is not None and not answer.status:
            await refusal(scope, receive, answer)
        self.metrics.requests.add(path if path in self.paths else "other", answer.status or "none")
        if scope["method"] == "POST":
            self.metrics.seconds.observe(time.monotonic() - started)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self.hosts and _hostname(host) not in self.hosts:
            return error(421, f"this service is addressed as {' or '.join(sorted(self.hosts))}")
        if scope["path"] not in LIGHT and self.under_way >= self.limits.max_requests:
            return error(503, f"{self.under_way} requests are under way; try again in a moment", {"retry-after": "1"})
        return None

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> JSONResponse | None:
        """Let the service answer; what to say where it does not."""
        counted = scope["path"] not in LIGHT
        self.under_way += counted
        try:
            async with asyncio.timeout(self.limits.timeout) as limit:
                await self.app(scope, receive, answer)
        except ClientDisconnect:
            return None  # there is nobody to tell
        except Exception as reason:
            if limit.expired():
                return error(504, f"not answered within {self.limits.timeout:g} s")
            log.exception("%s %s: %s", scope["method"], scope["path"], reason)
            return error(500, "an error of the service; its log says more")
        finally:
            self.under_way -= counted
        return None

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body as it comes, up to the limit."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            if int(declared) > _THROWN_AWAY:
                raise _too_large(self.limits)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limits.max_body:
                while message.get("more_body") and seen <= _THROWN_AWAY:
                    message = await receive()
                    seen += len(message.get("body", b""))
                raise _too_large(self.limits)
            return message

        return bounded


class _Answer:
    """Sends an answer with the headers of every answer.

    Attributes:
        status: of the answer; 0 as long as there is none.
    """

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.send, self.headers, self.status = send, headers, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = list(message.get("headers", ()))
            named = {name for name, _ in own}
            message["headers"] = [*own, *(one for one in self.headers if one[0] not in named)]
        await self.send(message)


def error(status: int, reason: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer that is an error: `{"error": "what is wrong, in one line"}`."""
    return JSONResponse({"error": reason}, status, headers)


def _too_large(limits: Limits) -> HTTPException:
    return HTTPException(413, f"expected a request of at most {limits.max_body:,} bytes, got more")


def _hostname(host: str) -> Any:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
