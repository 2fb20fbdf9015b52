"""Time and memory as rows, atoms, targets and rows of the kernel grow."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from experiments.speed.measure import PLAIN, Case, featurised, sampled
from gtx.data import MoleculeStore, featurise
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction.loading import attach_foundation
from gtx.tasks import Regression
from gtx.tasks.closed_form import fit_closed_form, outputs_of
from gtx.training import TrainSettings
from gtx.workflow.specs import make_model_spec

ATOMS = {10: 100, 30: 33, 100: 10, 300: 3, 1000: 1}
"""Molecules of a batch, by the number of atoms of each: about 1,000 atoms in all."""
TARGETS, KERNEL_ROWS, ROWS = (1, 10, 100, 1000), (1000, 3000, 8000, 20_000, 50_000), (1000, 10_000, 100_000)


def cases(options: Namespace) -> list[Case]:
    """Time and memory of gtx alone, as a problem grows: how much more than the first row of each group.

    *Atoms*: a training step and a prediction of chains of carbon with 10 to 1,000 atoms, some 1,000 atoms in all.
    *Targets*: a training step of 32 molecules of ZINC-12k. *Rows*: reading and predicting molecules of ZINC-12k,
    repeated. *Kernel*: fitting `--model kernel` to molecules of ZINC-12k, repeated, and predicting 1,000. The network
    is the default of `gtx train` for 1,000 rows, untrained; its kernel is measured apart.
    """
    made = [
        Case(f"{what} by atoms", f"{n:,} atoms", partial(_network, _chains(n), 1, training), ATOMS[n])
        for what, training in (("training step", True), ("prediction", False))
        for n in ATOMS
    ]
    zinc = partial(featurised, "zinc12k", 32)
    made += [Case("training step by targets", f"{t:,} targets", partial(_network, zinc, t, True), 32) for t in TARGETS]
    few = 2 if options.quick else None
    made += [Case("prediction by rows", f"{n:,} rows", partial(_read, n), n, once=True) for n in ROWS[:few]]
    made += [Case("kernel fit", f"{n:,} rows", partial(_kernel, n, True), n, once=True) for n in KERNEL_ROWS[:few]]
    return made + [
        Case("kernel prediction", f"{n:,} rows", partial(_kernel, n, False), 1000, once=True) for n in KERNEL_ROWS[:few]
    ]


def _chains(atoms: int) -> Callable[[], MoleculeStore]:
    def make() -> MoleculeStore:
        store = featurise(Featuriser(), ["C" * atoms] * ATOMS[atoms], workers=0).store
        return store.with_targets(np.zeros((len(store), 1)))

    return make


def _network(make: Callable[[], MoleculeStore], targets: int, training: bool) -> Callable[[], Any]:
    store = make()
    assert store.y is not None
    store = store.with_targets(store.y.numpy().repeat(targets, 1) + np.random.default_rng(0).normal(size=(1, targets)))
    task = Regression([f"y{t}" for t in range(targets)], element_reference=False).fitted(store)
    torch.manual_seed(0)
    model = build_model(make_model_spec(PLAIN, Featuriser(), task, 1000)).train(training)
    batch, goal = store.batch(), task.objective.scaled(store).float()
    batch.y = store.y

    def step() -> None:
        if training:
            model.zero_grad()
            (model(batch) - goal).square().mean().backward()
        else:
            with torch.inference_mode():
                model(batch)

    return step


def _repeated(rows: int) -> list[str]:
    return sampled("zinc12k")["smiles"].sample(rows, replace=True, random_state=0).tolist()


def _read(rows: int) -> Callable[[], Any]:
    model = build_model(make_model_spec(PLAIN, Featuriser(), Regression("y"), 1000)).eval()
    texts = _repeated(rows)

    @torch.inference_mode()
    def step() -> None:
        for first in range(0, rows, 500):  # as `gtx predict` reads
            store = featurise(Featuriser(), texts[first : first + 500], workers=0, smiles=False).store
            order = store.sizes.argsort()
            for rows_of_batch in order.split(64):
                model(store.batch(rows_of_batch))

    return step


def _kernel(rows: int, fit: bool) -> Callable[[], Any]:
    store = featurise(Featuriser(), _repeated(rows), workers=0).store
    store = store.with_targets(np.random.default_rng(0).normal(size=(rows, 1)))
    task = Regression("y", element_reference=False).fitted(store)
    spec = make_model_spec(TrainSettings(model="kernel"), Featuriser(), task, rows)
    model: Any = attach_foundation(build_model(spec))
    if fit:
        return lambda: fit_closed_form(model, task, store)
    fit_closed_form(model, task, store)
    few = store.subset(torch.arange(1000))
    return lambda: outputs_of(model.eval(), few)
