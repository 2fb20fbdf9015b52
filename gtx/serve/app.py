"""The paths of the service, and its page: one file with its styles and scripts, which loads nothing else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

import gtx
from gtx.errors import InputError
from gtx.explain.subject import list_explainable_outputs
from gtx.molecules import MoleculeError
from gtx.prediction import NeighbourReportingPredictor, Predictor
from gtx.prediction.streaming import PredictorLike
from gtx.serve import requests as bodies
from gtx.serve.answering import Answer, Busy, Pictures, RequestBatcher, answer, drawing
from gtx.serve.limits import Gauge, Metrics, ServiceLimits
from gtx.serve.requests import Drawing, DrawingError, DrawingSmiles, drawing_of, smiles_of
from gtx.serve.server import Guard, error

PATHS = (
    "/",
    "/health",
    "/metrics",
    "/model",
    "/openapi.json",
    "/predict",
    "/table",
    "/explain",
    "/draw",
    "/smiles",
    "/sketch",
)


class Predictions(BaseModel):
    """Rows for all molecules, in order: cells, answers, and `error` and `warning`, null where there is none."""

    rows: list[dict[str, str | float | bool | None]]
    summary: str


class Picture(BaseModel):
    """Picture and text of an explanation."""

    svg: str
    text: str


class RequestError(BaseModel):
    """Error message of a request."""

    error: str


Responses = dict[int | str, dict[str, Any]]
ERRORS: Responses = {status: {"model": RequestError} for status in (413, 415, 422, 503, 504)}


def make_app(
    predictor: Predictor,
    limits: ServiceLimits | None = None,
    name: str = "model.gtx",
    hosts: Collection[str] = (),
    separate: bool = True,
    domain: bool = False,
) -> FastAPI:
    """Make the ASGI application that serves one model over HTTP, for uvicorn or another ASGI server.

    Args:
        predictor: the model.
        limits: limits of requests.
        name: name of the model on the web page.
        hosts: host names and addresses that requests may use; empty for any.
        separate: whether molecules are read in a separate process; otherwise a slow molecule delays all responses.
        domain: whether responses contain the band of similarity to the training rows, see
            `gtx.prediction.NeighbourReportingPredictor`.

    Raises:
        InputError: the model file has no domain.
    """
    limits, metrics = limits or ServiceLimits(), Metrics()
    answering: PredictorLike = NeighbourReportingPredictor(predictor, None, domain=True) if domain else predictor
    batcher, pictures = RequestBatcher(answering, limits.wait / 1000, metrics, separate), Pictures(predictor, limits)
    metrics.gauges.append(Gauge("gtx_waiting_molecules", "Molecules that wait for the model.", lambda: batcher.waiting))

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        try:
            await batcher.answer(_simplest(predictor))  # compiles functions before the first request
            yield
        finally:
            await asyncio.to_thread(batcher.stop, limits.grace)

    app = FastAPI(title="gtx", version=gtx.__version__, docs_url=None, redoc_url=None, lifespan=running)
    headers = {
        "content-security-policy": policy(),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    app.add_middleware(Guard, limits=limits, metrics=metrics, headers=headers, hosts=hosts, paths=PATHS)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, reason: HTTPException) -> Response:
        return error(reason.status_code, str(reason.detail), reason.headers)

    @app.exception_handler(InputError)
    async def unusable(request: Request, reason: InputError) -> Response:
        return error(413 if isinstance(reason, bodies.TooMany) else 422, str(reason))

    @app.exception_handler(Busy)
    async def busy(request: Request, reason: Busy) -> Response:
        return error(503, "too many explanations wait; try again in a moment", {"retry-after": "5"})

    async def predicted(request: Request, read: Any) -> Answer:
        table = await asyncio.to_thread(read, predictor.header, await request.body())
        rows = await asyncio.to_thread(bodies.all_rows, table, limits.max_molecules)
        result = await answer(table, rows, batcher, limits)
        metrics.molecules.add("error", by=result.row_log.num_errors)
        metrics.molecules.add("predicted", by=result.row_log.rows - result.row_log.num_errors)
        return result

    columns = {"required": True, "content": {"application/json": {"schema": bodies.schema(predictor.header)}}}

    @app.post(
        "/predict",
        response_model=Predictions,
        responses=ERRORS,
        openapi_extra={"requestBody": columns},
        summary="Predict",
    )
    async def predict(request: Request) -> Response:
        """Predict molecules from columns of JSON, all of one length: `{"smiles": ["CCO", "c1ccccc1"]}`."""
        _check_type(request, "application/json")
        result = await predicted(request, bodies.read_json)
        return Response(await asyncio.to_thread(result.records), media_type="application/json")

    text = {"required": True, "content": {kind: {"schema": {"type": "string"}} for kind in bodies.TABLE_TYPES}}

    @app.post(
        "/table",
        response_class=Response,
        responses={200: {"content": {"text/csv": {}, "application/json": {}}}, **ERRORS},
        openapi_extra={"requestBody": text},
    )
    async def table(request: Request) -> Response:
        """Predict a table: a CSV, lines of SMILES or an SDF.

        The answer is the CSV that `gtx predict` writes, or, with `Accept: application/json`, its columns and cells.
        """
        _check_type(request, *bodies.TABLE_TYPES)
        result = await predicted(request, bodies.read_text)
        if "application/json" in request.headers.get("accept", ""):
            return Response(await asyncio.to_thread(result.table), media_type="application/json")
        return Response(await asyncio.to_thread(result.csv), media_type="text/csv")

    schema = bodies.ExplainRequest.model_json_schema()
    explain_body = {"required": True, "content": {"application/json": {"schema": schema}}}

    @app.post("/explain", response_model=Picture, responses=ERRORS, openapi_extra={"requestBody": explain_body})
    async def explain(request: Request) -> Response:
        """Explain a prediction by one of the methods of `gtx explain`."""
        _check_type(request, "application/json")
        return JSONResponse(await pictures.explain(bodies.read_explain_request(await request.body())))

    @app.get(
        "/draw",
        response_class=Response,
        responses={200: {"content": {"image/svg+xml": {}}}, 422: {"model": RequestError}},
    )
    async def draw(smiles: str = "") -> Response:
        """Draw a molecule as SVG."""
        svg = await asyncio.to_thread(drawing, smiles, limits.max_smiles)
        return Response(svg, media_type="image/svg+xml", headers={"cache-control": "max-age=3600"})

    sketch_body = {"required": True, "content": {"application/json": {"schema": Drawing.model_json_schema()}}}

    @app.post(
        "/smiles",
        response_model=DrawingSmiles,
        responses={**ERRORS, 422: {"model": DrawingError}},
        openapi_extra={"requestBody": sketch_body},
    )
    async def smiles(request: Request) -> Response:
        """Convert a drawing to SMILES; an error has the numbers of the `atoms` that are impossible as drawn."""
        _check_type(request, "application/json")
        try:
            return JSONResponse(await asyncio.to_thread(smiles_of, await request.body()))
        except MoleculeError as reason:
            return JSONResponse({"error": f"the drawing {reason}", "atoms": getattr(reason, "atoms", [])}, 422)

    @app.get("/sketch", response_model=Drawing, responses={422: {"model": RequestError}}, summary="Sketch")
    async def sketch_of(smiles: str = "") -> Response:
        """Convert a SMILES to a drawing for the editor."""
        return JSONResponse(await asyncio.to_thread(drawing_of, smiles, limits.max_smiles))

    @app.get("/model")
    async def model() -> dict[str, Any]:
        """Describe the model: what it predicts and reads, and the limits of a request."""
        answers = list(answering.output_columns(bodies.needed(predictor.header)))
        return about(predictor, limits, name) | {"answers": answers}

    @app.get("/health")
    async def health() -> Response:
        """Report whether the service predicts: status 200, or 503."""
        if not batcher.alive:
            return error(503, "the thread of the model has ended")
        return JSONResponse({"status": "ok", "model": name, "gtx": gtx.__version__})

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def counts() -> Response:
        """Write the counts for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse(page())

    return app


def about(predictor: Predictor, limits: ServiceLimits, name: str) -> dict[str, Any]:
    """Build the answer of `GET /model`."""
    header = predictor.header
    try:
        explained = list_explainable_outputs(predictor)
    except InputError:
        explained = []
    return {
        "name": name,
        "task": header.task.name,
        "targets": header.targets,
        "units": header.units,
        "members": len(predictor.members),
        "reads": bodies.needed(header),
        "features": list(header.features.columns) if header.features else [],
        "answers": list(predictor.output_columns(bodies.needed(header))),
        "notes": header.task.notes(),
        "example": bodies.example(header),
        "explained": explained,
        "methods": list(bodies.METHODS),
        "limits": asdict(limits),
        "gtx": gtx.__version__,
    }


def _simplest(predictor: Predictor) -> Any:
    """Make a chunk of one molecule that every model with such inputs can read."""
    columns = predictor.header.features
    return [predictor.header.featuriser.example], [None], [columns and columns.blank_row]


def _check_type(request: Request, *expected: str) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in expected:
        raise HTTPException(415, f"expected content of type {' or '.join(expected)}, got {kind or 'none'!r}")


FOLDER = Path(__file__).parent
_PART = re.compile(r"<(style|script)>([\w.]+)</\1>")  # <script>page.js</script>


@cache
def page() -> str:
    """Return the page as HTML, with its styles and scripts in place of their names."""
    return _PART.sub(lambda part: f"<{part[1]}>\n{_text(part[2])}</{part[1]}>", _text("page.html"))


@cache
def policy() -> str:
    """Write the Content-Security-Policy: only the styles and scripts of the page, by hash, and no other host."""
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
