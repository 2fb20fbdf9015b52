"""Export of a model to ONNX: one module that torch can trace, compared with the model before the file is written."""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

import gtx
from gtx.base.errors import InputError, first_line
from gtx.base.files import atomic_file
from gtx.export.running import INPUTS, METADATA, ExportedModel
from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import hash_atom_environments
from gtx.graph.packing import Buckets, FlatToPaddedMap
from gtx.kernel import KernelRidge
from gtx.kernel.kernels import DescriptorKernel
from gtx.models import GraphTransformer
from gtx.molecules import ATOM_FEATURE_VALUES
from gtx.prediction.foundation_embedding import FoundationEmbedding, foundation_spec, reading_parts
from gtx.prediction.model_file import blend_outputs
from gtx.prediction.predictor import Predictor
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.tasks.regression import ELEMENTS
from gtx.tasks.uncertainty import TINY

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
MOST_ATOMS, MOST_BONDS = 10_000, 40_000
"""Limits of torch's program; directed bonds."""
EXAMPLE = "CC(=O)Oc1ccccc1C(=O)O"
UNUSUAL = ("C", "[Na+].[Cl-]", "CO", "C" * 40, "C[C@H](N)C(=O)O.Cl", "F[C@@](Cl)(Br)I", "O=C1CCC/C=C\\CCC1")
"""Molecules of every check: one atom, no bonds, long distances, several fragments, stereochemistry."""
TRAINING_ROWS = 200
"""Maximum number of training rows of the model file that are checked."""
TOLERANCE = 1e-4
"""Largest difference from the model: a share of a target's standard deviation, or a probability."""


@dataclass(frozen=True)
class Export:
    """Outcome of an export."""

    columns: list[str]  # that are predicted
    checked: int  # number of molecules compared with the model
    unread: int  # number of molecules that the model cannot predict
    difference: float  # the largest, in `unit`
    unit: str  # "standard deviations of the target" for numbers, "of a probability" for classes
    size: int  # of the file, in bytes


def export_model(
    model: Predictor, path: str | Path, molecules: Sequence[str] = (), show: Callable[[str], None] = lambda _: None
) -> Export:
    """Write a trained model to an ONNX file, which maps the arrays of a molecule to its predictions.

    Args:
        model: predictor of numbers or classes of molecules.
        path: path of the file, `.onnx`.
        molecules: SMILES to compare, in addition to `UNUSUAL` and training rows of the model file.
        show: function that is called with the description of each of the three stages when it begins.

    Raises:
        InputError: a module of the model cannot be exported, the predictions of file and model differ, the ending of
            the file name is wrong, or a package is missing. No file is written then.
    """
    if Path(path).suffix != ".onnx":
        raise InputError(f"expected a file that ends with .onnx, got {path}")
    if lacking := [name for name in PACKAGES if not find_spec(name)]:
        raise InputError(f'export needs {", ".join(lacking)}: pip install "gtx[export]"')
    program = make_program(model)
    about: dict[str, Any] = {
        "gtx": gtx.__version__,
        "columns": program.columns,
        "targets": model.header.targets,
        "units": model.header.units,
        "featuriser": model.header.featuriser.to_dict(),
    }
    show("1/3 tracing the model with torch")
    traced = trace(program, model)
    show("2/3 translating it to ONNX, which takes longest")
    written = _to_onnx(traced, about)
    rows = [] if model.header.training is None else list(model.header.training.smiles[:TRAINING_ROWS])
    smiles = [*UNUSUAL, *molecules, *rows]
    show(f"3/3 comparing the file with the model on {len(smiles):,} molecules")
    expected = model.predict(smiles)
    difference = _compare(ExportedModel(written), model, smiles, expected)
    checked = int(expected["error"].isna().sum())
    about["checked"] = {"molecules": checked, "difference": difference}
    content = _with_metadata(written, about)
    with atomic_file(path) as file:
        file.write(content)
    unit = "standard deviations of the target" if isinstance(model.task, Regression) else "of a probability"
    return Export(program.columns, checked, len(smiles) - checked, difference, unit, len(content))


def make_program(model: Predictor) -> MoleculeProgram:
    """Make the module that is exported, on the CPU."""
    cpu = Predictor(deepcopy(model.members), model.header, "cpu", deepcopy(model.kernel_member))
    return MoleculeProgram(cpu, FoundationEmbedding.of(foundation_spec()).network()).eval()


def trace(program: MoleculeProgram, model: Predictor) -> torch.export.ExportedProgram:
    """Trace the program by `torch.export`, for any molecule of two atoms and a bond or more.

    Raises:
        InputError: a module of the model cannot be traced.
    """
    atoms, bonds = torch.export.Dim("atoms", max=MOST_ATOMS), torch.export.Dim("bonds", max=MOST_BONDS)
    molecule = model.header.featuriser(EXAMPLE)
    example = tuple(torch.from_numpy(getattr(molecule, name)) for name in INPUTS)
    shapes = ({0: atoms}, {1: bonds}, {0: bonds}, None)
    try:
        with torch.no_grad(), _quietly():
            return torch.export.export(program, example, dynamic_shapes=shapes, strict=False)
    except Exception as reason:  # torch raises many kinds, and a module of a model may raise its own
        name = model.header.model["name"]
        raise InputError(
            f"{name} cannot be exported: torch cannot trace it for all sizes: {first_line(reason)}"
        ) from reason


def _to_onnx(traced: torch.export.ExportedProgram, about: dict[str, Any]) -> bytes:
    try:
        with torch.no_grad(), _quietly():
            made = torch.onnx.export(traced, input_names=INPUTS, output_names=["answers"], verbose=False)
    except Exception as reason:  # an operation that ONNX lacks
        raise InputError(f"this model cannot be exported: ONNX lacks an operation: {first_line(reason)}") from reason
    if made is None:
        raise InputError("this model cannot be exported: torch made no ONNX program of it")
    return _with_metadata(made.model_proto.SerializeToString(), about)


def _with_metadata(written: bytes, about: dict[str, Any]) -> bytes:
    """Set the description of the model in the bytes of an ONNX file."""
    import onnx

    proto = onnx.load_from_string(written)
    onnx.helper.set_model_props(proto, {METADATA: json.dumps(about)})
    return proto.SerializeToString()


def _compare(exported: ExportedModel, model: Predictor, smiles: Sequence[str], expected: pd.DataFrame) -> float:
    """Return the largest difference from the predictions that are expected.

    Raises:
        InputError: the difference is above `TOLERANCE`, or one has an answer where the other has none.
    """
    answers, largest = exported.predict(smiles), 0.0
    for column in exported.columns:
        scale = _scale(model, column)
        ours, theirs = expected[column].to_numpy(float), np.asarray(answers[column])
        off = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, np.abs(ours - theirs) / scale)
        worst = int(np.nanargmax(np.where(np.isnan(off), np.inf, off)))
        if not off[worst] <= TOLERANCE:
            raise InputError(
                f"this model cannot be exported: {column} of {smiles[worst]} would be {theirs[worst]:.6g} and not "
                f"{ours[worst]:.6g}"
            )
        largest = max(largest, float(off[worst]))
    return largest


def _scale(model: Predictor, column: str) -> float:
    """Return the standard deviation of the target of a column; 1 for probabilities."""
    task = model.task
    if not isinstance(task, Regression):
        return 1.0
    target = max((name for name in task.targets if column.startswith(name)), key=len)
    return float(task.scaler.sd[task.targets.index(target)]) or 1.0


@contextmanager
def _quietly() -> Iterator[None]:
    """Hold back the warnings that torch and onnxscript give about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# --- The model as one module from the arrays of a molecule to its answers, which torch can trace for any size.
#
# First the graph: the pairs of one molecule, whose number may be unknown.


class OneMolecule(CompleteGraph):
    """The complete graph of one molecule of n atoms; pair (r, s) is number r n + s, and nothing is padded."""

    @classmethod
    def of(cls, size: int) -> Self:
        """Build the graph of `size` atoms."""
        each, pairs = torch.arange(size), torch.arange(size * size)
        nodes = FlatToPaddedMap(each, each, each[:0])
        packed = Buckets(nodes, nodes, FlatToPaddedMap(pairs, pairs, pairs[:0]), ((1, size, size),))
        receiver = each[:, None].expand(size, size).reshape(-1)
        sender = each[None].expand(size, size).reshape(-1)
        shared = {
            "packed": packed,
            "pair_index": torch.stack([sender, receiver]),
            "diagonal": each * (size + 1),
        }
        first, count = torch.zeros(1, dtype=torch.long), torch.full((1,), size, dtype=torch.long)
        ptr, pair_ptr = torch.cat([first, count]), torch.cat([first, count * count])
        return cls(ptr, torch.zeros_like(each), pair_ptr, size * size, shared=shared)

    def grown(self, count: int | Tensor) -> Self:
        if isinstance(count, Tensor):
            raise NotImplementedError("a number of further nodes that depends on the molecule")
        return type(self).of(self.num_nodes + count)


# --- The kernel, in tensor operations alone.


class TracedKernel(nn.Module):
    r"""A solved `gtx.kernel.KernelRidge` for one molecule:

    \[ \hat y = \mu + k^\top \alpha, \qquad
       k_i = (1 - s) \frac{m_i}{a + a_i - m_i} + s\, k_D(z, z_i), \qquad m_i = \sum_s \min(c_s, c_{is}) \]

    with the counts c of the molecule, \(c_i\) of reference i, and their sums a, \(a_i\).

    Args:
        kernel: solved.
    """

    kind_label: Tensor
    kind: Tensor
    count: Tensor
    owner: Tensor
    sizes: Tensor
    dual: Tensor
    offset: Tensor

    def __init__(self, kernel: KernelRidge) -> None:
        super().__init__()
        self.labels = kernel.labels
        for name in ("kind_label", "kind", "count"):
            self.register_buffer(name, getattr(kernel, name))
        self.register_buffer("owner", torch.repeat_interleave(kernel.ptr.diff()))
        self.register_buffer("sizes", torch.from_numpy(kernel.references.sum(1)).double())
        self.register_buffer("dual", kernel.dual.double())
        self.register_buffer("offset", kernel.offset.double())
        self.descriptors = None if kernel.descriptors is None else TracedMatern(kernel.descriptors)
        self.embeddings = None if kernel.embeddings is None else TracedMatern(kernel.embeddings)

    def forward(self, batch: Batch) -> Tensor:
        similar = self.similarity(batch)
        if self.descriptors is not None:
            similar = similar.lerp(self.descriptors(batch.u), self.descriptors.share)
        if self.embeddings is not None:
            similar = similar.lerp(self.embeddings(batch.embeddings), self.embeddings.share)
        return (self.offset + similar @ self.dual).float()

    def similarity(self, batch: Batch) -> Tensor:
        """Compute the Tanimoto kernel to the references, float64 `[1, rows]`."""
        labels = torch.cat([hash_atom_environments(batch, **one) + k for k, one in enumerate(self.labels)]).flatten()
        place = _search(self.kind_label, labels)
        known = self.kind_label[place] == labels
        counts = torch.zeros_like(self.kind_label).index_add_(0, place, known.long())
        least = torch.minimum(counts[self.kind.long()], self.count.long()).double()
        common = torch.zeros_like(self.sizes).index_add_(0, self.owner, least)
        return (common / (labels.shape[0] + self.sizes - common))[None]


class TracedMatern(nn.Module):
    """A `gtx.kernel.kernels.DescriptorKernel` whose constants are numbers."""

    references: Tensor
    share: Tensor

    def __init__(self, kernel: DescriptorKernel) -> None:
        super().__init__()
        self.kernel = kernel
        self.register_buffer("references", kernel.references)
        self.register_buffer("share", kernel.share.double())
        varies = max(1, int(kernel.scaler.scale.count_nonzero()))
        self.slope: float = math.sqrt(3 / varies) / float(kernel.length)

    def forward(self, features: Tensor) -> Tensor:
        r = (self.kernel.z_scores(features) - self.references).square().sum(1).sqrt() * self.slope
        return ((1 + r) * torch.exp(-r))[None]


def _search(ascending: Tensor, values: Tensor) -> Tensor:
    """Find the first entry of `ascending` `[V]` that is not below each value, at most V - 1, by bisection."""
    last = ascending.shape[0] - 1
    low, high = torch.zeros_like(values), torch.full_like(values, last)
    for _ in range(last.bit_length()):
        middle = (low + high) // 2
        below = ascending[middle] < values
        low, high = torch.where(below, middle + 1, low).clamp(max=last), torch.where(below, high, middle)
    return low


# --- From the outputs of the members to the answers.


class NumberAnswers(nn.Module):
    """Predicted numbers in the units of the table, with standard deviations and intervals if the model has any."""

    def __init__(self, task: Regression) -> None:
        super().__init__()
        self.task = task

    def forward(self, outputs: Tensor, atoms: Tensor) -> Tensor:
        """Convert outputs `[1, members, C]` to answers `[columns]`."""
        task, scaler, count = self.task, self.task.scaler, len(self.task.targets)
        composition = None if scaler.reference is None else element_counts(atoms)[None]
        members = scaler.unscale(outputs.transpose(0, 1)[..., :count], composition)[:, 0]
        mean = members.mean(0)
        parts, reach = [mean], None
        if task.uncertainty != "none":
            unit = scaler.sd * torch.tensor(task.std_factor or [1.0] * count, dtype=torch.float64)
            std, *reach = (
                each[0].double() * unit for each in task.method.spread(outputs.float().unflatten(-1, (-1, count)))
            )
            parts.append(std)
        elif members.shape[0] > 1:
            parts.append(members.std(0))
        if task.interval is not None and task.answers.has_intervals:
            widths = [math.nan if width is None else width for width in task.interval["half_width"]]
            half = torch.tensor(widths, dtype=torch.float64)
            below, above = (half, half) if reach is None else (half * each for each in reach)
            parts += [mean - below, mean + above]
        return torch.stack(parts, 1).flatten()


class ClassAnswers(nn.Module):
    """Probabilities of classes, calibrated by a temperature, and the disagreement of the members."""

    def __init__(self, task: BinaryClassification | MulticlassClassification) -> None:
        super().__init__()
        self.task = task

    def forward(self, outputs: Tensor, atoms: Tensor) -> Tensor:
        """Convert outputs `[1, members, C]` to answers `[columns]`."""
        members = self.task.objective.softmaxes(outputs[0])
        std = members.std(0) if members.shape[0] > 1 else None
        parts = []
        for t, place in enumerate(self.task.objective.places):
            p, two = members.mean(0)[place.columns], isinstance(self.task, BinaryClassification)
            if self.task.temperatures is not None:
                whole = torch.cat([1 - p, p]) if two else p
                p = ((whole + TINY).log() / self.task.temperatures[t]).softmax(0)[-p.shape[0] :]
            spread = [] if std is None else [std[place.columns] if two else std[place.columns][p.argmax()][None]]
            parts += [p, *spread] if two else [*spread, p]
        return torch.cat(parts)


def element_counts(atoms: Tensor) -> Tensor:
    """Count the atoms of each element of one molecule, hydrogens included, float64 `[119]`: `gtx.tasks.regression`."""
    names = list(ATOM_FEATURE_VALUES)
    element, hydrogens = atoms[:, names.index("element")], atoms[:, names.index("hydrogens")]
    each = torch.arange(ELEMENTS)
    counts = (element[:, None] == each).double().sum(0)
    return counts + (each == 1) * (hydrogens - 1).clamp(min=0).double().sum()


# --- The whole.


class MoleculeProgram(nn.Module):
    """Module that predicts for one molecule.

    Args:
        model: of numbers or classes of molecules.
        foundation: the pretrained network whose embeddings network and kernel read, if they do.

    Attributes:
        columns: names of the answers.

    Shapes:
        atoms uint8 `[N, A]`, bonds int32 `[2, E]`, bond_codes uint8 `[E, F]` and descriptors float32 `[D]` to float64
        `[len(columns)]`.

    Raises:
        InputError: the model has a property that an exported file cannot have.
    """

    share: Tensor

    def __init__(self, model: Predictor, foundation: GraphTransformer | None = None) -> None:
        super().__init__()
        check_exportable(model)

        def traced(module: nn.Module) -> nn.Module:
            return TracedKernel(module) if isinstance(module, KernelRidge) else module

        self.members: nn.ModuleList = nn.ModuleList(traced(member) for member in model.members)
        partner = model.kernel_member
        self.kernel: TracedKernel | None = None if partner is None else TracedKernel(partner.kernel)
        parts = [*model.members, *([] if partner is None else [partner])]
        self.foundation: GraphTransformer | None = foundation if any(map(reading_parts, parts)) else None
        self.register_buffer("share", torch.zeros(0) if partner is None else partner.share)
        regression = isinstance(model.task, Regression)
        self.answers: nn.Module = NumberAnswers(model.task) if regression else ClassAnswers(model.task)
        self.columns: list[str] = [name for name, kind in model.output_columns([]).items() if kind is float]

    def forward(self, atoms: Tensor, bonds: Tensor, bond_codes: Tensor, descriptors: Tensor) -> Tensor:
        graph = OneMolecule.of(atoms.shape[0])
        codes = {"x": atoms.long(), "edge_index": bonds.long(), "edge_attr": bond_codes.long()}
        where = {"batch": graph.batch, "ptr": graph.ptr, "graph": graph}
        batch = Batch(_base_cls=Data, **codes, **where, u=descriptors[None])
        first = self.members[0]
        if isinstance(first, GraphTransformer):  # encodings that all members and the foundation share
            batch.fixed = first.compute_encodings(batch, list(first.fixed))
        if self.foundation is not None:
            batch.embeddings = self.foundation.embed(batch)
        outputs = torch.stack([member(batch).double() for member in self.members], 1)
        if self.kernel is not None:
            outputs = blend_outputs(outputs, self.kernel(batch), self.share)
        return self.answers(outputs, codes["x"])


EXPORTABLE = (Regression, BinaryClassification, MulticlassClassification)


def check_exportable(model: Predictor) -> None:
    """Raise an `InputError` that names the property of a model that an exported file cannot have."""
    task, featuriser = model.task, model.header.featuriser
    uncertainty = getattr(task, "uncertainty", "none")
    lacking: Sequence[tuple[bool, str]] = (
        (type(task) not in EXPORTABLE or task.level != "molecule", f"the task {task.name}"),
        (uncertainty == "similarity", "uncertainty similarity"),
        (not isinstance(task, Regression) and uncertainty == "evidential", "evidential classes"),
        (getattr(task, "curves", None) is not None, "isotonic calibration"),
        (bool(model.header.features.columns), "feature columns"),
        (featuriser.unit != "molecule", f"{featuriser.unit}s"),
        (featuriser.coordinates, "coordinates"),
    )
    for present, name in lacking:
        if present:
            raise InputError(f"this model cannot be exported: gtx export does not support {name}")
