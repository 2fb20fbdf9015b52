"""Prediction, from a file of SMILES to a file of numbers, against RDKit's bare `MolFromSmiles`, the floor.

    python -m experiments.speed.prediction
    python -m experiments.speed.prediction --million

The molecules are those of ZINC-12k, repeated as often as need be. The model is the default of `gtx train` with weights
as they are drawn: its speed does not depend on them. gtx reads molecules in this process, in one worker process, in
two; `MolFromSmiles` runs over the same texts in this process, in one, in two. The first run, in which worker processes
start, does not count. Where the time goes is told for one thread, beside what the model's matrix products alone would
take at the rate of a product of two 1024 x 1024 matrices in one thread, measured in the same run. Memory is the peak of
the largest process of `gtx predict` on 10,000 rows and, with `--million`, on 1,000,000, libraries included: it should
not grow with the rows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from experiments.speed import floor
from experiments.speed.cases import Work, options, race, serve
from experiments.speed.molecules import SETS, rows
from experiments.speed.results import Table, ratio, write
from experiments.speed.stopwatch import Stopwatch

MODULE = "experiments.speed.prediction"
CHUNK = 500
HERE, ALONE = "in this process", "in this process with one thread"
PROCESSES = {HERE: 0, ALONE: 0, "1 worker process": 1, "2 worker processes": 2}
GTX, BARE, MEMORY = "gtx", "MolFromSmiles", "memory of gtx predict"
MATRIX = f"{floor.MATRIX}, float32"
PARTS = {"reading and featurising": "read", "the model": "forward", "all else": "rest"}


def make(name: str, count: int, set: str, threads: int) -> Work:
    """A case, such as "gtx, 2 worker processes" or "memory of gtx predict, 10000"."""
    if name == MATRIX or name.endswith(ALONE):
        torch.set_num_threads(1)
    if name == MATRIX:
        return floor.make(name)
    what, how = name.split(", ")
    count = int(how) if what == MEMORY else count
    smiles = list(dict.fromkeys(rows(set).smiles))  # rows repeat as little as they can
    texts = islice(cycle(smiles), count)
    facts = {"molecules": count}
    if what == BARE:
        return Work({"all": _bare(list(texts), PROCESSES[how])}, facts, seconds=0.0)
    folder = tempfile.TemporaryDirectory()
    table, model = Path(folder.name, "molecules.csv"), Path(folder.name, "model.gtx")
    with table.open("w") as opened:
        opened.write("smiles\n")
        opened.writelines(f"{text}\n" for text in texts)
    save_untrained(model)
    out = Path(folder.name, "predictions.csv")
    if what == MEMORY:
        return Work({"all": lambda: _memory(folder, model, table, out)}, facts, seconds=0.0)

    from gtx.data import featurise, featurising
    from gtx.prediction import load, predict_table

    predictor, watch = load(model, "cpu"), Stopwatch()
    some = featurise(predictor.header.featuriser, smiles[:CHUNK], workers=0, smiles=False).store
    if how == ALONE:
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
        return {"parts": dict(watch.seconds)}

    return Work({"all": step}, facts, seconds=0.0)


def save_untrained(file: Path) -> None:
    """The default model as `gtx train` makes it for a set of 10,000 molecules, with one target and initial weights."""
    from gtx.models import ARCHITECTURES
    from gtx.molecules import Featuriser
    from gtx.prediction import ModelHeader, save_model
    from gtx.tasks import Regression, TargetScaler
    from gtx.training import TrainSettings
    from gtx.workflow.specs import model_spec

    read = Featuriser()
    scaler = TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    task = Regression("y", scaler=scaler)
    spec = model_spec(TrainSettings(), read, task, 10_000)
    torch.manual_seed(0)
    model = ARCHITECTURES[spec["name"]].make(**spec["arguments"]).eval()
    save_model(file, [model], ModelHeader(task, read, spec))


def _bare(smiles: list[str], workers: int) -> Callable[[], None]:
    from joblib.externals.loky import get_reusable_executor

    chunks = [smiles[i : i + CHUNK] for i in range(0, len(smiles), CHUNK)]
    if workers == 0:
        return lambda: _count(map(parse, chunks))
    pool = get_reusable_executor(workers)
    return lambda: _count(pool.map(parse, chunks))


def parse(smiles: list[str]) -> int:
    """How many of the texts RDKit can read."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    return sum(Chem.MolFromSmiles(text) is not None for text in smiles)


def _count(read: Iterator[int]) -> None:
    assert sum(read)


def _memory(folder: tempfile.TemporaryDirectory, model: Path, table: Path, out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "gtx", "predict", str(model), str(table), "--out", str(out), "--device", "cpu"]
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - begun
    folder.cleanup()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"wall": [seconds], "peak": peak if sys.platform == "darwin" else peak * 1024}


def tables(records: Sequence[dict]) -> list[Table]:
    """Rates, where the time goes, and memory."""
    found = {record["case"]: record for record in records}
    rates, peaks = [], []
    for case, record in found.items():
        what, how = case.split(", ")
        if case == MATRIX:
            continue
        if "failed" in record:
            (peaks if what == MEMORY else rates).append([what, how, record["failed"], ""])
        elif what == MEMORY:
            peaks.append([f"{int(how):,}", f"{record['peak'] / 2**20:,.0f} MiB", f"{record['wall']:.1f} s"])
        else:
            share = ratio(found.get(f"{BARE}, {HERE if how == ALONE else how}"), record).removesuffix("x")
            rates.append([what, how, f"{record['molecules'] / record['seconds']:,.0f}", f"{float(share or 'nan'):.0%}"])
    return [
        Table("SMILES file to predictions", ["what", "where", "molecules per second", "of MolFromSmiles there"], rates),
        _where_it_goes(*(found.get(case, {"failed": ""}) for case in (f"{BARE}, {HERE}", f"{GTX}, {ALONE}", MATRIX))),
        Table("Memory of gtx predict", ["rows", "largest process", "seconds, start included"], peaks),
    ]


def _where_it_goes(bare: dict, gtx: dict, matrix: dict) -> Table:
    """Seconds of the last turn with one thread, by part."""
    rows = []
    if not any("failed" in record for record in (bare, gtx, matrix)):
        spent = {what: gtx["parts"][part] / gtx["molecules"] for what, part in PARTS.items()}
        products = f"its matrix products alone, {gtx['products'] / 1e6:.1f} M multiplications, at the machine's rate"
        spent[products] = gtx["products"] * matrix["seconds"] / floor.SIDE**3
        each = bare["seconds"] / bare["molecules"]
        rows = [[what, f"{own * 1e6:.0f} µs", f"{own / each:.2f}x"] for what, own in spent.items()]
    return Table("Where it goes, with one thread", ["what", "per molecule", "over MolFromSmiles"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""

    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--set", default="zinc12k", choices=list(SETS), help="molecules to take")
        parser.add_argument("--molecules", type=int, help="for the rates (default 20,000; quick 1,000)")
        parser.add_argument("--million", action="store_true", help="also the memory at 1,000,000 rows: half an hour")
        parser.set_defaults(limit=4 * 3600.0, seconds=600.0)

    read = options(__doc__, arguments, more)
    count = read.molecules or (1000 if read.quick else 20_000)
    if read.case:
        return serve(lambda name: make(name, count, read.set, read.threads), read)
    words = ["--set", read.set, "--molecules", str(count)]
    cases = [f"{what}, {how}" for how in PROCESSES for what in (BARE, GTX) if (what, how) != (BARE, ALONE)]
    cases.append(MATRIX)
    records = race(MODULE, cases, read, words=words)
    sizes = [1000] if read.quick else [10_000, *([1_000_000] if read.million else [])]
    for size in sizes:
        records += race(MODULE, [f"{MEMORY}, {size}"], read, warm_up=False, words=words)
    write("prediction", __doc__, read, records, tables(records), set=read.set)


if __name__ == "__main__":
    main()
