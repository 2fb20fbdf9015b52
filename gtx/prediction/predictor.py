"""The predictor: a trained model with its task, from molecules to answers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError, first_line
from gtx.data import FeatureColumns, FeaturisationResult, MoleculeStore, PairBudgetSampler, featurise
from gtx.data.feature_columns import NO_FEATURES
from gtx.data.table_writer import find_unused_column_name
from gtx.models import MoleculeModel
from gtx.molecules.reading import molecule_text
from gtx.prediction.domain import (
    MOST_NEIGHBOURS,
    Domain,
    NeighbourColumns,
    Neighbours,
    TrainingExtent,
    graph_featuriser,
)
from gtx.prediction.foundation_embedding import attach_foundation
from gtx.prediction.inputs import as_frame, as_texts, list_molecules, read_molecules, unusable_molecules
from gtx.prediction.model_file import KernelMember, ModelFileHeader, read_model, save_model
from gtx.prediction.streaming import NOT_FINITE, TableOutcome, predict_table
from gtx.tasks.numeric import is_numeric
from gtx.tasks.task import Answers, fresh_columns

if TYPE_CHECKING:
    from gtx.molecules import Featuriser
    from gtx.tasks import Task


# --- Work on many batches, spread over threads.

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call `function(item)` for each item, in order, as many at once as torch has threads.

    One thread for a batch is faster than all threads for each operation, most of which are small; and the threads of
    torch spin while they wait for the next one. The function sets the modes of a thread, such as
    `torch.inference_mode`, itself.
    """
    threads = torch.get_num_threads()
    count = min(threads, len(items))
    if count < 2:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(count, "gtx", torch.set_num_threads, (threads // count,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # threads to come take their number from whoever set it last


# --- From molecules to answers in the user's units.

BATCHES = {"cpu": (60_000, 256), "cuda": (2_000_000, 4_096)}
"""Maximum numbers of pairs and molecules of a batch by type of device. Larger batches are slower on a CPU, whose cache
they leave; a GPU takes longer to launch kernels than to compute hundreds of molecules."""
LARGE = 64
"""Molecules of more atoms are computed in float64: far outside most training sets, outputs can be so large that float32
rounds them visibly, and differently for each order of the atoms."""


class FurtherColumns(Protocol):
    """Columns of predictions after those of the task; the predictor renames those whose name is taken."""

    def named(self, predictor: Predictor) -> Iterable[tuple[str, type]]:
        """Return the names and types of the columns."""

    def values(self, predictor: Predictor, store: MoleculeStore, outputs: Any) -> list[np.ndarray]:
        """Compute the columns, `[m]` each, for the m molecules of a store and the outputs of the model for them."""


@dataclass(frozen=True)
class MemberColumns:
    """Prediction of each network, see `Predictor.with_members`."""

    def named(self, predictor: Predictor) -> Iterable[tuple[str, type]]:
        return predictor.task.answers.member_columns(len(predictor.members)).items()

    def values(self, predictor: Predictor, store: MoleculeStore, outputs: Any) -> list[np.ndarray]:
        return predictor.task.answers.member_predictions(outputs, store)


def _predictor_on(
    device: str, kind: type[Predictor], members: Sequence[nn.Module], header: ModelFileHeader, *rest: Any
) -> Predictor:
    """Make a predictor on a device; on the usual one if this machine lacks it."""
    lacking = torch.device(device).type == "cuda" and not torch.cuda.is_available()
    return kind(members, header, None if lacking else device, *rest)


class Predictor:
    """Trained model that predicts: one or more networks, the header of the model file, and the kernel model of a blend.

    Args:
        members: one or more networks of the same model.
        header: header of the model file, with the task.
        device: the device; by default a GPU if there is one.
        kernel_member: kernel model of a blend.
        further: columns of predictions after those of the task, see `with_members` and `with_neighbours`.
    """

    def __init__(
        self,
        members: Sequence[nn.Module],
        header: ModelFileHeader,
        device: str | None = None,
        kernel_member: KernelMember | None = None,
        further: Sequence[FurtherColumns] = (),
    ) -> None:
        self.header: ModelFileHeader = header.with_extent(members[0])
        self.device: torch.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.members: list[nn.Module] = [member.to(self.device).eval() for member in members]
        self.kernel_member: KernelMember | None = kernel_member and kernel_member.to(self.device).eval()
        self.further: tuple[FurtherColumns, ...] = tuple(further)
        self._parts = 1  # that a batch is cut into

    @classmethod
    def of(
        cls,
        members: Sequence[Any],
        featuriser: Featuriser,
        device: str | None = None,
        spec: dict[str, Any] | None = None,
        train: MoleculeStore | None = None,
        features: FeatureColumns = NO_FEATURES,
    ) -> Self:
        """Make a predictor from the result of `gtx.training.fit`.

        Args:
            members: the trained networks.
            featuriser: settings with which the training molecules were read.
            device: the device; by default a GPU if there is one.
            spec: specification from which `gtx.models.build_model` made the model, so that `gtx.load` can make the
                model again. For a model of your own, pass the model to `gtx.load` instead.
            train: the training molecules, for the warnings of predictions, see `TrainingExtent`; without them, gtx
                warns only of codes of atoms and bonds that a `GraphTransformer` has not observed.
            features: feature columns that the model reads beside the molecule.
        """
        networks = [member.model for member in members]
        spec = spec or {"name": type(networks[0]).__name__, "arguments": {}}
        extent = None if train is None else TrainingExtent.of(train, features)
        header = ModelFileHeader(members[0].task, featuriser, spec, features=features, extent=extent)
        return cls(networks, header, device)

    def __repr__(self) -> str:
        h = self.header
        return f"Predictor({h.task.name} of {', '.join(h.targets)}, {len(self.members)} x {h.model['name']})"

    def __reduce__(self) -> tuple[Any, ...]:
        # a pickle made beside a GPU can be opened where there is none
        members = [deepcopy(member).cpu() for member in self.members]
        kernel_member = self.kernel_member and deepcopy(self.kernel_member).cpu()
        arguments = str(self.device), type(self), members, self.header, kernel_member, self.further
        kept = {name: value for name, value in vars(self).items() if name == "comparison"}  # once for all workers
        return _predictor_on, arguments, kept

    @property
    def task(self) -> Any:
        """The task that the model was trained for."""
        return self.header.task

    def with_header(self, header: ModelFileHeader) -> Self:
        """Return the same model with another header."""
        return type(self)(self.members, header, str(self.device), self.kernel_member, self.further)

    def with_columns(self, *further: FurtherColumns) -> Self:
        """Return a copy with further columns of predictions."""
        return type(self)(self.members, self.header, str(self.device), self.kernel_member, (*self.further, *further))

    def with_members(self) -> Self:
        """Return a copy that also reports each member's prediction, in columns after the others: `<target>_pred_1` to
        `<target>_pred_k`, or `<target>_<class>_1` and so on for more than two classes.

        The prediction is the mean of the columns of the members. Probabilities of classes are those before calibration,
        because only the mean is calibrated. A kernel model has the same weight in each member. A model with one network
        has one such column per prediction.

        Raises:
            InputError: the task, of atoms, bonds or sequences, has no predictions of single members.
        """
        if not is_numeric(self.task):
            raise InputError(f"members: a model of the task {self.task.name} gives no predictions of single members")
        return self if MemberColumns() in self.further else self.with_columns(MemberColumns())

    def with_neighbours(self, count: int | None = None, domain: bool = False) -> Self:
        """Return a copy that also compares each molecule with the most similar training molecules in the model file.

        The column `similarity` is the similarity to the most similar training molecule, see `neighbours`. With
        `domain`, there are `domain`, `domain_error` and `domain_rows` (for several targets `<target>_domain_error` and
        `<target>_domain_rows`), see `gtx.prediction.domain.Domain`. For each neighbour there are its SMILES
        (`neighbour_1`), the similarity (`neighbour_1_similarity`) and the measured values (`neighbour_1_<target>`).

        Args:
            count: number of neighbours, 1 to 1,000; None for none.
            domain: whether the band of similarity, and the error on validation rows of the band, are added.

        Raises:
            InputError: the model file contains no training rows or no domain, or `count` is out of range.
        """
        if count is not None and not 1 <= count <= MOST_NEIGHBOURS:
            raise InputError(f"neighbours: expected 1 to {MOST_NEIGHBOURS}, got {count}")
        comparison, _ = self.comparison, domain and self.domain  # which raise errors
        changed = self.with_columns(NeighbourColumns(count or 0, domain))
        changed.comparison = comparison
        return changed

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """Return the columns of answers and their types, see `Task.output_columns`."""
        taken = list(taken)
        columns = self.task.answers.output_columns(taken, len(self.members))
        for further in self.further:
            columns |= fresh_columns([*taken, *columns], further.named(self))
        return columns

    def save(self, path: str | Path) -> None:
        """Write a model file, for `gtx.load` and `gtx predict`.

        For a model of your own, the file also has the outputs for one molecule, which `gtx.load` compares.
        """
        header = self.header
        if header.model["name"] not in header.known_models:
            row = list(header.featuriser.examples[0])
            outputs = _reference_outputs(self, row)
            header = replace(header, reference={"row": row, "outputs": outputs} if outputs else None)
        save_model(path, self.members, header, self.kernel_member)

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Predict molecules that were featurised with the featuriser of the header."""
        return self.answers(store, self.outputs(store))

    def outputs(self, store: MoleculeStore) -> Any:
        """Compute the members' outputs for each molecule, see `Task.predict`."""
        outputs = self._run(store, self._ask)
        if self.task.answers.reads_similarity:
            distance = 1 - torch.from_numpy(self.comparison.nearest(store, 1)[1])
            outputs = torch.cat([outputs, distance[:, None].expand(-1, outputs.shape[1], -1)], dim=-1)
        return outputs

    def _ask(self, members: Sequence[nn.Module], batch: Batch) -> Any:
        first = members[0]
        if isinstance(first, MoleculeModel):  # encodings that all members and the foundation share
            batch.fixed = first.compute_encodings(batch, list(first.fixed))
        outputs = self.task.objective.predict(members, batch)
        return outputs if self.kernel_member is None else self.kernel_member(outputs, batch)

    def answers(self, store: MoleculeStore, outputs: Any) -> Answers:
        """Decode the outputs of `outputs` to answers, and warn of what training did not have."""
        answers = self.task.answers.decode(outputs, store)
        for remarks, unseen in zip(answers.warnings, self.header.warnings(store), strict=True):
            remarks[:0] = unseen
        columns = [column for further in self.further for column in further.values(self, store, outputs)]
        return replace(answers, table=(*answers.table, *columns))

    def embed(self, smiles: Iterable[str] | str | pd.DataFrame, workers: int | None = None) -> np.ndarray:
        """Compute a vector per SMILES, in order, float32 `[n, width]`: the input of the head of the network.

        The vectors of several networks are concatenated. A SMILES that cannot be read gives a row of NaN and a warning.

        Raises:
            InputError: the model has no `embed`, or predicts atoms or bonds; or as `predict`.
        """
        if self.task.level != "molecule":
            raise InputError(f"this model has a vector per {self.task.level}, none of the whole molecule")

        def vectors_of(members: Sequence[nn.Module], batch: Batch) -> Tensor:
            return torch.cat([member.embed(batch) for member in members if isinstance(member, MoleculeModel)], 1).cpu()

        if not all(isinstance(member, MoleculeModel) and member.width is not None for member in self.members):
            raise InputError(f"{self.header.model['name']} has no method embed that gives a vector per molecule")
        molecules, done = self._featurise(smiles, workers)
        vectors = self._run(done.store, vectors_of)
        rows = np.full((len(molecules), vectors.shape[1]), np.nan, np.float32)
        rows[done.good] = vectors.float().numpy()
        if message := unusable_molecules(molecules, done.errors):
            warnings.warn(f"{message}; NaN is returned", stacklevel=2)
        return rows

    def predict(
        self, smiles: Iterable[str] | str | pd.DataFrame, workers: int | None = None, members: bool = False
    ) -> pd.DataFrame:
        """Predict molecules given as SMILES.

        Args:
            smiles: one SMILES, or a list, an array, a column, or a table (pandas, polars, Arrow) of SMILES. The column
                of SMILES in a table is called as in training or "smiles", or is the only column, or the only column
                whose cells can be read as molecules. A model with feature columns (`header.features`) needs a table
                with these columns. For a model of several molecules per row (`header.featuriser.components`), pass a
                table with a column for each molecule, or a list of rows of SMILES. RDKit molecules are accepted instead
                of SMILES; their coordinates are used if the model reads coordinates.
            workers: number of processes that read molecules; by default 0 for few molecules, and one per core for many.
            members: whether the prediction of each network is also returned, see `with_members`.

        Returns:
            A data frame with a row per SMILES, in order, and with the index of a pandas table or column. The columns
            are `smiles` as given (or a column for each of several molecules), the columns that `output_columns` names,
            `error` and `warning`. A row has either a prediction or an error.

        Raises:
            InputError: the column of SMILES is ambiguous, or there are no SMILES; a feature column is missing; or as
                `with_members`.
        """
        if members:
            return self.with_members().predict(smiles, workers)
        smiles = as_frame(smiles)
        molecules, done = self._featurise(smiles, workers)
        answers = self.predict_store(done.store)
        errors, notes = list(done.errors), [list(entry) for entry in done.warnings]
        for i, finite, remarks in zip(done.good.tolist(), answers.finite.tolist(), answers.warnings, strict=True):
            notes[i] += remarks
            errors[i] = None if finite else NOT_FINITE
        inputs = self._molecule_columns(molecules)
        columns = zip(self.output_columns([*inputs, "error", "warning"]), answers.columns(), strict=True)
        predictions = {}
        for name, column in columns:  # other rows are NaN, or None in a column of texts
            blank, dtype = (np.nan, column.dtype) if column.dtype.kind == "f" else (None, object)
            predictions[name] = np.full(len(molecules), blank, dtype)
            predictions[name][done.good] = column
        warnings = ["; ".join(entry) or None for entry in notes]
        index = smiles.index if isinstance(smiles, (pd.DataFrame, pd.Series)) else None
        return pd.DataFrame({**inputs, **predictions, "error": errors, "warning": warnings}, index)

    @cached_property
    def comparison(self) -> Neighbours:
        """Object that compares molecules with the training rows in the model file.

        Raises:
            InputError: the model file contains no training rows.
        """
        if self.header.training is None:
            raise InputError(
                "this model file contains no training rows to compare with: it was trained with --no-training-rows"
            )
        return Neighbours(self.header.training, self.header.featuriser)

    @property
    def domain(self) -> Domain:
        """Bands of similarity to the training rows, with the error on validation rows in each.

        Raises:
            InputError: the model file has no domain.
        """
        if self.header.domain is None:
            raise InputError(
                "this model file has no domain: it takes a model of numbers or classes of molecules, its training rows "
                "(no --no-training-rows) and 10 validation rows or more"
            )
        return self.header.domain

    def neighbours(self, smiles: Iterable[str] | str, count: int = 3) -> pd.DataFrame:
        r"""Find the most similar training molecules of each molecule, among the training rows in the model file.

        The similarity is the Tanimoto similarity, \(\sum_s \min(a_s, b_s) / \sum_s \max(a_s, b_s)\), of the counts of
        circular substructures within 2 bonds (Morgan). A similarity of 1 means equal, or nearly equal, constitution.

        Args:
            smiles: one or many SMILES, as for `predict`.
            count: number of neighbours of each molecule, 1 or more.

        Returns:
            A data frame with up to `count` rows for each SMILES that can be read, the most similar training molecule
            first; a warning tells of others. The columns are `smiles` as given, `neighbour` (SMILES of the training
            molecule), `row` (number of its row in the training table, from 1), `similarity` (from 0 to 1), and the
            measured value of each target.

        Raises:
            InputError: the model file contains no training rows, or `count` is less than 1.
        """
        if count < 1:
            raise InputError(f"count: expected 1 or more neighbours, got {count}")
        comparison, read = self.comparison, graph_featuriser(self.header.featuriser)
        molecules = list_molecules(smiles, read.components, self.header.smiles_column, self.header.features.columns)
        done = featurise(read, as_texts(molecules))
        if message := unusable_molecules(molecules, done.errors):
            warnings.warn(f"{message}; no neighbours are returned", stacklevel=2)
        place, similarity = comparison.nearest(done.store, count)
        columns: dict[str, Any] = dict(
            self._molecule_columns([molecules[i] for i in done.good for _ in range(place.shape[1])])
        )
        place = place.ravel()
        columns["neighbour"], columns["row"] = (
            np.array(column, object)[place] for column in (comparison.training.smiles, comparison.training.rows)
        )
        columns["similarity"] = similarity.ravel()
        for name, column in comparison.measured.items():
            columns[find_unused_column_name(columns, name)] = column[place]
        return pd.DataFrame(columns)

    def predict_table(self, source: str | Path, out: str | Path, **options: Any) -> TableOutcome:
        """Predict a table of any length and write the output table; see `gtx.prediction.predict_table`."""
        return predict_table(self, source, out, **options)

    def _featurise(self, molecules: Any, workers: int | None) -> tuple[list[Any], FeaturisationResult]:
        """Return molecules unchanged, and featurised, with their feature columns."""
        header = self.header
        usual, lists = header.smiles_column, header.predicts_lists
        return read_molecules(molecules, header.featuriser, header.features, usual, lists, workers=workers)

    def _molecule_columns(self, molecules: list[Any]) -> dict[str, list[Any]]:
        """Return their columns in a table of answers; an RDKit molecule stands there as its SMILES."""
        names = self.header.featuriser.components
        columns = (zip(*molecules, strict=True) if molecules else [()] * len(names)) if names else [molecules]
        texts = ([molecule_text(one) or one for one in column] for column in columns)
        return dict(zip(names or ["smiles"], texts, strict=True))

    def _run(self, store: MoleculeStore, ask: Callable[[Sequence[nn.Module], Batch], Any]) -> Any:
        """Call `ask(members, batch)` on batches, on a CPU several at once; return its results, tensors or lists, in the
        order of the molecules.
        """
        on_device, large = store.to(self.device), store.sizes > LARGE
        pairs, most = BATCHES.get(self.device.type, BATCHES["cpu"])

        @torch.inference_mode()
        def run(rows: Tensor) -> Any:
            batch = on_device.batch(rows.to(self.device))
            if not large[rows].any():
                return ask(self.members, batch)
            return ask(self._precise, batch.apply(lambda x: x.double() if x.is_floating_point() else x))

        # large molecules go apart, so that others are worked out as if those were not there
        batches = [
            part[rows]
            for part in (large.nonzero().flatten(), (~large).nonzero().flatten())
            for rows in PairBudgetSampler(store.sizes[part], pairs, max_molecules=most, shuffle=False).batches()
        ]
        # no molecules are one empty batch: its outputs have a width all the same
        batches = batches or [torch.zeros(0, dtype=torch.long)]
        each = (in_threads if self.device.type == "cpu" else map)(partial(self._run_parts, run), batches)
        results, order = list(chain(*each)), torch.cat(batches).argsort()
        if isinstance(results[0], Tensor):
            return torch.cat(results)[order]
        every = list(chain(*results))
        return [every[i] for i in order.tolist()]

    @cached_property
    def _precise(self) -> list[nn.Module]:
        return [deepcopy(member).double() for member in self.members]

    def _run_parts(self, run: Callable[[Tensor], Any], rows: Tensor) -> list[Any]:
        """Call `run` for a batch, cut into halves, quarters, ... after a GPU ran out of memory."""
        while True:
            try:
                return [run(part) for part in rows.split(max(1, -(-len(rows) // self._parts)))]
            except torch.OutOfMemoryError as error:
                if self._parts >= len(rows):
                    raise InputError(
                        f"out of memory on {self.device} with a single molecule: lower `max_atoms`"
                    ) from error
            torch.cuda.empty_cache()  # after the handler: the traceback keeps the tensors of the batch alive
            if self._parts == 1:
                logging.getLogger(__name__).warning("out of memory on %s: predicting in smaller batches", self.device)
            self._parts *= 2


# --- The reference of a model of one's own: its outputs for one row of molecules.


def _reference_outputs(predictor: Predictor, row: Sequence[str]) -> list[float]:
    """Compute the outputs of all networks for a row; [] if they are not finite numbers, or need more than molecules."""
    featuriser = predictor.header.featuriser
    try:
        store = featurise(featuriser, [tuple(row) if featuriser.components else row[0]], workers=0).store
        outputs = predictor.outputs(store)
    except Exception:  # whatever a model of one's own raises without further columns: its file is written all the same
        return []
    return outputs.flatten().tolist() if isinstance(outputs, Tensor) and outputs.isfinite().all() else []


def _first_numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values[:3]) + (", ..." if len(values) > 3 else "") or "no numbers"


# --- From a model file.

KINDS = ("cpu", "cuda", "mps", "xpu")
"""Types of devices that compute; torch has others that do not."""


def load_predictor(
    path: str | Path,
    device: str | None = None,
    beams: int | None = None,
    *,
    model: nn.Module | Callable[[], nn.Module] | None = None,
    task: type[Task] | None = None,
) -> Predictor:
    """Load a trained model from a model file, as a `Predictor` (also available as `gtx.load`).

    Args:
        path: path of a model file, or `foundation`, the pretrained model that comes with gtx.
        device: name of a torch device; by default a GPU if there is one.
        beams: width of the beam search for a model that generates sequences, see
            `gtx.sequence.task.SequenceGenerationTask`.
        model: for a file with the weights of your own module: a module of the same shape, or a function that makes the
            module.
        task: for a task of your own: the class of the task.

    Raises:
        InputError: the file does not exist or cannot be used, the device does not exist, or the model does not accept
            `beams`.

    Warns:
        UserWarning: your own module computes other outputs than the module that was saved: they differ by more than
            1e-3, in standard deviations or logits, plus 1e-3 of the output.
    """
    members, header, kernel_member = read_model(path, model, task)
    if beams is not None:
        if "beams" not in {field.name for field in fields(header.task)}:
            raise InputError(
                f"{path} writes no sequences ({header.task.name}): beams are for a model that writes sequences"
            )
        chosen: dict[str, Any] = {"beams": beams}
        header = replace(header, task=replace(header.task, **chosen))
    try:
        for module in (*members, kernel_member) if model is None else ():
            if module is not None:
                attach_foundation(module)
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    try:
        if torch.device(device or "cpu").type not in KINDS:
            raise InputError(f"device: expected one of {', '.join(KINDS)}, such as cuda:1, got {device!r}")
        predictor = Predictor(members, header, device, kernel_member)
    except (RuntimeError, AssertionError) as reason:  # torch built without CUDA asserts
        raise InputError(f"device {device!r} cannot be used: {first_line(reason)}") from None
    if model is not None and header.reference:
        row, expected = header.reference["row"], header.reference["outputs"]
        found = _reference_outputs(predictor, row)
        if len(found) != len(expected) or not np.allclose(found, expected, rtol=1e-3, atol=1e-3):
            warnings.warn(
                f"{path}: model= computes other numbers than the model that was saved; does it have the same score, "
                f"settings and code? The networks' outputs for {', '.join(row)} were {_first_numbers(expected)} "
                f"and are now {_first_numbers(found)}",
                stacklevel=2,
            )
    return predictor
