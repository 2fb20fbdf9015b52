"""The store: all molecules of a table in a few flat tensors, from which batches are cut."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor
from torch_geometric.data import Batch

from gtx.base.files import atomic_file

if TYPE_CHECKING:
    from gtx.molecules import FeaturisedMolecules


LEVELS = {
    "atoms": "atom",
    "bonds": "bond",
    "bond_codes": "bond",
    "descriptors": "molecule",
    "positions": "atom",
    "y": "molecule",
    "bounds": "molecule",
    "weights": "molecule",
    "atom_y": "atom",
    "bond_y": "bond",
    "component_sizes": "molecule",
    "embeddings": "molecule",
    "atom_features": "atom",
    "bond_features": "bond",
}
"""Tensors of a store and their levels: each has a row per atom, bond or molecule, but `bonds` a column per bond."""
IN_BATCH = {"atoms": "x", "bonds": "edge_index", "bond_codes": "edge_attr", "descriptors": "u", "positions": "pos"}
"""PyG's names of some tensors in a batch; the others have the same name."""


@dataclass(frozen=True)
class MoleculeStore:
    """Data set of M featurised molecules (N atoms, E directed bonds in all) in a few flat tensors, which makes batches.

    Index arithmetic makes a batch from tensors; the time does not depend on the size of the store. A store contains
    only what was read from molecules; encodings such as path distances are computed from a batch (`gtx.encodings`).

    Attributes:
        atoms: codes of atoms, uint8 `[N, A]`, one code per atom and column.
        bonds: sender and receiver of each directed bond, int32 `[2, E]`, numbered within the molecule; every bond is
            stored in both directions.
        bond_codes: codes of bonds, uint8 `[E, F]`, one code per bond and column of `gtx.molecules.BOND_FEATURE_VALUES`.
        descriptors: descriptors of each molecule, float32 `[M, D]`; NaN for a descriptor that could not be computed.
        atom_ptr: offsets of atoms, int64 `[M + 1]`; molecule m has atoms `atom_ptr[m]` to `atom_ptr[m + 1]`.
        bond_ptr: offsets of directed bonds, int64 `[M + 1]`; molecule m has bonds `bond_ptr[m]` to `bond_ptr[m + 1]`.
        positions: coordinates of atoms in Å, float32 `[N, 3]`, NaN if unknown; or None.
        y: targets of molecules in the units of the table, float64 `[M, T]`, NaN for blanks; or None.
        atom_columns: names of the columns of `atoms`, such as those of `gtx.molecules.ATOM_FEATURE_VALUES`; empty for
            other codes.
        bounds: bounds of censored targets, float64 `[M, 2T]`: T lower bounds, then T upper bounds, NaN without a bound;
            or None.
        weights: weight of each molecule in the loss, float64 `[M]`; None for uniform weights.
        atom_y: targets of atoms in the units of the table, float64 `[N, T]`, NaN for blanks; or None.
        bond_y: targets of bonds in the units of the table, float64 `[E, T]`, equal in both directions of a bond; or
            None.
        component_sizes: numbers of atoms of the K components of each row, int64 `[M, K]`, see `as_molecules`; None for
            single molecules. With components, the descriptors of a row are the concatenated descriptors of its
            components, followed by the features of the row.
        embeddings: embeddings of the molecules by the pretrained foundation model, float32 `[M, width]`, which a model
            may read; None before they are computed, see `gtx.prediction.foundation_embedding.with_embeddings`.
        atom_features: extra features of atoms, float32 `[N, K]`, NaN for blanks, see `gtx.data.FeatureColumns`; or
            None.
        bond_features: extra features of bonds, float32 `[E, K]`, equal in both directions of a bond; or None.
    """

    atoms: Tensor
    bonds: Tensor
    bond_codes: Tensor
    descriptors: Tensor
    atom_ptr: Tensor
    bond_ptr: Tensor
    positions: Tensor | None = None
    y: Tensor | None = None
    atom_columns: tuple[str, ...] = ()
    bounds: Tensor | None = None
    weights: Tensor | None = None
    atom_y: Tensor | None = None
    bond_y: Tensor | None = None
    component_sizes: Tensor | None = None
    embeddings: Tensor | None = None
    atom_features: Tensor | None = None
    bond_features: Tensor | None = None

    @classmethod
    def from_flat(cls, chunks: Sequence[FeaturisedMolecules]) -> MoleculeStore:
        """Make a store of the molecules that could be read, from results of `featurise_texts` with one featuriser."""
        from gtx.molecules import ATOM_FEATURE_VALUES, FeaturisedMolecules

        flat = FeaturisedMolecules.join(chunks)._asdict()
        return cls(
            **{name: torch.from_numpy(flat[name]) for name in LEVELS if flat.get(name) is not None},
            atom_ptr=_offsets(flat["atom_counts"]),
            bond_ptr=_offsets(flat["bond_counts"]),
            atom_columns=tuple(ATOM_FEATURE_VALUES),
        )

    @classmethod
    def join(cls, stores: Sequence[MoleculeStore]) -> MoleculeStore:
        """Concatenate several stores; `ValueError` unless they have the same tensors, such as `y`."""

        def end_to_end(name: str) -> Any:
            values = [getattr(store, name) for store in stores]
            tensors = [isinstance(value, Tensor) for value in values]
            if not any(tensors):
                return values[0]
            if not all(tensors):
                raise ValueError(f"expected stores of the same tensors, got some without {name}")
            if name in ("atom_ptr", "bond_ptr"):
                return _offsets(torch.cat([ptr.diff() for ptr in values]))
            return torch.cat(values, 1 if name == "bonds" else 0)

        return cls(**{field.name: end_to_end(field.name) for field in fields(cls)})

    def with_targets(self, y: np.ndarray | Tensor) -> MoleculeStore:
        """Return a store of the same molecules with targets `y` `[M, T]`, in the units of the table, NaN for blanks."""
        y = torch.tensor(np.asarray(y), dtype=torch.float64)
        if y.dim() != 2 or len(y) != len(self):
            raise ValueError(f"expected targets [{len(self)}, T], one row per molecule, got {list(y.shape)}")
        return replace(self, y=y)

    def with_features(self, features: np.ndarray | Tensor) -> MoleculeStore:
        """Return a store of the same molecules with features `[M, F]` appended to the descriptors, see
        `gtx.data.FeatureColumns`.
        """
        features = torch.as_tensor(features, dtype=self.descriptors.dtype, device=self.device)
        if features.dim() != 2 or len(features) != len(self):
            raise ValueError(f"expected features [{len(self)}, F], one row per molecule, got {list(features.shape)}")
        return replace(self, descriptors=torch.cat([self.descriptors, features], 1))

    def __len__(self) -> int:
        return len(self.atom_ptr) - 1

    @property
    def num_graphs(self) -> int:
        """Number M of molecules, with the name that PyG uses for a batch."""
        return len(self)

    @property
    def sizes(self) -> Tensor:
        """Number of atoms of each molecule, int64 `[M]`."""
        return self.atom_ptr.diff()

    @property
    def device(self) -> torch.device:
        return self.atoms.device

    def subset(self, index: Tensor | np.ndarray | Sequence[int] | slice) -> MoleculeStore:
        """Return a store of the molecules `index`, as for `batch`, in this order; the store itself if these are all."""
        index = self._index(index)
        if len(index) == len(self) and torch.equal(index, torch.arange(len(self), device=self.device)):
            return self
        changes: dict[str, Any] = self._rows(index)
        changes["atom_ptr"] = _offsets(self._counts("atom", index))
        changes["bond_ptr"] = _offsets(self._counts("bond", index))
        return replace(self, **changes)

    def as_molecules(self, further: int = 0) -> MoleculeStore:
        """Return a store in which each of the K components of a row is a molecule (M K molecules), without targets,
        bounds and weights; the last `further` descriptors, which belong to the row, are copied to each.
        """
        if self.component_sizes is None:
            raise ValueError("expected molecules of several components, got a store of single molecules")
        count = self.component_sizes.shape[1]
        atom_ptr = _offsets(self.component_sizes.flatten())
        row = torch.repeat_interleave(torch.arange(len(self), device=self.device), self.bond_ptr.diff())
        ends = self.bonds + self.atom_ptr[row]  # numbered through the store
        owner = torch.bucketize(ends[0].contiguous(), atom_ptr, right=True) - 1
        own, rest = self.descriptors.tensor_split([self.descriptors.shape[1] - further], 1)
        rest = rest.repeat_interleave(count, 0)
        return MoleculeStore(
            atoms=self.atoms,
            bonds=(ends - atom_ptr[owner]).to(self.bonds.dtype),
            bond_codes=self.bond_codes,
            descriptors=torch.cat([own.reshape(len(self) * count, own.shape[1] // count), rest], 1),
            atom_ptr=atom_ptr,
            bond_ptr=_offsets(torch.bincount(owner, minlength=len(self) * count)),
            positions=self.positions,
            atom_columns=self.atom_columns,
        )

    def batch(self, index: Tensor | np.ndarray | Sequence[int] | slice | None = None) -> Batch:
        """Make a PyG batch of some molecules of the store.

        Args:
            index: indices of the molecules, int64 `[B]`, in the order of the batch, or a slice; by default all.

        Returns:
            A `torch_geometric.data.Batch` with `x` int64 `[n, A]`, `edge_index` int64 `[2, e]`, `edge_attr` int64
            `[e, F]`, `u` `[B, D]`, `row` `[B]` (the molecule's number here), `batch`, `ptr`, and, where the store has
            them, `pos` `[n, 3]`, `embeddings` `[B, width]`, `y` `[B, T]`, `bounds` `[B, 2T]`, `weights` `[B]`, `atom_y`
            `[n, T]`, `bond_y` `[e, T]`, `atom_features` `[n, K]` and `bond_features` `[e, K]`, float32, and
            `component_sizes` `[B, K]`; `to_data_list()` gives the molecules back.

        Raises:
            IndexError: there is no such molecule.
            ValueError: the index is no list of whole numbers.
        """
        index = self._index(slice(None) if index is None else index)
        count, atoms, bonds = len(index), self._counts("atom", index), self._counts("bond", index)
        ptr, bond_ptr = _offsets(atoms), _offsets(bonds)
        tensors = {name: widen(values) for name, values in self._rows(index).items()}
        tensors["bonds"] += torch.repeat_interleave(ptr[:-1], bonds)
        batch = torch.repeat_interleave(torch.arange(count, device=self.device), atoms)
        molecules, zeros = torch.from_numpy(np.arange(count + 1)), torch.from_numpy(np.zeros(count, np.int64))
        begins = {"molecule": molecules, "atom": ptr, "bond": bond_ptr}
        contents = {IN_BATCH.get(name, name): tensor for name, tensor in tensors.items()}
        slices = {IN_BATCH.get(name, name): begins[LEVELS[name]] for name in tensors} | {"row": molecules}
        contents |= {"batch": batch, "ptr": ptr, "row": index}
        increments = {**dict.fromkeys(slices, zeros), "edge_index": ptr}
        return as_batch(contents, _num_graphs=count, _slice_dict=slices, _inc_dict=increments)

    def to(self, device: torch.device | str) -> MoleculeStore:
        """Move the tensors of the store to `device`."""
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in self._tensors().items()}
        return replace(self, **moved)

    def save(self, path: str | Path, metadata: dict[str, str] | None = None) -> None:
        """Write the store to a safetensors file; the same molecules give the same bytes."""
        tensors = {name: tensor.contiguous() for name, tensor in self._tensors().items()}
        words = {**(metadata or {}), "atom_columns": " ".join(self.atom_columns)}
        with atomic_file(path) as file:  # of several entries the order changes from run to run
            file.write(save(tensors, {"words": json.dumps(words)}))

    @classmethod
    def open(cls, path: str | Path) -> MoleculeStore:
        """Open a file written by `save`, mapped into memory: processes of one machine hold its pages once."""
        names = stored_texts(path).get("atom_columns", "")
        return cls(**load_file(path), atom_columns=tuple(names.split()))

    def checksum(self) -> int:
        """Return the CRC-32 of the bytes of the tensors and of the column names."""
        checksum = crc32(" ".join(self.atom_columns).encode())
        for tensor in self._tensors().values():
            checksum = crc32(tensor.cpu().contiguous().numpy().reshape(-1).view(np.uint8).data, checksum)
        return checksum

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors of this store by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def _index(self, index: Tensor | np.ndarray | Sequence[int] | slice) -> Tensor:
        """Convert indices of molecules to int64 on the device of the store; a mask would pass for molecules 0 and 1."""
        index = np.arange(*index.indices(len(self))) if isinstance(index, slice) else index
        index = torch.as_tensor(index, device=self.device)
        if index.dim() != 1 or (index.numel() and (index.is_floating_point() or index.dtype == torch.bool)):
            raise ValueError(f"expected indices of molecules, int64 [B], got {index.dtype} {list(index.shape)}")
        if index.device.type == "cpu" and len(absent := index[(index < 0) | (index >= len(self))]):
            raise IndexError(f"expected molecules from 0 to {len(self) - 1}, got {int(absent[0])}")
        return index.long()

    def _counts(self, level: str, index: Tensor) -> Tensor:
        """Return the number of atoms or bonds of each of the molecules `index`, int64 `[B]`."""
        ptr: Tensor = getattr(self, f"{level}_ptr")
        return ptr[index + 1] - ptr[index]

    def _rows(self, index: Tensor) -> dict[str, Tensor]:
        """Select the rows of the molecules `index` in all tensors of `LEVELS`, by name."""
        rows = {"molecule": index, "atom": rows_of(self.atom_ptr, index), "bond": rows_of(self.bond_ptr, index)}
        tensors = self._tensors()
        return {
            name: tensors[name].index_select(1 if name == "bonds" else 0, rows[level])
            for name, level in LEVELS.items()
            if name in tensors
        }


def rows_of(ptr: Tensor, index: Tensor) -> Tensor:
    """List the rows of the molecules `index` (int64 `[B]`), where molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    counts = ptr[index + 1] - ptr[index]
    rows = torch.repeat_interleave(ptr[index] - (counts.cumsum(0) - counts), counts)
    return rows.add_(torch.arange(len(rows), device=ptr.device))


def stored_texts(path: str | Path) -> dict[str, str]:
    """Read the texts of a file of `MoleculeStore.save`, by name."""
    with safe_open(path, "pt") as file:
        return json.loads((file.metadata() or {}).get("words", "{}"))


def widen(values: Tensor) -> Tensor:
    """Convert numbers to the types of a batch: float32 or int64."""
    return values.float() if values.is_floating_point() else values.long()


def _offsets(counts: Sequence[int] | np.ndarray | Tensor) -> Tensor:
    counts = torch.as_tensor(counts, dtype=torch.long)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def as_batch(contents: Mapping[str, object], **private: object) -> Batch:
    """Make a batch from tensors by name and PyG's private attributes `_num_graphs`, and for `to_data_list` also
    `_slice_dict` and `_inc_dict`: PyG has no public way but a list of molecules.
    """
    return Batch(**contents, **private)
