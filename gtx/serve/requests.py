"""What all requests share: a time limit, counts, headers, errors as JSON, and an end when the client has gone."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gtx.base.errors import InputError, printable
from gtx.molecules import MoleculeError
from gtx.serve.tables import TooManyRows

Result = TypeVar("Result")


class Metrics:
    """Metrics of the service, for Prometheus."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        sizes = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)
        self.requests = Counter("gtx_requests", "Requests answered.", ["path", "status"], registry=own)
        self.molecules = Counter("gtx_molecules", "Rows answered.", ["outcome"], registry=own)
        self.batches = Histogram("gtx_batch_molecules", "Molecules predicted together.", buckets=sizes, registry=own)
        self.seconds = Histogram("gtx_request_seconds", "Seconds of a POST request.", registry=own)
        self.waiting = Gauge("gtx_waiting_molecules", "Molecules that wait for the model.", registry=own)


HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Headers of every answer that has none of that name: a browser loads from this service alone, and runs its files."""


class RequestGuard:
    """ASGI middleware that refuses a request to another host, ends one some seconds after its headers, counts it, and
    adds headers to its answer.

    Args:
        app: the application behind.
        seconds: time of a request.
        hosts: names and addresses that the header `Host` may have beside a port; empty for any.
        metrics: where requests are counted.
    """

    def __init__(self, app: ASGIApp, seconds: float, hosts: Collection[str], metrics: Metrics) -> None:
        self.app = app
        self.seconds = seconds
        self.hosts = hosts
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status = time.monotonic(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        host = re.sub(r":\d*$", "", Headers(scope=scope).get("host", "")).lower()
        try:
            if self.hosts and host not in self.hosts:
                expected = f"expected a request to {', '.join(sorted(self.hosts))}, got {printable(host)}"
                return await JSONResponse({"error": expected}, 400)(scope, receive, answer)
            async with asyncio.timeout(self.seconds):
                await self.app(scope, receive, answer)
        except TimeoutError:
            if not status:
                late = JSONResponse({"error": f"not answered within {self.seconds:g} s"}, 504)
                await late(scope, receive, answer)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path, status or 500).inc()
            if scope["method"] == "POST":
                self.metrics.seconds.observe(time.monotonic() - started)


_POLL = 0.1  # seconds


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of some work; cancel it when the client has gone or the time of the request is over.

    Raises:
        ClientDisconnect: the client has gone.
    """
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait((task,), timeout=_POLL))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()  # without effect where it is done
        await asyncio.wait((task,))


def content_type(request: Request) -> str:
    """Return the type of the content of a request, without parameters, in lower case; empty if it names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unexpected_type(request: Request, *expected: str) -> HTTPException:
    """Make the error for content of another type than the expected ones."""
    got = printable(content_type(request)) or "none"
    return HTTPException(415, f"expected content of type {' or '.join(expected)}, got {got}")


ERRORS = (HTTPException, InputError, MoleculeError, RequestValidationError, ClientDisconnect, Exception)
"""What `answer_error` answers."""


async def answer_error(request: Request, reason: Exception) -> Response:
    """Answer an exception by `{"error": "the reason in one line"}`."""
    match reason:
        case HTTPException():
            return JSONResponse({"error": str(reason.detail)}, reason.status_code, reason.headers)
        case InputError():
            return JSONResponse({"error": str(reason)}, 413 if isinstance(reason, TooManyRows) else 422)
        case MoleculeError():
            return JSONResponse({"error": f"the molecule {reason}", "atoms": getattr(reason, "atoms", [])}, 422)
        case RequestValidationError() if isinstance(reason.body, bytes):  # FastAPI reads JSON by its type alone
            return await answer_error(request, unexpected_type(request, "application/json"))
        case RequestValidationError():
            first = reason.errors()[0]
            place = ".".join(printable(str(part)) for part in first["loc"])
            return JSONResponse({"error": f"the request cannot be used: {place}: {first['msg']}"}, 422)
        case ClientDisconnect():
            return Response(status_code=499)  # nobody reads it; nginx counts such requests so
    return JSONResponse({"error": "an internal error of the service; see its log"}, 500)
