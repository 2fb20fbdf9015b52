"""The application: what each address of the service answers, and what all requests share.

These are a time limit, counts, headers, errors as JSON, and an end when the client has gone.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from fastapi import Body, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import gtx
from gtx.base.errors import InputError, printable
from gtx.data.rows import Table
from gtx.explain.subject import list_explainable_outputs
from gtx.molecules import MoleculeError, draw_molecule
from gtx.molecules.reactions import read_graph, read_sides
from gtx.molecules.sketch import MOST_ATOMS, Sketch, sketch_to_smiles, smiles_to_sketch
from gtx.prediction import Predictor
from gtx.serve import ServiceLimits
from gtx.serve.processes import Batcher, ModelProcess, explain_in
from gtx.serve.tables import (
    PredictedTable,
    TooManyRows,
    check_smiles,
    make_example,
    predict_rows,
    read_columns,
    read_one_row,
    read_rows,
    read_text,
    write_example,
)

# --- What all requests share.

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
            if first["type"] == "json_invalid":
                why = f"{first['ctx']['error']} at character {first['loc'][-1] + 1}"
                return JSONResponse({"error": f"the request is no JSON: {why}"}, 422)
            place = ".".join(printable(str(part)) for part in first["loc"])
            return JSONResponse({"error": f"the request cannot be used: {place}: {first['msg']}"}, 422)
        case ClientDisconnect():
            return Response(status_code=499)  # nobody reads it; nginx counts such requests so
    return JSONResponse({"error": "an internal error of the service; see its log"}, 500)


# --- What each address answers.

TABLE_TYPES = ("text/csv", "chemical/x-daylight-smiles")
"""Content types of tables; a page of another site cannot send them without a preflight request, unlike a form's."""

PAGE, INDEX = Path(__file__).parent / "page", "index.html"
MOST_EXPLANATIONS = 8  # that run or wait

Method = Literal["substructures", "shapley", "attention"]


class Predictions(BaseModel):
    """Rows for all molecules, in order: cells, answers, and `error` and `warning`, null where there is none."""

    rows: list[dict[str, str | float | bool | None]]
    summary: str


class ExplainRequest(BaseModel):
    """Molecule to explain, and the method, as in `gtx explain`; molecules may have the names of their columns."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, str] = Field(init=False)

    smiles: str | list[str] | None = Field(
        None, examples=["CC(=O)Nc1ccc(O)cc1"], description="for a model of several molecules a row, the SMILES of each"
    )
    method: Method = "substructures"
    target: str | None = Field(None, description="default: the first target of the model")
    features: dict[str, float | str | list[float | None] | None] = Field(
        {}, description="values of the feature columns, by name"
    )


def make_app(
    predictor: Predictor,
    limits: ServiceLimits | None = None,
    name: str = "model.gtx",
    hosts: Collection[str] = (),
    domain: bool = False,
) -> FastAPI:
    """Make the ASGI application that serves one model over HTTP, for uvicorn or another ASGI server.

    Args:
        predictor: the model.
        limits: limits of requests.
        name: name of the model on the web page.
        hosts: host names and addresses that requests may use, so that no page of another site reaches the service under
            a name of its own (DNS rebinding); empty for any.
        domain: whether responses contain the band of similarity to the training rows, see
            `gtx.prediction.Predictor.with_neighbours`.

    Raises:
        InputError: the model file has no domain.
    """
    limits, metrics, header = limits or ServiceLimits(), Metrics(), predictor.header
    example = make_example(header)
    answering = predictor.with_neighbours(domain=True) if domain else predictor
    predicting, explaining = ModelProcess(answering), ModelProcess(predictor)
    batcher = Batcher(predicting, limits.wait / 1000, metrics.batches.observe)
    metrics.waiting.set_function(lambda: batcher.waiting)
    running: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        running.append(asyncio.create_task(batcher.run()))
        try:
            blank = header.features.blank_row
            await batcher.answer(([header.featuriser.example], [None], [blank]))  # what is to be compiled is now
            yield
        finally:
            task = running.pop()
            task.cancel()
            await asyncio.wait((task,))
            for process in (predicting, explaining):
                process.end()

    app = FastAPI(
        title="gtx",
        version=gtx.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        max_body_size=limits.max_body,
        exception_handlers=dict.fromkeys(ERRORS, answer_error),
    )
    app.add_middleware(RequestGuard, seconds=limits.timeout, hosts=hosts, metrics=metrics)

    async def predict_table(request: Request, table: Table) -> PredictedTable:
        table = await asyncio.to_thread(read_rows, table, limits.max_molecules, limits.max_smiles)
        done = await while_connected(request, predict_rows(table, batcher))
        metrics.molecules.labels("error").inc(done.row_log.num_errors)
        metrics.molecules.labels("predicted").inc(done.row_log.rows - done.row_log.num_errors)
        return done

    columns_in_body = Body(examples=[example])

    @app.post("/predict", response_model=Predictions)
    async def predict(request: Request, columns: dict[str, list[JsonValue]] = columns_in_body) -> Response:
        """Predict molecules from columns of JSON, all of one length: `{"smiles": ["CCO", "c1ccccc1"]}`."""
        done = await predict_table(request, read_columns(header, columns))
        return Response(await asyncio.to_thread(done.records, columns), media_type="application/json")

    text = {kind: {"schema": {"type": "string"}} for kind in TABLE_TYPES}

    @app.post(
        "/table",
        response_class=Response,
        responses={200: {"content": {"text/csv": {}, "application/json": {}}}},
        openapi_extra={"requestBody": {"required": True, "content": text}},
    )
    async def table(request: Request) -> Response:
        """Predict a table: a CSV or lines of SMILES.

        The answer is the CSV that `gtx predict` writes, or, with `Accept: application/json`, its columns and cells.
        """
        if content_type(request) not in TABLE_TYPES:
            raise unexpected_type(request, *TABLE_TYPES)
        done = await predict_table(request, await asyncio.to_thread(read_text, header, await request.body()))
        if "application/json" in request.headers.get("accept", ""):
            return Response(await asyncio.to_thread(done.table), media_type="application/json")
        return Response(await asyncio.to_thread(done.csv), media_type="text/csv")

    @app.post("/explain")
    async def explain_molecule(request: Request, asked: ExplainRequest) -> dict[str, str]:
        """Explain a prediction by one of the methods of `gtx explain`: a picture, `svg`, and lines of `text`."""
        if explaining.calls >= MOST_EXPLANATIONS:
            raise HTTPException(503, "too many explanations wait; try again in a moment", {"retry-after": "5"})
        smiles = read_one_row(header, asked.smiles, asked.__pydantic_extra__)
        for text in (smiles,) if isinstance(smiles, str) else smiles:
            check_smiles(text, limits.max_smiles)
        words = (smiles, asked.method, asked.target, asked.features, limits.max_explained)
        return await while_connected(request, explain_in(explaining, *words))

    # FastAPI calls these plain functions in threads

    @app.get("/draw", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}})
    def draw(smiles: Annotated[list[str], Query()]) -> Response:
        """Draw a molecule, a reaction, or the molecules of a row, which repeat `smiles`, as SVG."""
        for text in smiles:
            check_smiles(text, limits.max_smiles)
        molecules = [read_graph(text) for text in smiles]
        if (atoms := sum(mol.GetNumAtoms() for mol in molecules)) > MOST_ATOMS:
            raise MoleculeError(f"has {atoms} atoms; a drawing may have {MOST_ATOMS}")
        pictures = sum(len(read_sides(text)) for text in smiles)
        svg = draw_molecule(molecules, size=(60 + 180 * pictures, 150))
        return Response(svg, media_type="image/svg+xml", headers={"cache-control": "max-age=3600"})

    @app.post("/smiles")
    def convert_drawing(drawing: Sketch) -> dict[str, Any]:
        """Convert a drawing to SMILES and the number of hydrogen atoms at each atom.

        An error has the numbers of the `atoms` that are impossible as drawn.
        """
        smiles, hydrogens = sketch_to_smiles(drawing)
        return {"smiles": smiles, "hydrogens": hydrogens}

    @app.get("/sketch")
    def convert_smiles(smiles: str = "") -> Sketch:
        """Convert a SMILES to a drawing for the editor."""
        check_smiles(smiles, limits.max_smiles)
        return smiles_to_sketch(smiles)

    @app.get("/model")
    async def model() -> dict[str, Any]:
        """Describe the model: what it predicts and reads, and the limits of a request."""
        try:
            explained = list_explainable_outputs(predictor)
            explaining.start()  # the page asks for this first, so that its first explanation need not wait
        except InputError:
            explained = []
        return {
            "name": name,
            "task": header.task.name,
            "targets": header.targets,
            "units": header.units,
            "members": len(predictor.members),
            "reads": list(example),
            "components": list(header.featuriser.components),
            "reaction": header.featuriser.sides > 1,
            "features": list(header.features.columns),
            "answers": list(answering.output_columns(example)),
            "notes": header.task.answers.notes(),
            "example": write_example(example),
            "explained": explained,
            "methods": get_args(Method),
            "limits": asdict(limits),
            "gtx": gtx.__version__,
        }

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report whether the service predicts: status 200, or 503."""
        if not running or running[0].done():
            raise HTTPException(503, "the service does not predict; see its log")
        return {"status": "ok", "model": name, "gtx": gtx.__version__}

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def count() -> Response:
        """Write the counts for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    def page(request: Request) -> FileResponse:
        return FileResponse(PAGE / (request.url.path[1:] or INDEX))

    for path in ("", *(file.name for file in PAGE.iterdir())):  # alone: a folder at / would answer all that is GET
        app.add_route(f"/{path}", page)
    return app
