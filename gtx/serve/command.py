"""`gtx serve`: the command that this annex adds to gtx."""

from __future__ import annotations

import errno
import socket
from argparse import Namespace
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from gtx.base.errors import InputError, Terminated
from gtx.cli.parser import options_of
from gtx.cli.printing import note
from gtx.serve import ServiceLimits
from gtx.settings import option, word

if TYPE_CHECKING:
    from fastapi import FastAPI
    from uvicorn import Server

LOCAL = ("127.0.0.1", "localhost", "[::1]")

ABOUT = "serve predictions over HTTP, with a web page"
EXAMPLES = """
examples:
  gtx serve run/model.gtx
  gtx serve run/model.gtx --port 9000 --max-molecules 1000
  gtx serve run/model.gtx --host 0.0.0.0

  curl http://127.0.0.1:8000/predict -H 'Content-Type: application/json' \\
    -d '{"smiles": ["CCO"]}'
  curl http://127.0.0.1:8000/table -H 'Content-Type: text/csv' \\
    --data-binary @molecules.csv
"""
NOTES = """
The address shows a web page, on which you paste SMILES, draw molecules or drop a table. Programs send JSON to /predict
or tables to /table; /openapi.json describes both, and /health and /metrics are for monitoring. There is no password:
anyone who reaches the address can use the service. By default, only this machine can. After SIGTERM or Ctrl-C, the
service answers the open requests, for at most --grace seconds, and ends with status 0.
"""


USAGE = "gtx serve MODEL [options]"


@dataclass(frozen=True)
class ServeOptions:
    """Options of the command, beside those of `ServiceLimits`."""

    model: str = word("MODEL", "a model file, such as run/model.gtx")
    host: str = option("127.0.0.1", "address of the service; 0.0.0.0: all network interfaces", metavar="ADDRESS")
    port: int = option(8000, "port; 0: any free port")
    device: str | None = option(None, "device: cpu, cuda or cuda:1; default: a GPU if there is one")
    domain: bool = option(False, "also answer the band of similarity to the training rows, and the error in this band")


OPTIONS = [*options_of(ServeOptions, "options"), *options_of(ServiceLimits, "limits")]


def run(arguments: Namespace) -> int:
    """Serve until a signal ends the service; then finish open requests."""
    limits = ServiceLimits(**{field.name: getattr(arguments, field.name) for field in fields(ServiceLimits)})
    try:
        from gtx.serve.app import make_app
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("gtx"):
            raise
        raise InputError(f"gtx serve needs {missing.name}: in the folder of gtx, pip install '.[serve]'") from None
    from gtx.prediction import load_predictor

    predictor, local = load_predictor(arguments.model, arguments.device), is_local(arguments.host)
    hosts = {*LOCAL, arguments.host} if local else ()
    app = make_app(predictor, limits, Path(arguments.model).name, hosts, domain=arguments.domain)
    server = make_server(app, limits)
    with open_socket(arguments.host, arguments.port) as opened:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        address = f"http://{host}:{opened.getsockname()[1]}"
        note(f"gtx serve: {', '.join(predictor.header.targets)} of {arguments.model} at {address}")
        access = "anyone who reaches this machine can use it; there is no password"
        if local:
            access = "only this machine can reach it (--host 0.0.0.0 admits others)"
        note(f"gtx serve: {access}")
        try:
            server.run(sockets=[opened])
        except (KeyboardInterrupt, Terminated):  # raised by uvicorn after its end
            note("gtx serve: ended")
    return 0


def make_server(app: FastAPI, limits: ServiceLimits) -> Server:
    """Make a server of an application, with limits on connections and on the time for open requests at the end."""
    from uvicorn import Config, Server

    config = Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        limit_concurrency=limits.max_connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=limits.grace,
    )
    return Server(config)


def is_local(host: str) -> bool:
    """Return True for an address that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens at an address.

    Raises:
        InputError: this machine has no such address, or another program listens there.
    """
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
