"""The service on an address, until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from gtx.errors import InputError

LOCAL = ("127.0.0.1", "localhost", "::1")
_CONNECTIONS = 1_000  # at once; more are refused
_IDLE = 30  # seconds that a connection stays open between requests


def is_local(host: str) -> bool:
    """Whether only this machine can reach a service at that address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def serve(app: FastAPI, host: str, port: int, seconds: float, ready: Callable[[str], None]) -> None:
    """Answer requests until SIGTERM or Ctrl-C comes; then answer those under way, and return or raise what it raises.

    Args:
        app: of `make_app`.
        host: address to bind to.
        port: 0 takes any that is free.
        seconds: how long requests under way are waited for at the end.
        ready: called with the address, such as `http://127.0.0.1:8000`, once it is bound.

    Raises:
        InputError: the address cannot be bound to.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=int(seconds) + 1,
    )
    with bound(host, port) as opened:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{opened.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[opened])


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    if not 0 <= port < 2**16:
        raise InputError(f"port: expected 0 to 65535, got {port}")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as reason:
        raise InputError(f"cannot listen at {host}, port {port}: {reason.strerror or reason}") from None
