"""The server: it listens at an address until a signal, and refuses too many or too large requests."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from gtx.errors import InputError
from gtx.serve.limits import Metrics, ServiceLimits

LOCAL = ("127.0.0.1", "localhost", "::1")
_CONNECTIONS = 1_000  # open connections; further ones are refused
_IDLE = 30  # seconds that a connection stays open between requests
_HEADERS = 10  # seconds for the headers of a request


def is_local(host: str) -> bool:
    """Return True for an address that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Protocol(H11Protocol):
    """HTTP over a connection that is closed if the headers of a request take too long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:  # another request begins
            self._expect_headers()
        super().data_received(data)

    def _expect_headers(self) -> None:
        before = self.cycle  # uvicorn's object of a request and its answer, made when all headers have come
        self.loop.call_later(_HEADERS, lambda: self.transport.close() if self.cycle is before else None)


def server_of(app: FastAPI, grace: float) -> uvicorn.Server:
    """Make a server with limits on connections, which ends at most `grace` seconds after a signal."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        http=Protocol,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=grace,  # type: ignore[arg-type]  # asyncio.wait_for takes fractions
    )
    return uvicorn.Server(config)


def serve_model(app: FastAPI, host: str, port: int, grace: float, ready: Callable[[str], None]) -> None:
    """Serve a model over HTTP until SIGTERM or Ctrl-C; then finish open requests, and return or raise the exception.

    Args:
        app: application from `make_app`.
        host: address at which the server listens.
        port: port of the server; 0 for any free port.
        grace: time for open requests at the end, in seconds.
        ready: function that is called with the address, such as `http://127.0.0.1:8000`, when the server listens.

    Raises:
        InputError: the server cannot listen at this address.
    """
    with bound(host, port) as opened:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{opened.getsockname()[1]}")
        server_of(app, grace).run(sockets=[opened])


def bound(host: str, port: int) -> socket.socket:
    """Open a socket that listens at an address."""
    if not 0 <= port < 2**16:
        raise InputError(f"port: expected 0 to 65535, got {port}")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as reason:
        if reason.errno == errno.EADDRINUSE:
            others = "use another --port, or 0 for any free port"
            raise InputError(f"port {port} is in use: another program listens at {host}; {others}") from None
        raise InputError(f"cannot listen at {host}, port {port}: {reason.strerror or reason}") from None


LIGHT = ("/", "/health", "/metrics", "/model", "/openapi.json")
"""Paths that are answered at once, however many requests are open."""

_DISCARDED = 64 * 2**20  # bytes of a body that is too large, read to its end so that the client gets the error

log: logging.Logger = logging.getLogger("uvicorn.error")


class Guard:
    """Refuses requests beyond the limits, before they cost anything.

    Args:
        app: answers the other requests.
        limits: of requests.
        metrics: where requests are counted.
        headers: added to every answer that has no header of that name.
        hosts: host names that requests may use, so that no page of another site reaches the service under a name of its
            own (DNS rebinding); empty for any.
        paths: those that are counted by name.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: ServiceLimits,
        metrics: Metrics,
        headers: dict[str, str],
        hosts: Collection[str] = (),
        paths: Collection[str] = (),
    ) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.headers: list[tuple[bytes, bytes]] = [
            (name.lower().encode(), value.encode()) for name, value in headers.items()
        ]
        self.hosts = hosts
        self.paths = paths
        self.num_open: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, path = time.monotonic(), scope["path"]
        answer = _Answer(send, self.headers)
        refusal = self._refused(scope)
        if refusal is None:
            refusal = await self._answer(scope, receive, answer)
        if refusal is not None and not answer.status:
            await refusal(scope, receive, answer)
        self.metrics.requests.add(path if path in self.paths else "other", answer.status or "none")
        if scope["method"] == "POST":
            self.metrics.seconds.observe(time.monotonic() - started)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self.hosts and _hostname(host) not in self.hosts:
            return error(421, f"expected the host {' or '.join(sorted(self.hosts))}, got {host!r}")
        if scope["path"] not in LIGHT and self.num_open >= self.limits.max_requests:
            return error(503, f"{self.num_open} requests are open; try again in a moment", {"retry-after": "1"})
        return None

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> JSONResponse | None:
        """Let the service answer, until the client has gone or the time is over; return an error if it does not."""
        counted, whole = scope["path"] not in LIGHT, asyncio.Event()

        async def run() -> None:
            await self.app(scope, self._bounded(scope, receive, whole), answer)

        work = asyncio.create_task(run())
        gone = asyncio.create_task(_disconnected(receive, whole))
        self.num_open += counted
        try:
            await asyncio.wait((work, gone), timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                late = error(504, f"not answered within {self.limits.timeout:g} s")
                return None if gone.done() else late  # no client is left to answer
            await work
        except ClientDisconnect:
            return None
        except Exception as reason:
            log.exception("%s %s: %s", scope["method"], scope["path"], reason)
            return error(500, "an internal error of the service; see its log")
        finally:
            self.num_open -= counted
            for task in (work, gone):
                task.cancel()
            await asyncio.wait((work, gone))
        return None

    def _bounded(self, scope: Scope, receive: Receive, whole: asyncio.Event) -> Receive:
        """Receive the body up to the limit; `whole` is set when all of it has come."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            if int(declared) > _DISCARDED:
                raise _too_large(self.limits)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limits.max_body:
                while message.get("more_body") and seen <= _DISCARDED:
                    message = await receive()
                    seen += len(message.get("body", b""))
                raise _too_large(self.limits)
            if not message.get("more_body"):
                whole.set()
            return message

        return bounded


async def _disconnected(receive: Receive, whole: asyncio.Event) -> None:
    """Wait until the client closes the connection, after its whole request has come."""
    await whole.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


class _Answer:
    """Sends an answer with the headers of every answer.

    Attributes:
        status: of the answer; 0 before it starts.
    """

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.send, self.headers, self.status = send, headers, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            message["headers"] = [*headers, *(header for header in self.headers if header[0] not in names)]
        await self.send(message)


def error(status: int, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Make an answer that is an error: `{"error": "the reason in one line"}`."""
    return JSONResponse({"error": reason}, status, headers)


def _too_large(limits: ServiceLimits) -> HTTPException:
    return HTTPException(413, f"expected a request of at most {limits.max_body:,} bytes, got more")


def _hostname(host: str) -> Any:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
