"""Public sets that come in several files, put together as one table: a molecule a row, its targets, its split.

Each function takes the official files in the order of `NamedSet.sources` and gives the bytes of a CSV file.
"""

from __future__ import annotations

import ast
import codecs
import csv
import io
import pickle
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryDirectory

import numpy as np

_PARTS = ("train", "val", "test")
_ARRAY_PARTS = {
    "_reconstruct": np.zeros(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
    "encode": codecs.encode,
}


def molecule_attention_transformer(files: Sequence[bytes], kind: str) -> bytes:
    """The sets of Maziarka et al. 2020 (https://arxiv.org/abs/2002.08264): a CSV file, then one file per split.

    Args:
        files: the table (smiles, y), then arrays of row indices.
        kind: "random" or "scaffold", for the names of the split columns.
    """
    table, *splits = files
    header, *rows = _csv(table)
    columns = []
    for file in splits:
        column = np.empty(len(rows), dtype=object)
        for part, indices in zip(_PARTS, _object_array(file), strict=True):
            column[indices] = part
        columns.append(column)
    names = [f"split_{kind}_{i}" for i in range(len(splits))]
    cells = ([smiles.strip(), y, *split] for (smiles, y), *split in zip(rows, *columns, strict=True))
    return _written([*header, *names], cells)


def muben(files: Sequence[bytes], targets: Sequence[str]) -> bytes:
    """The scaffold splits of MUBen (Li et al. 2023, https://arxiv.org/abs/2306.10060): one CSV file per part."""

    def rows() -> Iterator[list[str]]:
        for part, file in zip(_PARTS, files, strict=True):
            for _, smiles, labels, masks in _csv(file)[1:]:
                known = zip(ast.literal_eval(labels), ast.literal_eval(masks), strict=True)
                yield [smiles, *(str(float(label)) if mask else "" for label, mask in known), part]

    return _written(["smiles", *targets, "split"], rows())


def zinc12k(files: Sequence[bytes]) -> bytes:
    """ZINC-12k (Dwivedi et al. 2020, https://arxiv.org/abs/2003.00982), with the SMILES its graphs were made from.

    The benchmark holds graphs alone; its index files number the molecules of the lists of JT-VAE. The targets are those
    of PyG's own copy, which it downloads, and unpickles as it always does.

    Args:
        files: JT-VAE's lists of SMILES for train, val and test, then the benchmark's indices for them.
    """
    with TemporaryDirectory() as folder:
        return _written(["smiles", "y", "split", "source_index"], _zinc12k_rows(files, folder))


def activity_cliffs(files: Sequence[bytes]) -> bytes:
    """A set of MoleculeACE (van Tilborg et al. 2022, https://doi.org/10.1021/acs.jcim.2c01073), one file.

    Of its columns the activity on a logarithmic scale is kept, -log10 mol/L, and whether a molecule is part of a cliff.
    """
    (table,) = files
    header, *rows = _csv(table)
    chosen = [header.index(name) for name in ("smiles", "y [pEC50/pKi]", "cliff_mol", "split")]
    return _written(["smiles", "y", "cliff", "split"], ([row[i] for i in chosen] for row in rows))


def _zinc12k_rows(files: Sequence[bytes], folder: str) -> Iterator[list[str]]:
    from torch_geometric.datasets import ZINC

    for part, smiles_file, index_file in zip(_PARTS, files[:3], files[3:], strict=True):
        smiles = smiles_file.decode().split()
        y = ZINC(folder, subset=True, split=part).y.numpy()
        for index, target in zip(index_file.decode().strip().split(","), y, strict=True):
            yield [smiles[int(index)], np.format_float_positional(target, trim="0"), part, index]


def _csv(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def _written(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _object_array(content: bytes) -> np.ndarray:
    """An array of arrays from a `.npy` file, which is a pickle inside; nothing but arrays can come out of it."""
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    np.lib.format.read_array_header_1_0(stream)
    return _ArraysOnly(stream).load()


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if module.split(".")[0] in ("numpy", "_codecs") and name in _ARRAY_PARTS:
            return _ARRAY_PARTS[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place in an array")
