"""Prediction, from a file of SMILES to a file of numbers, against RDKit's bare `MolFromSmiles`, the floor.

    python -m experiments.speed.bench_prediction
    python -m experiments.speed.bench_prediction --million

The molecules are those of ZINC-12k, repeated as often as need be. The model is the default of `gtx train` with weights
as they are drawn: its speed does not depend on them. gtx reads molecules in this process, in one worker process, in
two; `MolFromSmiles` runs over the same texts in this process, in one, in two. The first run, in which worker processes
start, does not count. Where the time goes is told for one thread, beside what the model's matrix products alone would
take at the rate of a product of two 1024 x 1024 matrices in one thread, measured in the same run. Memory is the peak of
the largest process of `gtx predict` on 10,000 rows and, with `--million`, on 1,000,000, libraries included: it should
not grow with the rows.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

import torch
from joblib.externals.loky import get_reusable_executor
from rdkit import Chem, RDLogger
from torch.utils.flop_counter import FlopCounterMode

from experiments.speed import bench_floor
from experiments.speed.harness import Record, Topic, Work
from experiments.speed.measure import Stopwatch
from experiments.speed.measured import main, megabytes, ratio, rival_table, table
from experiments.speed.samples import sampled
from gtx.data import featurise, featurising
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader, load, predict_table, save_model
from gtx.tasks import Regression, TargetScaler
from gtx.training import TrainSettings
from gtx.workflow.specs import model_spec

CHUNK = 500
HERE, ALONE = "in this process", "in this process with one thread"
PROCESSES = {HERE: 0, ALONE: 0, "1 worker process": 1, "2 worker processes": 2}
GTX, BARE, MEMORY = "gtx", "MolFromSmiles", "memory of gtx predict"
MATRIX = f"{bench_floor.MATRIX}, float32"
PARTS = {"reading and featurising": "read", "the model": "forward", "all else": "rest"}


def make_case(name: str, read: Namespace) -> Work:
    """A case, such as "gtx, 2 worker processes" or "memory of gtx predict, 10000"."""
    if name == MATRIX or name.endswith(ALONE):
        torch.set_num_threads(1)
    if name == MATRIX:
        return bench_floor.make_case(name, read)
    what, how = name.split(", ")
    count = int(how) if what == MEMORY else 1000 if read.quick else 20_000
    smiles = list(dict.fromkeys(sampled("zinc12k")["smiles"]))  # rows repeat as little as they can
    texts, facts = list(islice(cycle(smiles), count)), {"molecules": count}
    if what == BARE:
        return Work({"all": _bare(texts, PROCESSES[how])}, facts, seconds=0.0)
    folder = tempfile.TemporaryDirectory()
    table, model, out = (Path(folder.name, file) for file in ("molecules.csv", "model.gtx", "predictions.csv"))
    table.write_text("smiles\n" + "".join(f"{text}\n" for text in texts))
    save_untrained(model)
    if what == MEMORY:
        return Work({"all": lambda: _memory(folder, model, table, out)}, facts, seconds=0.0, once=True)
    predictor, watch = load(model, "cpu"), Stopwatch()
    if how == ALONE:
        some = featurise(predictor.header.featuriser, smiles[:CHUNK], workers=0, smiles=False).store
        with FlopCounterMode(display=False) as counter:
            predictor.predict_store(some)
        facts["products"] = counter.get_total_flops() / 2 / len(some)
        watch.put_on(featurising, "featurise_texts", "read")
        watch.put_on(type(predictor.members[0]), "forward", "forward")

    def step() -> dict[str, dict[str, float]]:
        assert folder.name  # which lives as long as this does
        watch.seconds.clear()
        with watch.running("rest"):
            predict_table(predictor, table, out, workers=PROCESSES[how])
        return {"parts": dict(watch.seconds)} if how == ALONE else {}

    return Work({"all": step}, facts, seconds=0.0)


def save_untrained(file: Path) -> None:
    """The default model as `gtx train` makes it for a set of 10,000 molecules, with one target and initial weights."""
    read = Featuriser()
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = model_spec(TrainSettings(), read, task, 10_000)
    torch.manual_seed(0)
    model = ARCHITECTURES[spec["name"]].make(**spec["arguments"]).eval()
    save_model(file, [model], ModelHeader(task, read, spec))


def _bare(smiles: list[str], workers: int) -> Callable[[], None]:
    chunks = [smiles[i : i + CHUNK] for i in range(0, len(smiles), CHUNK)]
    over = get_reusable_executor(workers).map if workers else map

    def step() -> None:
        assert sum(over(parse, chunks))

    return step


def parse(smiles: list[str]) -> int:
    """How many of the texts RDKit can read."""
    RDLogger.DisableLog("rdApp.*")
    return sum(Chem.MolFromSmiles(text) is not None for text in smiles)


def _memory(folder: tempfile.TemporaryDirectory, model: Path, table: Path, out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "gtx", "predict", str(model), str(table), "--out", str(out), "--device", "cpu"]
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - begun
    folder.cleanup()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"wall": [seconds], "peak": peak if sys.platform == "darwin" else peak * 1024}


def case_groups(read: Namespace) -> list[list[str]]:
    """All ways in turns; then the memory."""
    cases = [f"{what}, {how}" for how in PROCESSES for what in (BARE, GTX) if (what, how) != (BARE, ALONE)]
    sizes = [1000] if read.quick else [10_000, *[1_000_000] * read.million]
    return [[*cases, MATRIX], *([f"{MEMORY}, {size}"] for size in sizes)]


def tables(records: Sequence[Record]) -> list[str]:
    """Rates, where the time goes, and memory."""
    found = {record["case"]: record for record in records}

    def share(record: Record) -> str:
        how = record["case"].split(", ")[1]
        bare = ratio(found.get(f"{BARE}, {HERE if how == ALONE else how}"), record)
        return f"{float('nan') if bare is None else bare:.0%}"

    rate = {"molecules per second": lambda record: f"{record['molecules'] / record['seconds']:,.0f}"}
    peak = {"largest process": megabytes, "seconds, start included": lambda record: f"{record['wall']:.1f} s"}
    rates = [record for case, record in found.items() if case != MATRIX and not case.startswith(MEMORY)]
    peaks = [
        {**record, "case": f"{int(case.split(', ')[1]):,}"} for case, record in found.items() if case.startswith(MEMORY)
    ]
    return [
        rival_table(
            rates, "SMILES file to predictions", ["what", "where"], rate | {"of MolFromSmiles there": share}, ", "
        ),
        *(
            _where_it_goes(record, found)
            for record in rates
            if record.get("parts") and record["case"].endswith((HERE, ALONE))
        ),
        rival_table(peaks, "Memory of gtx predict", ["rows"], peak),
    ]


def _where_it_goes(gtx: Record, found: Mapping[str, Record]) -> str:
    """Seconds of the last turn, by part."""
    bare, matrix = found.get(f"{BARE}, {HERE}", {}), found.get(MATRIX, {})
    spent = {what: gtx["parts"][part] / gtx["molecules"] for what, part in PARTS.items()}
    products = f"its matrix products alone, {gtx['products'] / 1e6:.1f} M multiplications, at the machine's rate"
    spent[products] = gtx["products"] * matrix.get("seconds", math.nan) / bench_floor.SIDE**3
    each = bare.get("seconds", math.nan) / gtx["molecules"]
    rows = [[what, f"{own * 1e6:.0f} µs", f"{own / each:.2f}x"] for what, own in spent.items()]
    how = gtx["case"].split(", ")[1]
    return table(f"Where it goes, {how}", ["what", "per molecule", "over MolFromSmiles"], rows)


OPTIONS = {"--million": {"action": "store_true", "help": "also the memory at 1,000,000 rows: half an hour"}}
TOPIC = Topic("prediction", __doc__, make_case, case_groups, tables, OPTIONS, {"limit": 4 * 3600.0, "seconds": 600.0})

if __name__ == "__main__":
    main(TOPIC)
