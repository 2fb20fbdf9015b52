"""Prediction, from a file of SMILES to a file of numbers, against RDKit's bare `MolFromSmiles`, the floor.

The molecules are those of ZINC-12k, repeated as often as need be. The model is the default of `gtx train`, untrained.
gtx reads molecules in this process, in one worker process, in two (on a GPU: in this process and in eight);
`MolFromSmiles` runs over the same texts in the same processes. The first run, in which worker processes start, does not
count. "Where it goes" has reading and the model each alone.
Memory is the peak of the largest process of `gtx predict` on 10,000 rows, libraries included.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from joblib.externals.loky import get_reusable_executor
from rdkit import Chem, RDLogger

from experiments.speed.harness import Record, Work
from experiments.speed.measure import high_water, timed
from experiments.speed.pages import megabytes, molecule_rate, ratio, rival_tables, table
from experiments.speed.samples import default_model, sampled
from gtx.data import featurise
from gtx.prediction import ModelHeader, load, predict_table, save_model

CHUNK = 500
HERE = "in this process"
PROCESSES = {HERE: 0, "1 worker process": 1, "2 worker processes": 2, "8 worker processes": 8}
GTX, BARE, MEMORY = "gtx", "MolFromSmiles", "memory of gtx predict"
PARTS = {"reading and featurising": "read", "the model": "forward", "all else": "rest"}


def groups(options: Namespace) -> list[list[str]]:
    """Each way of reading, then the memory."""
    ways = [HERE, "8 worker processes"] if options.device == "cuda" else [*PROCESSES][:3]
    cases = [[f"{what}, {how}" for what in (BARE, GTX)] for how in ways]
    return [*cases, [f"{MEMORY}, {1000 if options.quick else 10_000}"]]


def make(name: str, options: Namespace) -> Work:
    """A case, such as "gtx, 2 worker processes" or "memory of gtx predict, 10000"."""
    what, how = name.split(", ")
    count = int(how) if what == MEMORY else 1000 if options.quick else 20_000
    smiles = list(dict.fromkeys(sampled("zinc12k")["smiles"]))  # rows repeat as little as they can
    texts, facts = list(islice(cycle(smiles), count)), {"molecules": count}
    if what == BARE:
        chunks = [texts[i : i + CHUNK] for i in range(0, count, CHUNK)]
        each = get_reusable_executor(PROCESSES[how]).map if PROCESSES[how] else map
        return Work({"all": lambda: sum(each(parse, chunks))}, facts, seconds=0.0)
    folder = tempfile.TemporaryDirectory()
    file, saved, out = (Path(folder.name, file) for file in ("molecules.csv", "model.gtx", "predictions.csv"))
    file.write_text("\n".join(["smiles", *texts, ""]))
    task, featuriser, spec, model = default_model()
    save_model(saved, [model.eval()], ModelHeader(task, featuriser, spec))
    if what == MEMORY:
        words = [str(saved), str(file), "--out", str(out), "--device", options.device]
        return Work({"all": lambda: folder.name and _memory(words)}, facts, seconds=0.0, once=True)
    predictor = load(saved, options.device)
    parted = how == HERE and options.device == "cpu"

    def step() -> Record:
        wall, _ = timed(lambda: predict_table(predictor, file, out, workers=PROCESSES[how]), options.device)
        if not (parted and folder.name):
            return {}
        read, done = timed(lambda: featurise(featuriser, texts, workers=0, smiles=False), options.device)
        forward, _ = timed(lambda: predictor.predict_store(done.store), options.device)
        return {"wall": [wall], "parts": {"read": read, "forward": forward, "rest": wall - read - forward}}

    return Work({"all": step}, facts, seconds=0.0)


def parse(smiles: list[str]) -> int:
    """How many of the texts RDKit can read."""
    RDLogger.DisableLog("rdApp.*")
    return sum(Chem.MolFromSmiles(text) is not None for text in smiles)


def _memory(words: list[str]) -> Record:
    command = [sys.executable, "-m", "gtx", "predict", *words]
    wall, _ = timed(lambda: subprocess.run(command, check=True, capture_output=True), "cpu")
    return {"wall": [wall], "peak": high_water(resource.RUSAGE_CHILDREN)}


def tables(records: Sequence[Record]) -> list[str]:
    """Rates, where the time goes, and memory."""
    found = {record["case"]: record for record in records}

    def share(record: Record) -> str:
        bare = ratio(found.get(f"{BARE}, {record['case'].split(', ')[1]}"), record)
        return f"{math.nan if bare is None else bare:.0%}"

    figures = {"molecules per second": molecule_rate, "of MolFromSmiles there": share}
    peak = {"largest process": megabytes, "seconds, start included": lambda record: f"{record['wall']:.1f} s"}
    rates = [record for case, record in found.items() if case.startswith((BARE, GTX))]
    peaks = [record | {"case": f"{int(c.split(', ')[1]):,}"} for c, record in found.items() if c.startswith(MEMORY)]
    made = rival_tables(rates, "SMILES file to predictions", ["what", "where"], figures, ", ")
    gtx, bare = (found.get(f"{what}, {HERE}", {}) for what in (GTX, BARE))
    if "parts" in gtx:
        made.append(_where_it_goes(gtx, bare.get("seconds", math.nan)))
    return made + rival_tables(peaks, "Memory of gtx predict", ["rows"], peak)


def _where_it_goes(gtx: Record, bare: float) -> str:
    """Of the last turn, by part."""
    spent = {what: gtx["parts"][part] / gtx["molecules"] for what, part in PARTS.items()}
    over = {what: f"{own / bare * gtx['molecules']:.2f}x" for what, own in spent.items()}
    rows = [{"what": w, "per molecule": f"{spent[w] * 1e6:.0f} µs", "over MolFromSmiles": over[w]} for w in spent]
    return table(f"Where it goes, {HERE}", rows)
