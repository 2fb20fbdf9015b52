"""The subject of an explanation: one molecule or row, one target, one network of a model file, its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.base.errors import InputError, did_you_mean
from gtx.data import MoleculeStore, featurise
from gtx.data.rows import percent
from gtx.models import GraphTransformer, MultiComponentModel
from gtx.models.composites import join_parts
from gtx.molecules.perception import Text
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.domain import neighbour_lines
from gtx.prediction.foundation_embedding import reading_parts, with_embeddings
from gtx.prediction.model_file import KernelMember
from gtx.tasks import NumericTask
from gtx.tasks.numeric import require_numeric

if TYPE_CHECKING:
    from rdkit.Chem import Mol

PAIRS = 50_000
"""Most pairs of atoms in a batch of copies of the molecule."""


class Subject(NamedTuple):
    """The molecule (or row of several), target and network that an explanation is about."""

    model: GraphTransformer | MultiComponentModel  # on the CPU and in float64, as is the kernel
    store: MoleculeStore  # of the one row
    task: NumericTask
    column: int  # number of the target
    header: ModelFileHeader
    molecules: tuple[Mol, ...]  # of the row, whose atoms are those of the store
    smiles: str  # the molecules as given, or for a mol block its SMILES
    kernel_member: KernelMember | None  # blended with the network
    blend: str | None  # the prediction of the whole model in words, if it is a blend
    notes: list[str]  # on the model and the molecule, for the reader
    neighbours: list[str]  # lines of text about the most similar training molecules


def list_explainable_outputs(predictor: Predictor) -> list[str]:
    """List the names of all predictions of a model that can be explained.

    Raises:
        InputError: this model's predictions cannot.
    """
    return _explained(predictor)[0].answers.prediction_names


def _explained(predictor: Predictor, member: int = 0) -> tuple[NumericTask, GraphTransformer | MultiComponentModel]:
    """Return the task and a network of a model, if its predictions can be explained."""
    header, network = predictor.header, predictor.members[member]
    task = require_numeric(header.task, "explanations, which are")
    encoder = network.encoders[0] if isinstance(network, MultiComponentModel) else network
    if not isinstance(encoder, GraphTransformer) or not isinstance(network, GraphTransformer | MultiComponentModel):
        raise InputError(f"the model {header.model['name']} has no attention to explain; use Predictor.neighbours")
    return task, network


def open_subject(
    predictor: Predictor, smiles: Text, target: str | None, member: int, features: Mapping[str, Any] | None
) -> Subject:
    """Read the molecules and find the target and the network, see `gtx.explain.explain_prediction`."""
    header, members = predictor.header, len(predictor.members)
    task, network = _explained(predictor, index("member", member, members))
    names = task.answers.prediction_names
    if target is not None and target not in names:
        raise InputError(f"target {target!r}{did_you_mean(target, names) or ':'} the model has {', '.join(names)}")
    column, model = 0 if target is None else names.index(target), deepcopy(network).cpu().double()
    done = featurise(header.featuriser, [smiles], workers=0)
    done = header.features.attach(done, [header.features.read_one(features or {})], [smiles], header.featuriser)
    if done.errors[0]:
        raise InputError(done.errors[0] if header.featuriser.components else f"{smiles!r} {done.errors[0]}")
    given = smiles if isinstance(smiles, str) else ", ".join(smiles)
    kernel_member, parts = predictor.kernel_member, reading_parts(model)
    notes, blend = [*_notes(model, done.store)], None
    if kernel_member is not None or members > 1:
        whole = task.answers.decode(predictor.outputs(done.store), done.store).mean[0, column]
        if members > 1:
            together = f"its attention is its own; together they predict {whole:.4g}"
            notes.insert(0, f"network {member} of {members}: {together}")
        if kernel_member is not None:
            share = float(kernel_member.share[column])
            shares = f"{percent(1 - share)} network and {percent(share)} kernel"
            blend = f"the model predicts {whole:.4g}, a blend of {shares}"
    return Subject(
        model=model,
        store=with_embeddings(done.store, parts[0].foundation) if parts else done.store,
        task=task,
        column=column,
        header=header,
        molecules=header.featuriser.read_row(smiles),
        smiles=(done.smiles[0] or given) if "\n" in given else given,
        kernel_member=None if kernel_member is None else deepcopy(kernel_member).cpu().double(),
        blend=blend,
        notes=[*header.warnings(done.store)[0], *notes, *done.warnings[0]],
        neighbours=neighbour_lines(predictor, smiles),
    )


def index(name: str, number: int, count: int, negative: bool = True) -> int:
    """Check a number that counts from 0, or from the end where it is negative, and return it counted from 0."""
    if not (-count if negative else 0) <= number < count:
        raise InputError(f"{name} {number}: expected 0 to {count - 1}{' (or -1 for the last)' if negative else ''}")
    return number % count


def _notes(model: GraphTransformer | MultiComponentModel, store: MoleculeStore) -> Iterator[str]:
    parts = model.parts(copies(store))
    encoder = parts[0].encoder
    inputs = []
    if any(getattr(layer, "local", None) is not None for layer in encoder.layers):
        inputs.append("bond messages")
    if store.descriptors.shape[1]:
        inputs.append("whole-molecule descriptors")
    if store.embeddings is not None:
        inputs.append("the embedding by the foundation")
    if inputs:
        yield f"{' and '.join(inputs)} also reach the prediction; they stay when attention is removed"
    if store.component_sizes is not None:
        yield "the network reads each molecule of the row alone: no atom attends to one of another"
    with torch.inference_mode():
        graphs = [part.encoder.graph(part.batch) for part in parts]
    edges, pairs = (sum(getattr(graph, name) for graph in graphs) for name in ("num_edges", "num_pairs"))
    if edges < pairs:
        yield f"this model attends over {edges} of {pairs} pairs; all other weights are 0"
    nodes = []
    if encoder.embedding.virtual is not None:
        nodes.append("virtual nodes")
    if encoder.embedding.tokens is not None:
        nodes.append("bonds as nodes")
    if nodes:
        yield f"this model has {' and '.join(nodes)}: they carry attention between atoms and are not drawn"


# --- Predictions of one network without some of its attention.


def copies(store: MoleculeStore, count: int = 1) -> Batch:
    """Make a batch of `count` copies of the one molecule of a store, in float64."""
    batch = store.batch(torch.zeros(count, dtype=torch.long))
    return batch.apply(lambda values: values.double() if values.is_floating_point() else values)


@torch.inference_mode()
def outputs_without(
    model: GraphTransformer | MultiComponentModel, store: MoleculeStore, removed: np.ndarray, embeddings: bool = False
) -> Tensor:
    """Compute outputs `[m, C]`, or embeddings `[m, width]` (the inputs of the head), for one row of n atoms with the
    attention into and out of sets of atoms removed, bool `[m, n]`.
    """
    sets = torch.from_numpy(removed)
    outputs = []
    for some in sets.split(max(1, PAIRS // sets.shape[1] ** 2)):
        vectors = []
        for encoder, batch, atoms in model.parts(copies(store, len(some))):
            graph, gone = encoder.graph(batch), some.flatten()[atoms]
            sender, receiver = graph.pair_index
            vectors.append(encoder.embed(batch, graph.masked(~(gone[sender] | gone[receiver]))))
        joined = join_parts(vectors, model.width)
        outputs.append(joined if embeddings else model.head(joined))
    return torch.cat(outputs)


def in_units(outputs: Tensor, store: MoleculeStore, task: NumericTask, column: int) -> np.ndarray:
    """Convert outputs `[m, C]` for one molecule to predictions `[m]` of a target."""
    molecules = store.subset(torch.zeros(len(outputs), dtype=torch.long))
    return task.answers.calibrate(task.objective.unscale(outputs, molecules).numpy())[:, column]


def predict_without(subject: Subject, model: GraphTransformer | MultiComponentModel, removed: np.ndarray) -> np.ndarray:
    """Predict the target, `[m]`, by a network alone, see `outputs_without`."""
    return in_units(outputs_without(model, subject.store, removed), subject.store, subject.task, subject.column)
