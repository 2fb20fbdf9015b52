"""The guarantees of gtx as checks of your own code: a score, an attention, an encoding, a model, a task.

Each check is one that gtx's own tests run on all code of that kind in gtx. It returns nothing if all guarantees hold,
and raises a `GuaranteeError` that names the first one that does not, what was expected, what came, and where to read.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.data import Batch, Data

from gtx.attention import Score
from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.encodings import CategoricalFeatureSpec, Encoding
from gtx.graph import CompleteGraph
from gtx.models import GraphTransformer
from gtx.molecules import Featuriser
from gtx.nn import EdgeAttention
from gtx.tasks import Task

Module = TypeVar("Module", bound=nn.Module)

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",  # aspirin
    "C",  # one atom
    "[Na+].[Cl-]",  # a salt without bonds
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",  # caffeine
    "CC(C)C[C@H](NC(=O)[C@@H](N)C)C(=O)O",  # stereocentres
    "F/C=C/F",  # a double bond that cannot turn
    "[2H]OC#N",  # an isotope
    "c1ccc2c(c1)ccc1ccccc12.CCO",  # two molecules
    "C" * 30,  # longer than the longest path with a code of its own
]
"""Molecules that often reveal errors: a single atom, a salt, an isotope, a long chain and the like."""
PEPTIDE = "NCC(=O)" * 75 + "O"
SIZES = [3, 1, 7, 2, 12, 0]
"""Atoms of the molecules in the random graphs that attentions are checked on."""


class GuaranteeError(AssertionError):
    """Error of an object (an attention, an encoding, a model, ...) that breaks a guarantee of gtx."""


@dataclass(frozen=True)
class _Guarantee:
    """A block that checks one guarantee of an object; another exception in it breaks the guarantee too."""

    subject: str  # name of the object that is checked
    page: str  # of the documentation
    name: str  # the guarantee, a short sentence
    lesson: str  # usual cause of a violation

    def __enter__(self) -> _Guarantee:
        return self

    def __exit__(
        self, raised: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, GuaranteeError):
            raise self.broken("a result", f"{type(error).__name__}: {error}") from error

    def broken(self, expected: str, found: str) -> GuaranteeError:
        return GuaranteeError(
            f"{self.subject}: {self.name}: expected {expected}, got {found}. {self.lesson} Read {self.page}."
        )

    def require(self, condition: bool, expected: str, found: object) -> None:
        if not condition:
            raise self.broken(expected, str(found))

    def finite(self, what: str, tensor: Tensor | None) -> None:
        self.require(tensor is None or bool(tensor.isfinite().all()), f"{what} finite", "NaN or infinity")

    def equal(self, found: Tensor | None, expected: Tensor | None, tolerance: float, what: str = "the output") -> None:
        """Require equality up to `tolerance` times the largest entry."""
        if found is None or expected is None:
            self.require(found is expected, f"{what} in both or in neither", "one of them without it")
            return
        self.require(found.shape == expected.shape, f"{what} of shape {[*expected.shape]}", f"shape {[*found.shape]}")
        self.finite(what, found)
        if not found.numel():
            return
        apart = (found.double() - expected.double()).abs().max().item()
        allowed = tolerance * max(1.0, expected.detach().double().abs().max().item())
        self.require(apart <= allowed, f"{what} equal to {allowed:.1g}", f"a difference of {apart:.2g}")


def example_batch(
    featuriser: Featuriser | None = None,
    smiles: Sequence[str] = SMILES,
    positions: Literal["none", "known", "partial"] = "none",
) -> Batch:
    """Make a batch of molecules that often reveal errors, such as a single atom or a salt.

    Args:
        featuriser: settings for reading molecules; default `Featuriser()`.
        smiles: the molecules.
        positions: whether the batch has random coordinates `pos` `[N, 3]`; "partial": those of the second molecule are
            NaN.

    Raises:
        InputError: the settings do not suit one of the molecules, such as a limit on their atoms.
    """
    done = featurise(featuriser or Featuriser(), list(smiles), workers=0)
    if refused := [(text, error) for text, error in zip(smiles, done.errors, strict=True) if error]:
        raise InputError("the featuriser refuses {}: {}".format(*refused[0]))
    batch = done.store.batch()
    if positions != "none":
        batch.pos = 2.0 * torch.randn(batch.num_nodes, 3, generator=torch.Generator().manual_seed(0))
        if positions == "partial":
            batch.pos[batch.batch == 1] = torch.nan
    return batch


def renumbered(batch: Batch, seed: int = 0) -> tuple[Batch, Tensor]:
    """Renumber the atoms of each molecule at random.

    Returns:
        The new batch and the order: new atom i is old atom `order[i]`.
    """
    order = _shuffled(batch.ptr, seed)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    other = batch.clone()
    other.x, other.edge_index = batch.x[order], place[batch.edge_index]
    for name in ("pos", "atom_features"):
        if name in batch:
            other[name] = batch[name][order]
    return other, order


def _shuffled(ptr: Tensor, seed: int = 0) -> Tensor:
    """Draw an order of the atoms within each molecule."""
    generator = torch.Generator().manual_seed(seed)
    ends = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    return torch.cat([start + torch.randperm(stop - start, generator=generator) for start, stop in ends])


def _alone(batch: Batch, molecule: int) -> Batch:
    """Cut one molecule out of a batch."""
    one = Batch.from_data_list([batch.get_example(molecule)])
    if batch.pos is not None:
        one.pos = batch.pos[batch.ptr[molecule] : batch.ptr[molecule + 1]]
    return one


def _shaken(module: Module, seed: int = 2, size: float = 0.1) -> Module:
    """Copy a module with weights of which none is zero."""
    copy, generator = deepcopy(module), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=generator).to(parameter.dtype))
    return copy


# --- Scores and attentions: both layouts, any order of atoms, any batch-mates, true gradients.


def check_score(score: Score, edge_dim: int | None = None) -> None:
    """Check a score of your own in an attention layer, with 3 heads of 4 channels unless `Score(heads, channels)` says
    otherwise.

    Args:
        score: instance of the score.
        edge_dim: channels K of the edge features it reads; None for none.

    Raises:
        GuaranteeError: see `check_attention`; also if the score of `[5, H, C]` is not `[5, H]`.
    """
    guarantee = partial(_Guarantee, str(score), "docs/your-own.md")
    with guarantee("a score is an instance of a class derived from Score", "") as instance:
        instance.require(isinstance(score, Score), "an instance, such as Distance()", repr(score))
    heads, channels = score.heads or 3, score.channels or 4
    lesson = "A score with weights for a fixed number of heads or channels calls `super().__init__(heads, channels)`."
    with guarantee(f"`forward` computes a score of {heads} heads and {channels} channels", lesson):
        edge = None if edge_dim is None else torch.randn(5, edge_dim)
        made = _shaken(score)(torch.randn(5, heads, channels), torch.randn(5, heads, channels), edge)
    lesson = "`forward(query, key, edge)` gives one number per head: sum over the last dimension, and over no other."
    with guarantee("one number per edge and head", lesson) as shape:
        shape.require(made.shape == (5, heads), f"[5, {heads}]", [*made.shape])
    layer = EdgeAttention(heads * channels, channels, heads, edge_dim=edge_dim, edge_bias=False, score=deepcopy(score))
    _check_attention(guarantee, layer, None, torch.float64, True)


def check_attention(
    layer: EdgeAttention,
    pair_features: Callable[[CompleteGraph, torch.dtype], Tensor] | None = None,
    dtype: torch.dtype = torch.float64,
    smooth: bool = True,
) -> None:
    """Check an attention layer, such as one with a score, a normaliser or a gate of your own.

    Args:
        layer: layer to check; the check uses a copy with precision `dtype` and with noise added to the weights.
        pair_features: `[num_pairs, edge_dim]` of a graph; by default random numbers.
        dtype: precision of the checks; the tolerance is 1e-10 in float64, else 1e-5.
        smooth: whether the gradient is that of the output (it is not for a maximum with a gradient of its own).

    Raises:
        GuaranteeError: edge list and complete graph differ in output, weights, states or a gradient; renumbered atoms
            or batch-mates change the output; a parameter has no gradient; the gradient is not that of the output; one
            atom, or none, fails; a state dict is not all there is to a layer.
    """
    _check_attention(partial(_Guarantee, str(layer), "docs/attentions.md"), layer, pair_features, dtype, smooth)


def _check_attention(
    guarantee: Callable[[str, str], _Guarantee],
    layer: EdgeAttention,
    pair_features: Callable[[CompleteGraph, torch.dtype], Tensor] | None,
    dtype: torch.dtype,
    smooth: bool,
) -> None:
    exact = dtype == torch.float64
    tolerance, tight = (1e-10, 1e-12) if exact else (1e-5, 1e-5)
    original = deepcopy(layer).to(dtype)
    layer = _shaken(original)
    width = layer.in_channels
    if not isinstance(width, int):
        raise TypeError(f"check_attention: expected a layer with one width of input, got {width}")

    def graph_of(*sizes: int) -> CompleteGraph:
        return CompleteGraph.from_ptr(torch.tensor([0, *sizes]).cumsum(0))

    def inputs(graph: CompleteGraph) -> tuple[Tensor, Tensor | None]:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(graph.num_nodes, width, dtype=torch.float64, generator=generator)
        e = None
        if pair_features is not None:
            e = pair_features(graph, dtype)
        elif layer.edge_dim is not None:
            e = torch.randn(graph.num_pairs, layer.edge_dim, dtype=torch.float64, generator=generator)
            e = e.to(dtype).requires_grad_()
        return x.to(dtype).requires_grad_(), e

    def results(x: Tensor, edges: Any, e: Tensor | None) -> dict[str, Tensor | None]:
        out, weights, states = layer.attend(x, edges, e, weights=True, states=True)
        generator = torch.Generator().manual_seed(5)
        total = out.new_zeros(())
        for tensor in (out, states):
            if tensor is not None:
                total = total + (tensor * torch.randn(tensor.shape, generator=generator).to(dtype)).sum()
        used = {"x": x, "edge_attr": e, **dict(layer.named_parameters())}
        used = {name: tensor for name, tensor in used.items() if tensor is not None}
        gradients = torch.autograd.grad(total, list(used.values()), allow_unused=True)
        named = {f"the gradient of {name}": g for name, g in zip(used, gradients, strict=True)}
        return {"the output": out, "the weights": weights, "the states": states, **named}

    graph = graph_of(*SIZES)
    x, e = inputs(graph)
    lesson = "A matrix form (`pairs`, `prepare`) must be the same equation as `forward`."
    with guarantee("edge list and complete graph agree", lesson) as layouts:
        complete, listed = results(x, graph, e), results(x, graph.edge_index, e)
        for what, expected in listed.items():
            layouts.equal(complete[what], expected, tolerance, what)
    lesson = "A parameter that the output does not depend on is never trained: use it, or take it away."
    with guarantee("every parameter has a gradient", lesson) as trained:
        gradients = {name: listed[f"the gradient of {name}"] for name, _ in layer.named_parameters()}
        idle = [name for name, gradient in gradients.items() if gradient is None or gradient.eq(0).all()]
        trained.require(not idle, "a gradient of every parameter", f"none, or zero, of {', '.join(idle)}")
    lesson = "An edge may depend on its two atoms and its features, not on their numbers."
    with guarantee("renumbering the atoms renumbers the output", lesson) as renumbering:
        order = _shuffled(graph.ptr)
        pairs = graph.pair_of(order[graph.pair_index])
        renumbering.equal(layer(x[order], graph, None if e is None else e[pairs]), layer(x, graph, e)[order], tight)
    lesson = "Means, norms and maxima belong within a receiver, or at most within a molecule."
    with guarantee("batch-mates do not matter", lesson) as mates:
        whole = layer(x, graph, e)
        for b, size in enumerate(SIZES):
            nodes, within = slice(*graph.ptr[b : b + 2]), slice(*graph.pair_ptr[b : b + 2])
            alone = layer(x[nodes], graph_of(size), None if e is None else e[within])
            mates.equal(alone, whole[nodes], tight)
    if exact and smooth:
        small = graph_of(1, 3)
        values = [value for value in inputs(small) if value is not None]
        names = [name for name, _ in layer.named_parameters()]

        def forward(edges: Any, *tensors: Tensor) -> Tensor:
            features, weights = tensors[: len(values)], dict(zip(names, tensors[len(values) :], strict=True))
            return functional_call(layer, weights, (features[0], edges, *features[1:]))

        lesson = "`detach`, `.data` or a backward pass of your own cut or bend a gradient."
        with guarantee("the gradient is that of the output", lesson):
            for edges in (small, small.edge_index):
                torch.autograd.gradcheck(
                    partial(forward, edges), (*values, *layer.parameters()), fast_mode=True, check_undefined_grad=False
                )
    lesson = "A sum, mean or softmax over nothing must be zero, not NaN."
    with guarantee("one atom", lesson) as single:
        graph = graph_of(1)
        x, e = inputs(graph)
        for what, value in results(x, graph, e).items():
            single.finite(what, value)
    with guarantee("no atoms", lesson) as nothing:
        for graph in (graph_of(), graph_of(0, 0)):
            x, e = inputs(graph)
            out, weights, states = layer.attend(x, graph, e, weights=True, states=True)
            shapes = [None if tensor is None else tuple(tensor.shape) for tensor in (out, weights, states)]
            empty = [(0, layer.width), (0, layer.heads), (0, layer.state_width)]
            nothing.require(shapes == empty, f"output, weights and states of shapes {empty}", shapes)
    graph = graph_of(*SIZES)
    x, e = inputs(graph)
    lesson = "Weights are `nn.Parameter`s; constants that training does not change are buffers."
    with guarantee("a state dict holds all there is to a layer", lesson) as round_trip:
        other = _shaken(original, 3)
        other.load_state_dict(layer.state_dict())
        round_trip.equal(other(x, graph, e), layer(x, graph, e), 0.0)


# --- Encodings: what they declare, any order of atoms, any batch-mates, where the batch lives.


def check_encoding(
    encoding: Encoding, batch: Batch | None = None, order_matters: bool = False, arbitrary: bool = False
) -> None:
    """Check an encoding of your own.

    Args:
        encoding: instance of the encoding.
        batch: molecules to check it on; default `example_batch(positions="partial")`.
        order_matters: whether the encoding depends on the order of the atoms, as positions in a sequence do.
        arbitrary: whether the encoding contains arbitrary choices, such as the signs of eigenvectors.

    Raises:
        GuaranteeError: it yields other features than it declares; renumbered atoms do not renumber its features;
            batch-mates change them; it makes tensors on another device than the batch's; autocast costs digits; a batch
            without atoms fails; it is `fixed` and yields something else in a second call.
    """
    batch = example_batch(positions="partial") if batch is None else batch
    graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs)
    names = ("node features", "pair features")

    guarantee = partial(_Guarantee, str(encoding), "docs/your-own.md")
    with guarantee("an encoding is an instance of a class derived from Encoding", "") as instance:
        instance.require(isinstance(encoding, Encoding), "an instance, such as GaussianDistance()", repr(encoding))

    def both(features: tuple, expected: tuple, block: _Guarantee, tolerance: float = 1e-5) -> None:
        for what, one, other in zip(names, features, expected, strict=True):
            block.equal(one, other, tolerance, what)

    def check_yield(yielded: tuple, rows: tuple[int, int], block: _Guarantee) -> None:
        for what, feature, count, values in zip(names, (encoding.node, encoding.pair), rows, yielded, strict=True):
            if feature is None or values is None:
                block.require(
                    feature is values, f"{what} as declared, {feature}", "no tensor" if values is None else "one"
                )
                continue
            width = len(feature.sizes) if isinstance(feature, CategoricalFeatureSpec) else feature.channels
            block.require(values.shape == (count, width), f"{what} of shape {[count, width]}", [*values.shape])
            if isinstance(feature, CategoricalFeatureSpec):
                block.require(values.dtype == torch.long, f"{what} as int64 codes", values.dtype)
                inside = ((values >= 0) & (values < torch.tensor(feature.sizes))).all()
                expected = f"codes from 0 to less than {feature.sizes}"
                block.require(bool(inside), expected, [*map(tuple, values.unique(dim=0)[-1:].tolist())])
            else:
                block.require(values.is_floating_point(), f"{what} as real numbers", values.dtype)
                block.finite(what, values)

    lesson = "`node` and `pair` declare what `forward` returns, for every atom and every ordered pair of atoms."
    with guarantee("it yields what it declares", lesson) as declared:
        before = encoding(batch, graph)
        check_yield(before, (graph.num_nodes, graph.num_pairs), declared)
    with guarantee("a batch without atoms yields nothing", "Look out for `max` and `[-1]` of nothing.") as nothing:
        for ptr in (torch.tensor([0]), torch.tensor([0, 0])):
            empty = Batch(
                _base_cls=Data,
                x=batch.x[:0],
                edge_index=batch.edge_index[:, :0],
                edge_attr=batch.edge_attr[:0],
                pos=torch.zeros(0, 3),
                batch=batch.batch[:0],
                ptr=ptr,
            )
            check_yield(encoding(empty, CompleteGraph.from_ptr(ptr)), (0, 0), nothing)
    lesson = "A tensor made in `forward` needs `device=` of the batch's tensors."
    with guarantee("it is computed where the batch lives", lesson) as device, torch.device("meta"):
        for what, values in zip(names, encoding(batch, graph), strict=True):
            device.require(values is None or values.device == batch.x.device, f"{what} on {batch.x.device}", "another")
    if not arbitrary:
        with guarantee("autocast costs no digits", "Switch it off where a matrix product needs float32.") as digits:
            with torch.autocast("cpu", torch.bfloat16):
                lowered = encoding(batch, graph)
            both(lowered, before, digits)
        lesson = "Only atoms and pairs of one molecule may meet; pairs lie in the order of `graph.pair_index`."
        with guarantee("batch-mates do not matter", lesson) as mates:
            for b in range(batch.num_graphs):
                one = _alone(batch, b)
                nodes, pairs = slice(*graph.ptr[b : b + 2]), slice(*graph.pair_ptr[b : b + 2])
                expected = tuple(v if v is None else v[at] for v, at in zip(before, (nodes, pairs), strict=True))
                both(encoding(one, CompleteGraph.from_ptr(torch.tensor([0, one.num_nodes]))), expected, mates)
    if not (arbitrary or order_matters):
        lesson = "A feature may depend on atoms and bonds, not on their numbers; or say `order_matters=True`."
        with guarantee("renumbering the atoms renumbers the features", lesson) as renumbering:
            other, order = renumbered(batch)
            node, pair = before
            expected = (
                node if node is None else node[order],
                pair if pair is None else pair[graph.pair_of(order[graph.pair_index])],
            )
            both(encoding(other, graph), expected, renumbering)
    if encoding.fixed:
        lesson = "`fixed = True` promises the same features in every epoch."
        with guarantee("what is fixed is the same in a second call", lesson) as fixed:
            both(encoding(batch, graph), before, fixed, 0.0)


# --- Models: any order of atoms, any batch-mates, both layouts, edge cases, gradients, weights in a file.


def check_model(
    model: nn.Module,
    featuriser: Featuriser | None = None,
    positions: Literal["none", "known", "partial"] = "none",
    tolerance: float = 1e-5,
) -> None:
    """Check a model of your own, which maps a batch to `[molecules, outputs]`.

    Args:
        model: module to check; copies of the module are checked in evaluation mode, gradients in training mode.
        featuriser: settings for reading molecules; default `Featuriser()`.
        positions: coordinates of the molecules, see `example_batch`; with "known" or "partial" a rotation, a mirror
            image and a translation must change nothing.
        tolerance: tolerance of float32, as a share of the largest output.

    Raises:
        GuaranteeError: renumbered atoms or batch-mates change an output; edge list and complete graph differ (of a
            `GraphTransformer`); a gradient is missing or not finite; one atom, a salt without bonds, a chain of 300
            atoms, or a batch without molecules fails; a state dict is not all there is to the model.
    """
    guarantee = partial(_Guarantee, type(model).__name__, "docs/your-own.md")
    original, model = model, deepcopy(model).eval()
    batch = example_batch(featuriser, positions=positions)
    with guarantee("one row per molecule", "A readout pools the atoms by `batch.batch`.") as shapes:
        whole = model(batch)
        shapes.require(whole.dim() == 2 and len(whole) == batch.num_graphs, f"[{batch.num_graphs}, T]", [*whole.shape])
    lesson = "Pool by sum, mean or max, and let nothing depend on the numbers of atoms."
    with guarantee("renumbering the atoms changes nothing", lesson) as renumbering:
        other, order = renumbered(batch)
        renumbering.equal(model(other), whole, tolerance)
        if isinstance(model, GraphTransformer):
            renumbering.equal(model.nodes(other), model.nodes(batch)[order], tolerance, "the states of the atoms")
    lesson = "Norms over a batch, and padding that is not masked, let molecules see each other."
    with guarantee("batch-mates do not matter", lesson) as mates:
        alone = torch.cat([model(_alone(batch, b)) for b in range(batch.num_graphs)])
        mates.equal(alone, whole, tolerance)
    lesson = "Guard divisions and logarithms, and means over nothing."
    for what, smiles in (("one atom", ["C"]), ("no bonds", ["[Na+].[Cl-]"]), ("a long chain", [PEPTIDE])):
        with guarantee(what, lesson) as case:
            out = model(example_batch(featuriser, smiles, positions))
            case.require(bool(out.isfinite().all()), "finite outputs", "NaN or infinity")
    with guarantee("a batch without molecules", "Take the number of rows from `batch.num_graphs`.") as nothing:
        empty = featurise(featuriser or Featuriser(), ["C"], workers=0).store.batch(torch.zeros(0, dtype=torch.long))
        if positions != "none":
            empty.pos = torch.zeros(0, 3)
        out = model(empty)
        nothing.require(out.shape == (0, whole.shape[1]), f"[0, {whole.shape[1]}]", [*out.shape])
    lesson = "A parameter that the output does not depend on is never trained: use it, or take it away."
    with guarantee("every parameter has a finite gradient", lesson) as trained:
        learner = deepcopy(original).train()
        learner(batch).square().sum().backward()
        idle = [key for key, p in learner.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
        trained.require(not idle, "finite gradients", f"none, or NaN, of {', '.join(idle)}")
    if isinstance(model, GraphTransformer):
        lesson = "Every attention must give the same over `graph` and over `graph.edge_index`."
        with guarantee("edge list and complete graph agree", lesson) as layouts:
            results = []
            for edge_list in (False, True):
                double = deepcopy(model).double()
                double.edge_list = edge_list
                out = double(_double(batch))
                used = dict(double.named_parameters())
                gradients = torch.autograd.grad(out.square().sum(), list(used.values()), allow_unused=True)
                results.append([out, *gradients])
            for what, one, other in zip(["the output", *used], *results, strict=True):
                layouts.equal(one, other, 1e-10, what)
    if positions != "none":
        lesson = "Read distances and angles; a coordinate itself may not enter a number."
        with guarantee("rotation, mirror image and translation change nothing", lesson) as moving:
            still, exact = _double(batch), deepcopy(model).double()
            moved = still.clone()
            turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))).Q
            moved.pos = still.pos @ -(turn * turn.det().sign()) + 5.0  # a rotation and a mirror image
            moving.equal(exact(moved), exact(still), 1e-10)
    lesson = "Weights are `nn.Parameter`s; constants that training does not change are buffers."
    with guarantee("a state dict holds all there is to the model", lesson) as round_trip:
        copy = _shaken(original, 3).eval()
        copy.load_state_dict(original.state_dict())
        round_trip.equal(copy(batch), whole, 0.0)


def _double(batch: Batch) -> Batch:
    return batch.clone().apply(lambda values: values.double() if values.is_floating_point() else values)


# --- Tasks: cells, scales, loss, answers, the header of a model file.


def check_task(task: Task, table: Mapping[str, Sequence[Any]], smiles_column: str = "smiles") -> None:
    """Check a task of your own on a table with its target columns.

    The check trains outputs without a network, as free parameters, by the loss of the task for a few hundred steps. If
    cells, scaling, loss and predictions are consistent, the predictions come closer to the targets.

    Args:
        task: task with targets of molecules, atoms or bonds; not sequences.
        table: columns by name, with at least 20 rows; one column holds SMILES.
        smiles_column: name of the column of SMILES.

    Raises:
        GuaranteeError: no cell becomes a target; fitting a fitted task to other rows changes it; the loss or its
            gradient is not finite; a blank target teaches; minimising the loss does not improve the scores; answers do
            not fit the columns; another row changes an answer; the header of a model file does not give the same task
            back.
    """
    from gtx.training_data import DataSettings, load_training_table

    guarantee = partial(_Guarantee, type(task).__name__, "docs/your-own-task.md")
    lesson = "`infer_from_table` and `parse` read cells, which are text; a blank is NaN."
    with guarantee("cells become targets", lesson) as parsing, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([[*table], *zip(*(table[column] for column in table), strict=True)])
        data = load_training_table(DataSettings(str(path), task=task, smiles_column=smiles_column, workers=0))
        parsing.require(len(data.store) > 0, "molecules with a target", "none")
    if data.task.writes:
        raise TypeError(f"check_task: expected a task of molecules, atoms or bonds, got {data.task.name}, of sequences")
    store = data.store
    lesson = "`fit` learns once: it returns a field only while the task has None there."
    with guarantee("a fitted task is returned as it is", lesson) as fitting:
        fitted = data.task.fit(store)
        for first in (0, 1):  # on other rows, as a second fit to the same ones changes nothing
            with suppress(InputError):  # of a half without a value or a class
                again = fitted.fit(store.subset(torch.arange(first, len(store), 2)))
                fitting.require(again.to_dict() == fitted.to_dict(), "the same entries of the header", "others")
    examples = fitted.objective.examples(store)
    batch = examples.batch(torch.arange(len(store)))
    free = _FreeOutputs(fitted, batch)
    lesson = "Guard logarithms and divisions, and cut outputs to where the loss is finite."
    with guarantee("the loss and its gradient are finite", lesson) as finite:
        loss = fitted.objective.mean_loss(fitted.objective.forward(free, batch), batch)
        finite.require(loss.dim() == 0 and bool(loss.isfinite()), "a finite number", loss)
        gradients = torch.autograd.grad(loss, list(free.parameters()), allow_unused=True)
        finite.require(all(g is None or bool(g.isfinite().all()) for g in gradients), "a finite gradient", "NaN")
    if fitted.level == "molecule" and not fitted.also and store.y is not None:
        with guarantee("a blank target teaches nothing", "Mask entries of the loss that are NaN.") as blank:
            y = store.y.clone()
            y[0] = torch.nan
            unknown = fitted.objective.examples(store.with_targets(y)).batch(torch.arange(len(store)))
            unknown.bounds = None
            loss = fitted.objective.mean_loss(fitted.objective.forward(free, unknown), unknown)
            (gradient,) = torch.autograd.grad(loss, list(free.parameters()))
            blank.require(bool(gradient[0].eq(0).all()), "a gradient of 0 at a blank", gradient[0].tolist())

    def answers(of: Task, molecules: Any, members: list[nn.Module]) -> Any:
        return of.answers.decode(
            of.objective.predict(members, of.objective.examples(molecules).batch(torch.arange(len(molecules)))),
            molecules,
        )

    lesson = "The answer, `unscale`, must be where the loss of the scaled target is least."
    with guarantee("minimising the loss improves the scores", lesson) as learning, torch.enable_grad():
        title, metric = next(iter(fitted.metrics.items()))
        everything = np.arange(len(store))
        scores = []
        for steps in (0, 200):
            optimiser = torch.optim.Adam(free.parameters(), 0.1)
            for _ in range(steps):
                optimiser.zero_grad()
                fitted.objective.mean_loss(fitted.objective.forward(free, batch), batch).backward()
                optimiser.step()
            with torch.no_grad():
                decoded = answers(fitted, store, [free])
            scores.append(fitted.answers.score([free], store, decoded, everything)[title])
        before, after = scores
        better = after < 0.75 * before if metric.lower else after > before
        wanted = f"below {0.75 * before:.3g}, three quarters of what it was" if metric.lower else f"above {before:.3g}"
        learning.require(better, f"{title} of the training rows {wanted}", f"{after:.3g}")
    with guarantee("answers fit their columns", "`output_columns` names what `decode` gives, in order.") as columns:
        named = fitted.answers.output_columns([], 1)
        shapes = [len(column) for column in decoded.columns()]
        columns.require(shapes == [len(store)] * len(named), f"{len(named)} columns of {len(store)} rows", shapes)
    lesson = "Plain values for JSON: lists, numbers, texts; `learned` names the kind of those that are fitted."
    with guarantee("the header of a model file gives the task back", lesson) as header, torch.no_grad():
        described = json.loads(json.dumps(fitted.to_dict()))
        restored = type(fitted).from_dict(described)
        header.require(json.loads(json.dumps(restored.to_dict())) == described, "the same entries", "others")
        for one, other in zip(decoded.columns(), answers(restored, store, [free]).columns(), strict=True):
            header.require(_same(one, other), "the same answers", "others")


class _FreeOutputs(nn.Module):
    """A model without a network: an output for each molecule, atom or bond of one batch."""

    def __init__(self, task: Task, batch: Batch) -> None:
        super().__init__()
        rows = {"molecule": batch.num_graphs, "atom": batch.num_nodes, "bond": batch.num_edges}
        widths = [(task.level, task.objective.out_channels), *task.also.items()]
        generator = torch.Generator().manual_seed(0)
        noise = [0.1 * torch.randn(rows[level], width, generator=generator) for level, width in widths]
        self.outputs = nn.ParameterList(noise)

    def forward(self, batch: Batch) -> Tensor | tuple[Tensor, ...]:
        outputs = tuple(self.outputs)
        return outputs if len(outputs) > 1 else outputs[0]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    """Compare two columns of answers, of numbers, texts or lists."""
    try:
        np.testing.assert_equal([*one], [*other])
    except AssertionError:
        return False
    return True
