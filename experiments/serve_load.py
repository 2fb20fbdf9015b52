"""A service under load: requests of 1 to 100 molecules from many clients at once, none lost; and how long they take.

    python -m experiments.serve_load run/model.gtx

It starts `gtx serve`, asks, compares every answer with `gtx predict`'s, ends the service and prints a row of
`results/scale.md`.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from threading import local
from typing import NamedTuple

import numpy as np
import pandas as pd

import gtx
from gtx.data import load_set


class Load(NamedTuple):
    """What came of it: seconds of each request, seconds of all, molecules, and how many answers were wrong or none."""

    seconds: np.ndarray
    wall: float
    molecules: int
    lost: int


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--most", type=int, default=100, help="molecules of a request; the least is 1")
    given = parser.parse_args()
    words = [sys.executable, "-m", "gtx", "serve", given.model, "--port=0", "--device=cpu"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            molecules = pd.read_parquet(load_set("xtb9").path)["smiles"].iloc[::10].tolist()
            expected = gtx.load(given.model, "cpu").predict(molecules, workers=0).iloc[:, 1].to_numpy()
            random = np.random.default_rng(0)
            parts = [random.choice(len(molecules), random.integers(1, given.most + 1)) for _ in range(given.requests)]
            port = int(re.search(r":(\d+)$", process.stderr.readline().strip())[1])
            found = load(port, molecules, expected, parts, given.clients)
            together = batches(port)
        finally:
            process.send_signal(signal.SIGTERM)
    half, most = np.percentile(found.seconds, (50, 99)) * 1000
    print(
        f"| {given.requests:,} requests of 1 to {given.most} molecules, {given.clients} clients | {found.lost} lost "
        f"| {half:.0f} ms | {most:.0f} ms | {found.molecules / found.wall:,.0f} molecules/s | {together:.0f} molecules "
        f"a batch | {found.wall:.0f} s | exit status {process.returncode} |"
    )


def load(port: int, molecules: list[str], expected: np.ndarray, parts: list[np.ndarray], clients: int) -> Load:
    """Ask for all parts; each client keeps its connection and asks again as soon as it is answered."""
    own = local()

    def ask(part: np.ndarray) -> tuple[float, bool]:
        if not hasattr(own, "connection"):
            own.connection = HTTPConnection("127.0.0.1", port, timeout=120)
        body, started = json.dumps({"smiles": [molecules[i] for i in part]}), time.perf_counter()
        own.connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = own.connection.getresponse()
        rows = json.loads(answer.read()).get("rows", [])
        took = time.perf_counter() - started
        values = [next(v for k, v in row.items() if k.endswith("_pred")) for row in rows]
        right = answer.status == 200 and len(rows) == len(part) and np.allclose(values, expected[part], rtol=1e-4)
        return took, right

    ask(parts[0])  # it is ready
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        found = list(threads.map(ask, parts))
    wall = time.perf_counter() - started
    return Load(np.array([s for s, _ in found]), wall, sum(map(len, parts)), sum(not right for _, right in found))


def batches(port: int) -> float:
    """Molecules of a batch, on average."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    total, count = (float(re.search(rf"gtx_batch_molecules_{kind} (\S+)", text)[1]) for kind in ("sum", "count"))
    return total / count


if __name__ == "__main__":
    main()
