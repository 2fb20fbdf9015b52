"""Model files: header, weights and versions, written and read with every check."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch_geometric.data import Batch

import gtx
from gtx.base.errors import InputError, did_you_mean, printable
from gtx.base.files import atomic_file
from gtx.base.schema import (
    LARGEST,
    Anything,
    Entries,
    Number,
    Text,
    check,
    entries,
    integer,
    list_of,
    mapping_of,
    number,
    shown,
)
from gtx.data import FeatureColumns, MoleculeStore
from gtx.data.feature_columns import NO_FEATURES
from gtx.data.rows import percent
from gtx.kernel import KernelRidge
from gtx.models import ARCHITECTURES, build_model
from gtx.models.catalogue import CLOSED_FORM_MODELS, SPEC
from gtx.molecules import Featuriser
from gtx.prediction.domain import Domain, TrainingExtent, TrainingRows
from gtx.prediction.foundation import FOUNDATION_MODEL, resolve_model_path
from gtx.tasks import TASKS, Task
from gtx.tasks.numeric import is_numeric

if TYPE_CHECKING:
    from gtx.tasks import NumericTask

# --- Versions of the libraries.

LIBRARIES = ("torch", "torch-geometric", "rdkit", "pytorch-lightning", "numpy")


def package_versions() -> dict[str, str]:
    """Return the versions of Python, gtx and the packages that can change a result."""
    libraries = {library: version(library) for library in LIBRARIES}
    return {"gtx": gtx.__version__, "python": platform.python_version(), **libraries}


# --- The kernel of a blend, beside the networks of a model file.


def blend_outputs(outputs: Tensor, own: Tensor, share: Tensor) -> Tensor:
    """Blend the first P outputs of networks `[B, members, C]`, float64, with outputs of a kernel `[B, P]` by its share
    `[P]`.
    """
    predictions, rest = outputs.tensor_split([len(share)], dim=-1)
    mixed = predictions + share.double().cpu() * (own.double()[:, None] - predictions)
    return torch.cat([mixed, rest], dim=-1)


class KernelMember(nn.Module):
    r"""Blend of the outputs of networks and of a kernel: \(z = (1 - s)\, z_n + s\, z_k\).

    Outputs are z-scores or logits. Outputs after the first P, such as variances, come from the network alone.

    Args:
        kernel: kernel model, solved for the same task.
        share: weight s of the kernel model in each prediction, `[P]`, from 0 to 1.
    """

    share: Tensor

    def __init__(self, kernel: KernelRidge, share: Tensor) -> None:
        super().__init__()
        self.kernel = kernel
        self.register_buffer("share", share)

    def forward(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Blend the outputs `[B, members, C]` of networks for a batch with the kernel's."""
        return blend_outputs(outputs, self.kernel(batch).cpu(), self.share)

    def check(self) -> None:
        """Check the shares and the counts of the kernel, which come from a file."""
        wrong = self.share[(self.share < 0) | (self.share > 1)]
        if len(wrong):
            raise InputError(f"tensor partner.share: expected shares from 0 to 1, got {shown(float(wrong[0]))}")
        self.kernel.check()  # compiled loops go where its counts lead

    def shares(self, task: NumericTask) -> dict[str, float]:
        """Return the share of the kernel in each target."""
        places = zip(task.targets, task.objective.places, strict=True)
        return {name: float(self.share[place.columns][0]) for name, place in places}

    def describe(self, task: NumericTask) -> str:
        """Describe the shares in words, target by target where they differ."""
        each = {k: f"{percent(1 - share)} network + {percent(share)} kernel" for k, share in self.shares(task).items()}
        alike = len({*each.values()}) == 1
        blend = each[task.targets[0]] if alike else "; ".join(f"{name}: {words}" for name, words in each.items())
        names = self.kernel.kernel_names
        compares = f", compares {', '.join(names)} embeddings" if "foundation" in names else ""
        return f"{blend}, kernel of {len(self.kernel.row):,} molecules{compares}"


# --- The weights of a model file: the networks and the kernel that its header describes, compared with its tensors.

M = TypeVar("M", bound=nn.Module)
TYPES = {torch.bool: "BOOL", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16"}
"""Names of tensor types in safetensors, for tensors that are no weights; weights are float32, or float16 in the
file."""


def _read_modules(
    file: Any, header: ModelFileHeader, count: int, model: nn.Module | Callable[[], nn.Module] | None
) -> tuple[list[nn.Module], KernelMember | None]:
    """Read the networks `members.k.*` of a model file and the kernel of a blend, `partner.*`, in evaluation mode.

    They are first built without any memory, on torch's meta device, and compared with the tensors by name, shape and
    type; so a header can ask for no more memory than the file has bytes. What is not in order is an `InputError`.
    """
    names = set(file.keys())
    arguments = header.model["arguments"]
    for part in (arguments, arguments.get("encoder")) if model is None else ():
        layers = part.get("layers") if isinstance(part, dict) else None
        if isinstance(layers, int) and len(names) < layers <= LARGEST:  # what is no such number is refused by its kind
            raise InputError(f"model.arguments.layers: expected at most one per tensor, {len(names)}, got {layers}")

    def make_network() -> nn.Module:
        return _build(header.model) if model is None else deepcopy(model) if isinstance(model, nn.Module) else model()

    def make_kernel() -> KernelMember:
        kernel = _build(header.partner or {})
        if not isinstance(kernel, KernelRidge):
            raise InputError(f"partner.name: {shown((header.partner or {})['name'])} is no kernel")
        return KernelMember(kernel, torch.zeros(header.task.objective.num_predictions))

    networks = _meta_tensors(make_network) if model is None else make_network().state_dict()
    kernel = {} if header.partner is None else _meta_tensors(make_kernel)
    places = [f"members.{k}" for k in range(count)]
    expected = (f"{place}.{name}" for place in places for name in networks)
    _compare_names(names, chain(expected, (f"partner.{name}" for name in kernel)))
    members = [_load_module(make_network, file, place, networks) for place in places]
    if not kernel:
        return members, None
    partner = _load_module(make_kernel, file, "partner", kernel)
    partner.check()
    return members, partner


def _meta_tensors(make: Callable[[], nn.Module]) -> dict[str, Tensor]:
    with torch.device("meta"):
        return make().state_dict()


def _load_module(make: Callable[[], M], file: Any, place: str, expected: Mapping[str, Tensor]) -> M:
    """Make a module with the tensors of a file whose names begin with `place`, and which are as `expected`."""
    weights = {name: _read(file, f"{place}.{name}", tensor) for name, tensor in expected.items()}
    module = make()
    module.load_state_dict(weights)
    return module.eval()


def _build(spec: Mapping[str, Any]) -> nn.Module:
    try:
        return build_model(spec)
    except InputError:
        raise
    except Exception as reason:  # whatever arguments from outside may cause in whatever model
        message = printable(" ".join(str(reason).split()), 200)
        raise InputError(f"model.arguments: they describe no network ({type(reason).__name__}: {message})") from None


def _compare_names(names: set[str], expected: Iterable[str]) -> None:
    present = set()
    for name in expected:
        if name not in names:  # at the latest when all were found: `expected` may be far longer
            raise InputError(f"tensor {name}: the header describes it, the file has none")
        present.add(name)
    if surplus := sorted(names - present):
        raise InputError(f"tensor {printable(surplus[0])}: the file has it, the header describes none")


def _read(file: Any, name: str, expected: Tensor) -> Tensor:
    """Read a tensor of the file, and check its type, shape and values."""
    part = file.get_slice(name)
    kind = "F32" if expected.is_floating_point() else TYPES.get(expected.dtype, str(expected.dtype))
    half = expected.dtype == torch.float32 and part.get_dtype() == "F16"
    wanted = f"{kind} {list(expected.shape)}"
    came = f"{'F32' if half else part.get_dtype()} {list(part.get_shape())}"
    if came != wanted:
        raise InputError(f"tensor {name}: the header's model has {wanted}, the file {came}")
    tensor = file.get_tensor(name).to(expected.dtype)
    if not tensor.isfinite().all():
        raise InputError(f"tensor {name}: expected finite numbers, got {shown(tensor[~tensor.isfinite()][0].item())}")
    return tensor


# --- The model file: one safetensors file, weights of all members and a JSON header; nothing in it is ever executed.

FORMAT = 1
"""The format that this gtx writes, and the only one that it reads."""
CHECKSUM = "sha256"

_SCORES = entries({"per_target": mapping_of(mapping_of(Number | None))})
_TUNING = entries({}, {"rates": mapping_of(number(0))})
_FEATURES = entries({"names": list_of(Text), "blanks": bool}, {"atoms": list_of(Text), "bonds": list_of(Text)})
_HEADER = entries(
    {
        "members": integer(1),
        "task": entries({"name": Text}),  # which checks what it has learned itself
        "featuriser": entries({"settings": Entries, "hash": Text}),
        "model": SPEC,
        "versions": entries({"gtx": Text}),
    },
    {
        "partner": SPEC | None,
        "reference": entries({"row": list_of(Text, 1), "outputs": list_of(Number)}) | None,
        "smiles_column": Text,
        "units": mapping_of(Text),
        "domain": Entries | None,  # which `Domain.from_dict` checks
        "extent": Entries | None,  # which `TrainingExtent.from_dict` checks
        "features": _FEATURES | None,
        "split": Entries,
        "metrics": entries({}, dict.fromkeys(("train", "val", "test"), _SCORES)),
        "settings": entries({}, {"start": mapping_of(Text), "tuning": _TUNING}),
    },
)


@dataclass(frozen=True)
class ModelFileHeader:
    """Header of a model file: everything except the weights, such as the task, the architecture and the featuriser.

    Attributes:
        task: the fitted task.
        featuriser: settings for reading molecules.
        model: `{"name": a function of gtx.models, "arguments": {...}}`; for a module of your own, the class of the
            module.
        partner: specification of the kernel model of a blend, in the same form as `model`; or None.
        reference: for a module of your own, the molecules of one `row` and the `outputs` of all networks for it, which
            `gtx.load` compares; or None.
        smiles_column: the name of the column with the molecules.
        features: the feature columns.
        units: units of targets by name; optional for each target.
        extent: extent of the training rows, from which predictions get warnings; or None.
        training: training rows stored in the file; or None.
        domain: bands of similarity to the training rows, with the errors on validation rows; or None.
        split: settings of the split, and the number of rows in each part.
        metrics: the scores, as in `metrics.json`.
        settings: settings of the training, as in `config.yaml`, and `batch_pairs_used`, a number for each network.
            After fine-tuning, `start` describes the pretrained model. For a pretrained model, `tuning` has
            settings for fine-tuning, see `gtx.workflow.PretrainedModel`.
        versions: versions of the libraries used for training.
    """

    task: Task
    featuriser: Featuriser
    model: dict[str, Any]
    partner: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None
    smiles_column: str = "smiles"
    features: FeatureColumns = NO_FEATURES
    units: dict[str, str] = field(default_factory=dict)
    extent: TrainingExtent | None = None
    training: TrainingRows | None = None
    domain: Domain | None = None
    split: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=package_versions)

    @property
    def known_models(self) -> list[str]:
        """Names of gtx's models for the task; any other is a module of your own."""
        return [self.task.network] if self.task.network else [*ARCHITECTURES, *CLOSED_FORM_MODELS]

    @property
    def predicts_lists(self) -> bool:
        """Whether predictions are lists of values of atoms or bonds."""
        return self.task.level != "molecule" or bool(self.task.also)

    @property
    def targets(self) -> list[str]:
        """Names of the T targets."""
        return list(self.task.targets)

    def with_extent(self, network: nn.Module) -> ModelFileHeader:
        """Return the header with an extent: its own, or the codes that a network of the model has observed."""
        if self.extent is not None:
            return self
        return replace(self, extent=TrainingExtent.of_network(network, max(1, len(self.featuriser.components))))

    def warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Warn of what each molecule of a store has and training did not have, see `TrainingExtent.warnings`."""
        if self.extent is None:
            return [[] for _ in range(len(store))]
        return self.extent.warnings(store, self.featuriser.components, self.features)

    def quantity(self, column: int) -> str:
        """Name the quantity that a column predicts, with its unit if known."""
        if not is_numeric(self.task):
            raise InputError(f"a model of the task {self.task.name} predicts no numbers")
        words = self.task.answers.quantity(column)
        return f"{words} ({self.units[words]})" if words in self.units else words

    def to_dict(self) -> dict[str, Any]:
        """Convert the header to plain values for JSON."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        plain = {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in values.items()}
        featuriser = {"settings": self.featuriser.to_dict(), "hash": self.featuriser.hash}
        return {"format": FORMAT, **plain, "featuriser": featuriser}

    @classmethod
    def from_dict(cls, plain: dict[str, Any], kind: type[Task] | None = None, own: bool = False) -> ModelFileHeader:
        """Build a header from the plain values of `to_dict`.

        Args:
            plain: the plain values of a file.
            kind: the class of a task of your own.
            own: True for a model of your own.

        Raises:
            InputError: the format is another, the features of molecules are others than this gtx computes, or an entry
                is not in order.
        """
        check(plain, entries({"format": integer()}))
        if plain["format"] != FORMAT:
            made = "; a gtx from before 0.1.0 made it: train anew" if 2 <= plain["format"] <= 5 else ""
            raise InputError(f"it is of format {plain['format']}, this gtx reads format {FORMAT}{made}")
        check(plain, _HEADER)
        featuriser = Featuriser.from_dict(plain["featuriser"]["settings"])
        if featuriser.hash != plain["featuriser"]["hash"]:
            made, rdkit = plain["versions"]["gtx"], plain["versions"].get("rdkit", "unknown")
            raise InputError(
                f"gtx {made}, RDKit {rdkit} made it, which describes molecules differently: use these, or train anew"
            )
        read, names = plain.get("features") or {}, [each.name for each in fields(FeatureColumns)]
        features = FeatureColumns(**{name: read[name] for name in names if name in read})
        name = plain["task"]["name"]
        if kind is None and name not in TASKS:
            known = ", ".join(TASKS)
            advice = "a model of a task of your own is used in Python: gtx.load(FILE, task=its class)"
            raise InputError(f"task.name: expected one of {known}, got {shown(name)}; {advice}")
        task = (kind or TASKS[name].load()).from_dict(plain["task"]).with_features(features)
        values = {entry.name: plain[entry.name] for entry in fields(cls) if plain.get(entry.name) is not None}
        values |= {"featuriser": featuriser, "task": task, "features": features}
        if "training" in values:
            values["training"] = TrainingRows.from_dict(plain["training"])
        if "domain" in values:
            values["domain"] = Domain.from_dict(plain["domain"], len(task.targets))
        if "extent" in values:
            columns = len(featuriser.atom_sizes), len(featuriser.bond_sizes)
            values["extent"] = TrainingExtent.from_dict(plain["extent"], max(1, len(featuriser.components)), columns)
        for name in plain.keys() - {"training"}:  # also what is in no schema may be printed
            check(plain[name], Anything, name)
        header = cls(**values)
        if not own:
            _check_agreement(header)
        return header


def _check_agreement(header: ModelFileHeader) -> None:
    """Check that the entries of a header agree; each by itself is in order."""
    if header.partner is not None:
        arguments, outputs = header.partner["arguments"], header.task.objective.num_predictions
        _agree("partner.name", header.partner["name"], list(CLOSED_FORM_MODELS))
        _agree("partner.arguments.out_channels", arguments.get("out_channels"), [outputs])
        _agree("partner.arguments.num_descriptors", arguments.get("num_descriptors", 0), _kernel_reads(header))
        sides = header.featuriser.input_sizes.get("reaction", False)
        _agree("partner.arguments.reaction", arguments.get("reaction", False), [sides])
    if header.training is None or not len(header.training):
        if header.task.answers.reads_similarity:
            raise InputError("training: expected rows, from which task.uncertainty similarity tells the distance")
        if header.domain is not None:
            raise InputError("training: expected rows, to which domain compares molecules")
    model, arguments, read = header.model["name"], header.model["arguments"], header.featuriser
    if model not in header.known_models:
        names = ", ".join(header.known_models)
        raise InputError(f"model.name: {shown(model)} is not one of gtx's ({names}): give gtx.load(..., model=...)")
    usual = model in ARCHITECTURES and ARCHITECTURES[model].coordinates == "needed"
    coordinates = arguments.get("coordinates", usual)
    _agree("model.arguments.coordinates", coordinates, [False, True] if read.coordinates else [False])
    sizes = read.input_sizes
    for name in ("atom_sizes", "bond_sizes", "reaction"):
        _agree(f"model.arguments.{name}", arguments.get(name), [sizes[name]] if name in sizes else [None, False])
    size = "size" if header.task.writes else "out_channels"
    _agree(f"model.arguments.{size}", arguments.get(size), [header.task.objective.out_channels])
    width = header.features.width
    if not header.task.writes:
        fitting = [read.num_descriptors + width] if width else [0, read.num_descriptors]
        fitting = _kernel_reads(header) if model in CLOSED_FORM_MODELS else fitting
        _agree("model.arguments.num_descriptors", arguments.get("num_descriptors", 0), fitting)
        _agree("model.arguments.per", arguments.get("per", "molecule"), [header.task.level])
        _agree("model.arguments.also", arguments.get("also") or {}, [dict(header.task.also)])
        for name in ("atom_features", "bond_features"):
            wanted = header.features.widths.get(name, 0)
            _agree(f"model.arguments.{name}", arguments.get(name, 0), [wanted])
    components = header.model.get("components", {})
    apart = read.components and model not in CLOSED_FORM_MODELS  # a kernel compares all molecules of a row as one
    _agree("model.components.count", components.get("count"), [len(read.components) if apart else None])
    if components:
        _agree("model.components.further", components.get("further", 0), [width])


def _kernel_reads(header: ModelFileHeader) -> list[int]:
    """Return the numbers of descriptors that a kernel may read: none, or all."""
    own = header.featuriser.num_descriptors * max(1, len(header.featuriser.components))
    return [0, own + header.features.width]


def _agree(entry: str, value: Any, fitting: list[Any]) -> None:
    """Check that a value is one of those that agree with the other entries."""
    if value not in fitting:
        words = " or ".join(map(shown, fitting)) if len(fitting) < 3 else f"one of {', '.join(map(str, fitting))}"
        raise InputError(f"{entry}: expected {words}, got {shown(value)}")


def save_model(
    path: str | Path,
    members: Sequence[nn.Module],
    header: ModelFileHeader,
    kernel_member: KernelMember | None = None,
    half: bool = False,
) -> None:
    """Write a model file, completely or not at all; the same model always gives the same bytes.

    Args:
        path: the file to write.
        members: one or more networks, all with the specification `header.model`.
        header: the header.
        kernel_member: kernel model with the specification `header.partner`.
        half: whether parameters are written as float16, with three decimal digits and half the bytes; float16
            parameters are read as float32.
    """
    parts = {f"members.{k}": member for k, member in enumerate(members)}
    parts |= {"partner": kernel_member} if kernel_member else {}
    tensors = {
        f"{part}.{name}": tensor.detach().cpu().clone().contiguous()
        for part, module in parts.items()
        for name, tensor in module.state_dict().items()
    }
    if half:
        learned = [f"{part}.{name}" for part, module in parts.items() for name, _ in module.named_parameters()]
        tensors |= {name: tensors[name].half() for name in learned if tensors[name].dtype == torch.float32}
    plain = header.to_dict() | {"members": len(members)}
    check(plain, _HEADER)  # what gtx would not read it does not write
    digest = _digest(io.BytesIO(save(tensors)), plain)
    with atomic_file(path) as file:  # not by `save_file`, whose files nobody but the owner may read
        file.write(save(tensors, {"gtx": _text(plain | {CHECKSUM: digest})}))


def read_model(
    path: str | Path, model: nn.Module | Callable[[], nn.Module] | None = None, task: type[Task] | None = None
) -> tuple[list[nn.Module], ModelFileHeader, KernelMember | None]:
    """Read a model file: its members, on the CPU and in evaluation mode, its header, and the kernel of a blend.

    Nothing is allocated before the header has been checked, also against the tensors of the file. For the arguments see
    `gtx.prediction.load_predictor`.

    Raises:
        InputError: there is no such file, or it is damaged, foreign or of another version; the message names the entry
            or the tensor at fault.
    """
    path = resolve_model_path(path)
    try:
        with safe_open(path, "pt") as file:
            plain = _read_header(file.metadata(), path)
            header = ModelFileHeader.from_dict(plain, task, own=model is not None)
            members, kernel_member = _read_modules(file, header, plain["members"], model)
            return members, header, kernel_member
    except FileNotFoundError:
        if os.path.exists(path):  # safetensors says so of a file that may not be read
            raise InputError(f"cannot read {path}: {os.strerror(errno.EACCES)}") from None
        hint = did_you_mean(str(path), [FOUNDATION_MODEL])
        raise InputError(f"no such file: {path}{hint}") from None
    except OSError as reason:
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder; expected a file, such as {Path(path) / 'model.gtx'}") from None
        raise InputError(f"cannot read {path}: {reason.strerror or reason}") from None
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    except SafetensorError as reason:
        kind, expected = _other_kind(path), "expected one that gtx train wrote, such as run/model.gtx"
        if kind:
            raise InputError(f"{path} is not a gtx model file (it looks like {kind}); {expected}") from None
        why = printable(str(reason), 200)
        raise InputError(f"{path} is not a whole gtx model file ({why}); {expected}") from None


_STARTS = {
    b"\x1f\x8b": "a file packed by gzip",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"\x80": "a pickle of Python",
    b"\xff\xfe": "a text in UTF-16",
    b"\xfe\xff": "a text in UTF-16",
}


def _other_kind(path: Path) -> str | None:
    """Describe a file that is none of gtx by its first bytes; None for bytes that tell nothing."""
    with path.open("rb") as raw:
        start = raw.read(4096)
    if start[8:9] == b"{":  # a header of safetensors after its length
        return None
    if not start:
        return "an empty file"
    if start.startswith(b"PK\x03\x04"):  # both are ZIP files
        return "a checkpoint of PyTorch" if b"/data.pkl" in start else "a ZIP file or an Excel workbook"
    for mark, kind in _STARTS.items():
        if start.startswith(mark):
            return kind
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(start)  # its last character may be cut
    except UnicodeDecodeError:
        text = start.decode("latin-1")
    lines = text.splitlines()
    if not lines or not all(character.isprintable() or character == "\t" for line in lines for character in line):
        return None
    return "a table" if any(mark in lines[0] for mark in ",;\t") else "a text"


def _digest(raw: IO[bytes], plain: dict[str, Any]) -> str:
    """Compute the SHA-256 of a header and of the tensors in a safetensors file."""
    raw.seek(8 + int.from_bytes(raw.read(8), "little"))  # past the names of the tensors
    digest = hashlib.sha256(_text(plain).encode("utf-8", "surrogatepass"))
    while part := raw.read(2**20):
        digest.update(part)
    return digest.hexdigest()


def _text(plain: dict[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _read_header(metadata: dict[str, str] | None, path: Path) -> Any:
    """Read the header of a file, and compare its checksum."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no number of JSON")

    if not metadata or "gtx" not in metadata:
        raise InputError("it is a safetensors file, but gtx did not write it")
    try:
        plain = json.loads(metadata["gtx"], parse_constant=refuse)
        written = digest = plain.pop(CHECKSUM, None) if isinstance(plain, dict) else None
        if written is not None:
            with path.open("rb") as raw:
                digest = _digest(raw, plain)
    except (ValueError, RecursionError) as reason:
        raise InputError(f"its header is no JSON: {reason}") from None
    if digest != written:
        raise InputError("it is damaged: its SHA-256 is another than when gtx wrote it")
    return plain
