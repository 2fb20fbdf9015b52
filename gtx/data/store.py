"""All molecules of a set in a few flat tensors, out of which batches are cut.

A store of a million is as quick to cut as one of ten, wherever its tensors live: on a processor, in memory or mapped
from disk, by compiled loops over the molecules of the batch, elsewhere by index arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor
from torch_geometric.data import Batch, Data

from gtx.files import whole_file

if TYPE_CHECKING:
    from gtx.molecules import FlatMolecules

_EMPTY = Batch(_base_cls=Data)


@dataclass(frozen=True)
class MoleculeStore:
    """M molecules with N atoms and E directed bonds in all.

    Only what was read is kept; path distances, random walks and the like are functions of a batch (`gtx.encodings`).

    Attributes:
        atoms: uint8 `[N, A]`, one code per atom and column.
        bonds: int32 `[2, E]`, sender and receiver, numbered within their molecule; every bond in both directions.
        bond_codes: uint8 `[E, F]`, one code per bond and column of `gtx.molecules.BOND_COLUMNS`.
        descriptors: float32 `[M, D]`, global features u of each molecule; NaN where one could not be computed.
        atom_ptr: int64 `[M + 1]`; molecule m has atoms `atom_ptr[m]` to `atom_ptr[m + 1]`.
        bond_ptr: int64 `[M + 1]`, the same for bonds.
        positions: float32 `[N, 3]` in Å, NaN where unknown; or None.
        y: float64 `[M, T]`, targets in their own units (total energies need the digits), NaN for blanks, or None.
        atom_columns: names of the columns of `atoms`, those of `gtx.molecules.ATOM_COLUMNS` where they have its codes;
            empty if they are not known.
        bounds: float64 `[M, 2T]`, of values that were not measured the T numbers that they are above, then the T that
            they are below, NaN where there is none; or None.
        weights: float64 `[M]`, how much say each molecule has in the loss; None for the same.
        atom_y: float64 `[N, T]`, targets of atoms in their own units, NaN for blanks, or None.
        bond_y: float64 `[E, T]`, the same of bonds, both directions alike, or None.
        parts: int64 `[M, K]`, where K components make a molecule of this store (see `apart`), the atoms of each; or
            None. Descriptors are then those of the components, side by side, and what else is known of the row.
        atom_features: float32 `[N, K]`, what else is known of the atoms, NaN where it is not, see
            `gtx.data.FeatureColumns`; or None.
        bond_features: float32 `[E, K]`, the same of bonds, both directions alike, or None.
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
    parts: Tensor | None = None
    atom_features: Tensor | None = None
    bond_features: Tensor | None = None

    @classmethod
    def from_flat(cls, parts: Sequence[FlatMolecules], y: np.ndarray | Tensor | None = None) -> MoleculeStore:
        """Lay featurised molecules end to end.

        Args:
            parts: what `gtx.molecules.featurise_texts` made, with one featuriser; the molecules that could be read.
            y: targets `[M, T]` of those molecules in their own units, NaN for blanks.
        """
        from gtx.molecules import ATOM_COLUMNS

        def join(name: str, axis: int = 0) -> Tensor | None:
            arrays = [getattr(part, name) for part in parts]
            return None if arrays[0] is None else torch.from_numpy(np.concatenate(arrays, axis))

        store = cls(
            atoms=join("atoms"),
            bonds=join("bonds", axis=1),
            bond_codes=join("bond_codes"),
            descriptors=join("descriptors"),
            atom_ptr=_offsets(join("atom_counts")),
            bond_ptr=_offsets(join("bond_counts")),
            positions=join("positions"),
            atom_columns=tuple(ATOM_COLUMNS),
            parts=join("parts"),
        )
        return store if y is None else store.with_targets(y)

    @classmethod
    def join(cls, stores: Sequence[MoleculeStore]) -> MoleculeStore:
        """The molecules of one store or more, one after the other; all of them have the same tensors."""

        def end_to_end(name: str) -> Any:
            values = [getattr(store, name) for store in stores]
            if not isinstance(values[0], Tensor):
                return values[0]
            if name in ("atom_ptr", "bond_ptr"):
                return _offsets(torch.cat([ptr.diff() for ptr in values]))
            return torch.cat(values, 1 if name == "bonds" else 0)

        return cls(**{field.name: end_to_end(field.name) for field in fields(cls)})

    def with_targets(self, y: np.ndarray | Tensor) -> MoleculeStore:
        """The same molecules with targets `y` `[M, T]` (own units, NaN for blanks)."""
        y = torch.tensor(np.asarray(y), dtype=torch.float64)
        if y.dim() != 2 or len(y) != len(self):
            raise ValueError(f"expected targets [{len(self)}, T], one row per molecule, got {list(y.shape)}")
        return replace(self, y=y)

    def with_features(self, features: np.ndarray | Tensor) -> MoleculeStore:
        """The same molecules with further descriptors `[M, F]` after their own, see `gtx.data.FeatureColumns`."""
        further = torch.as_tensor(features, dtype=self.descriptors.dtype, device=self.device)
        if further.dim() != 2 or len(further) != len(self):
            raise ValueError(f"expected features [{len(self)}, F], one row per molecule, got {list(further.shape)}")
        return replace(self, descriptors=torch.cat([self.descriptors, further], 1))

    def __len__(self) -> int:
        return len(self.atom_ptr) - 1

    @property
    def num_graphs(self) -> int:
        """M, as a batch calls it."""
        return len(self)

    @property
    def sizes(self) -> Tensor:
        """int64 `[M]`: atoms per molecule."""
        return self.atom_ptr.diff()

    @property
    def device(self) -> torch.device:
        return self.atoms.device

    def subset(self, index: Tensor | np.ndarray) -> MoleculeStore:
        """The molecules `index` (int64 `[B]`), in that order."""
        index, atom, bond = self._cut(index)
        return MoleculeStore(
            atoms=self.atoms[atom],
            bonds=self.bonds[:, bond],
            bond_codes=self.bond_codes[bond],
            descriptors=self.descriptors[index],
            atom_ptr=_offsets(self.sizes[index]),
            bond_ptr=_offsets(self.bond_ptr.diff()[index]),
            positions=None if self.positions is None else self.positions[atom],
            y=None if self.y is None else self.y[index],
            atom_columns=self.atom_columns,
            bounds=None if self.bounds is None else self.bounds[index],
            weights=None if self.weights is None else self.weights[index],
            atom_y=None if self.atom_y is None else self.atom_y[atom],
            bond_y=None if self.bond_y is None else self.bond_y[bond],
            parts=None if self.parts is None else self.parts[index],
            atom_features=None if self.atom_features is None else self.atom_features[atom],
            bond_features=None if self.bond_features is None else self.bond_features[bond],
        )

    def apart(self, further: int = 0) -> MoleculeStore:
        """The components of all molecules, each a molecule of its own, `[M K]`; without targets and the like.

        Args:
            further: how many of the last descriptors are no component's; each of them gets those of its row.
        """
        if self.parts is None:
            raise ValueError("expected molecules of several components, got a store without parts")
        count = self.parts.shape[1]
        atom_ptr = _offsets(self.parts.flatten())
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

    def batch(self, index: Tensor | np.ndarray | Sequence[int] | None = None) -> Batch:
        """Molecules as one PyG batch.

        Args:
            index: which ones, int64 `[B]`, in that order; by default all.

        Returns:
            A `torch_geometric.data.Batch` with `x` int64 `[n, A]`, `edge_index` int64 `[2, e]`, `edge_attr` int64
            `[e, F]`, `u` `[B, D]`, `row` `[B]` (the molecule's number here), `batch`, `ptr`, and, where the store has
            them, `pos` `[n, 3]`, `y` `[B, T]`, `bounds` `[B, 2T]`, `weights` `[B]`, `atom_y` `[n, T]`, `bond_y`
            `[e, T]`, `atom_features` `[n, K]` and `bond_features` `[e, K]`, float32, and `parts` `[B, K]`;
            `to_data_list()` gives the molecules back.

        Raises:
            IndexError: there is no such molecule.
        """
        index = torch.arange(len(self)) if index is None else index
        index = torch.as_tensor(index, device=self.device)
        loops = index.device.type == "cpu" and index.dtype == torch.long and index.dim() == 1
        bond_ptr, ptr, *made, pos, y = self._cut_in_loops(index) if loops else self._cut_by_indices(index)
        count = ptr.shape[0] - 1
        whole, still = torch.from_numpy(np.arange(count + 1)), torch.from_numpy(np.zeros(count, np.int64))
        contents = dict(zip(("x", "edge_index", "edge_attr", "u", "batch"), made, strict=True))
        contents["ptr"], contents["row"] = ptr, index
        slices = {"x": ptr, "edge_index": bond_ptr, "edge_attr": bond_ptr, "u": whole, "row": whole}
        if self.positions is not None:
            contents["pos"], slices["pos"] = pos, ptr
        if self.y is not None:
            contents["y"], slices["y"] = y, whole
        for name in ("bounds", "weights"):
            if (held := getattr(self, name)) is not None:
                contents[name], slices[name] = held[index].float(), whole
        for per, of, begins in (("atom", self.atom_ptr, ptr), ("bond", self.bond_ptr, bond_ptr)):
            held = {name: getattr(self, name) for name in (f"{per}_y", f"{per}_features")}
            held = {name: values for name, values in held.items() if values is not None}
            rows = _ranges(of, index) if held else None
            for name, values in held.items():
                contents[name], slices[name] = values[rows].float(), begins
        if self.parts is not None:
            contents["parts"], slices["parts"] = self.parts[index], whole
        increments = {**dict.fromkeys(slices, still), "edge_index": ptr}
        return as_batch(contents, _num_graphs=count, _slice_dict=slices, _inc_dict=increments)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # the fields alone, each once

    def to(self, device: torch.device | str) -> MoleculeStore:
        """The same store with its tensors on `device`."""
        return replace(self, **{name: tensor.to(device) for name, tensor in self._tensors().items()})

    def save(self, path: str | Path, metadata: dict[str, str] | None = None) -> None:
        """Write to a safetensors file; the same molecules give the same bytes."""
        tensors = {name: tensor.contiguous() for name, tensor in self._tensors().items()}
        words = {**(metadata or {}), "atom_columns": " ".join(self.atom_columns)}
        with whole_file(path) as file:  # of several entries the order changes from run to run
            file.write(save(tensors, {"words": json.dumps(words)}))

    @classmethod
    def open(cls, path: str | Path) -> MoleculeStore:
        """Map a file written by `save` into memory."""
        names = saved_words(path).get("atom_columns", "")
        return cls(**load_file(path), atom_columns=tuple(names.split()))

    def checksum(self) -> int:
        """CRC-32 of the tensors' bytes and of the columns' names."""
        found = crc32(" ".join(self.atom_columns).encode())
        for tensor in self._tensors().values():
            found = crc32(tensor.cpu().contiguous().numpy().reshape(-1).view(np.uint8), found)
        return found

    def _tensors(self) -> dict[str, Tensor]:
        """The tensors there are, by name."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, Tensor)}

    def _cut_in_loops(self, index: Tensor) -> Iterable[Tensor]:
        """`bond_ptr`, `ptr`, `x`, `edge_index`, `edge_attr`, `u`, `batch`, `pos`, `y`, by compiled loops."""
        from gtx.data.store_kernels import cut

        try:
            return map(torch.from_numpy, cut(index.contiguous().numpy(), *self._arrays))
        except IndexError:
            wrong = index[(index < 0) | (index >= len(self))].tolist()
            raise IndexError(f"expected molecules from 0 to {len(self) - 1}, got {wrong[0]}") from None

    @cached_property
    def _arrays(self) -> list[np.ndarray]:
        """The tensors as compiled loops read them; what there is none of has no columns."""
        every = (self.atom_ptr, self.bond_ptr, self.atoms, self.bonds, self.bond_codes, self.descriptors)
        positions = np.empty((0, 0), np.float32) if self.positions is None else self.positions.contiguous().numpy()
        y = np.empty((0, 0)) if self.y is None else self.y.contiguous().numpy()
        return [*(tensor.contiguous().numpy() for tensor in every), positions, y]

    def _cut_by_indices(self, index: Tensor) -> Iterable[Tensor | None]:
        """The same by index arithmetic, wherever the store lies."""
        part = self.subset(index)
        ptr, bond_ptr = part.atom_ptr, part.bond_ptr
        return (
            bond_ptr,
            ptr,
            part.atoms.long(),
            part.bonds.long() + torch.repeat_interleave(ptr[:-1], bond_ptr.diff()),
            part.bond_codes.long(),
            part.descriptors,
            torch.repeat_interleave(torch.arange(len(part), device=self.device), part.sizes),
            part.positions,
            None if part.y is None else part.y.float(),
        )

    def _cut(self, index: Tensor | np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        index = torch.as_tensor(index, device=self.device)
        return index, _ranges(self.atom_ptr, index), _ranges(self.bond_ptr, index)


def saved_words(path: str | Path) -> dict[str, str]:
    """What a file written by `MoleculeStore.save` holds beside the molecules."""
    with safe_open(path, "pt") as file:
        return json.loads((file.metadata() or {}).get("words", "{}"))


def _offsets(counts: Sequence[int] | Tensor) -> Tensor:
    counts = torch.as_tensor(counts, dtype=torch.long)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _ranges(ptr: Tensor, index: Tensor) -> Tensor:
    """The positions `ptr[i]` to `ptr[i + 1]` of every i of `index`, one after the other."""
    counts = ptr.diff()[index]
    ends = counts.cumsum(0)
    shift = ptr[index] - (ends - counts)
    return torch.arange(int(counts.sum()), device=ptr.device) + torch.repeat_interleave(shift, counts)


def as_batch(contents: dict[str, Tensor], **private: object) -> Batch:
    """What `Batch(_base_cls=Data, **contents)` makes, and attributes of PyG's own, at a tenth of the cost."""
    batch = copy(_EMPTY)
    batch._store._mapping.update(contents)
    batch._store.__dict__.update(private)
    return batch
