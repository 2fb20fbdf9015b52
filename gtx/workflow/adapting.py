"""`gtx adapt`: a pretrained model goes on with its descriptors, on the user's own molecules, without labels."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from gtx.data import MoleculeStore, featurise, open_table
from gtx.data.ledger import Ledger
from gtx.data.workers import default_workers, in_workers
from gtx.dataset import sha256
from gtx.errors import InputError
from gtx.models import build_model
from gtx.molecules.rdkit_descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors_of
from gtx.prediction import ModelHeader, Predictor, load_model, model_path, save_model
from gtx.training import Member, TrainSettings, differences, fit

CHUNK = 500
HELD_OUT = 0.1
FEWEST = 10


@dataclass(frozen=True)
class Adapted:
    """What came of it.

    Attributes:
        ledger: the rows that could not be used, and why; None where the file was there already.
        before, after: root mean square error of the descriptors of held-out molecules, in standard deviations.
        molecules: how many it learned from.
        was_finished: whether there was nothing left to do.
    """

    ledger: Ledger | None
    before: float
    after: float
    molecules: int
    was_finished: bool = False


def adapt(
    model: str | Path,
    table: str,
    out: str | Path,
    settings: TrainSettings,
    *,
    smiles_column: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> Adapted:
    """Train a pretrained model further on the molecules of a table, with RDKit's descriptors as targets.

    Called again it goes on, or says that it is done. A tenth of the molecules is held out and chooses the epoch. A
    molecule that several rows have is one.

    Args:
        model: a file whose targets are descriptors of RDKit, or `foundation`.
        table: what `gtx.data.open_table` reads; targets in it are not looked at.
        out: the model file to write; until it is there, a folder beside it, `.<name>.run`, holds what is needed to go
            on.
        settings: of training.
        smiles_column: default as `open_table` says.
        workers: processes that compute descriptors; default: as many as there are cores.
        overwrite: begin anew, whatever an interrupted call left, and whatever `out` is.

    Raises:
        InputError: the model was pretrained otherwise, fewer than ten molecules can be used, or `out` is another model.
    """
    out, origin = Path(out), {"file": Path(model).name, "sha256": sha256(model_path(model))}
    told = settings.decisive() | {
        "table": sha256(table) if Path(table).is_file() else None,
        "smiles_column": smiles_column,
    }
    if out.exists() and not overwrite:
        return _found(out, origin["sha256"], told)
    networks, header = load_model(model)
    if strange := [name for name in header.targets if name not in RDKIT_DESCRIPTORS]:
        raise InputError(
            f"{model} predicts {strange[0]}: gtx adapt goes on with models that predict RDKit's descriptors"
        )
    store, ledger = labelled(header, table, smiles_column, workers, settings.progress)
    if len(store) < FEWEST:
        raise InputError(
            f"{table}: expected at least {FEWEST} molecules that can be used, got {len(store)}; {ledger.summary()}"
        )
    order = np.random.default_rng(settings.seed).permutation(len(store))
    aside = round(HELD_OUT * len(store))
    val, train = store.subset(np.sort(order[:aside])), store.subset(np.sort(order[aside:]))
    task = header.task
    folder = out.with_name(f".{out.name}.run")
    marks = {"from": origin["sha256"], "molecules": store.checksum(), "model": header.model}
    first = [Member(network, task, [], -1, np.inf) for network in networks]
    make, how = partial(build_model, header.model), {"marks": marks, "overwrite": overwrite, "start": first}
    members = fit(make, task, train, val, settings, folder, **how)
    score = task.validation(val)
    before, after = (
        score(Predictor([network], header).outputs(val)[0][:, 0])["val_score"]
        for network in (networks[0], members[0].model)
    )
    origin |= {"weights": f"all, adapted to {len(train)} molecules"}
    adapted = {"before": before, "after": after, "molecules": len(train)}
    words = header.settings | {"start": origin, "adapted": told | adapted}
    save_model(out, [member.model for member in members], replace(header, settings=words, training=None), half=True)
    shutil.rmtree(folder)
    return Adapted(ledger, before, after, len(train))


def _found(out: Path, start: str, told: dict[str, Any]) -> Adapted:
    """What the file holds, if the same call made it.

    Raises:
        InputError: another did.
    """
    settings = load_model(out)[1].settings
    kept = dict(settings.get("adapted", {}))
    adapted = {name: kept.pop(name, None) for name in ("before", "after", "molecules")}
    there, here = kept | {"from": settings.get("start", {}).get("sha256")}, told | {"from": start}
    if differ := differences(there, here):
        raise InputError(
            f"{out} is a model of other settings or data: {'; '.join(differ)}. "
            "Choose another --out, or --overwrite to replace it."
        )
    return Adapted(None, **adapted, was_finished=True)


def labelled(
    header: ModelHeader, table: str, smiles_column: str | None, workers: int | None, progress: bool
) -> tuple[MoleculeStore, Ledger]:
    """The molecules of a table, each once, with their descriptors, winsorised, and what became of its rows."""
    opened, ledger = open_table(table, smiles_column), Ledger()
    rows = list(opened.rows)
    ledger.enter(rows)
    texts = [row.readable for row in rows]
    found = featurise(header.featuriser, texts, workers=workers, progress=progress)
    for row, error in zip(rows, found.errors, strict=True):
        if error and not row.error:
            ledger.error(row.number, opened.smiles_column, row.shown, error)
    once = np.sort(np.unique([found.smiles[i] for i in found.good], return_index=True)[1])  # of those that can be read
    good = [texts[i] for i in found.good[once]]
    if workers is None:
        workers = default_workers() if len(good) > CHUNK else 0
    chunks = [(header.featuriser.read, good[i : i + CHUNK]) for i in range(0, len(good), CHUNK)]
    made = in_workers(rdkit_descriptors_of, chunks, workers) if workers else starmap(rdkit_descriptors_of, chunks)
    made = track(made, "Computing descriptors", len(chunks), console=Console(stderr=True)) if progress else made
    columns = [RDKIT_DESCRIPTORS.index(name) for name in header.targets]
    y = np.concatenate([np.empty((0, len(RDKIT_DESCRIPTORS))), *made])[:, columns]
    store = found.store.subset(once)
    return store.with_targets(header.task.scaler.winsorised(torch.from_numpy(y))), ledger
