"""The sets and splits that published benchmarks use: of MAT, of Uni-Mol and MUBen, and of MoleculeACE.

Importing `experiments` adds them to `gtx.data.PUBLIC_DATASETS`. The path of a set's file, downloaded if need be:

    python -c "import experiments, gtx.data; print(gtx.data.load_public_dataset('scaffold/esol').path)"
"""

from __future__ import annotations

import ast
import codecs
import csv
import io
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gtx.data.public_datasets import PUBLIC_DATASETS, TOX21_ASSAYS, PublicDataset
from gtx.data.splits import SPLIT_PARTS as PARTS

# --- Official files put together as one table: a molecule a row, its targets, its split.
#
# Each function takes the official files in the order of `PublicDataset.sources` and gives the bytes of a CSV file.


def read_csv(content: bytes) -> list[list[str]]:
    """Read the cells of a CSV file."""
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def write_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Write a CSV file, its lines ended as on Unix."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def molecule_attention_transformer(files: Sequence[bytes]) -> bytes:
    """Assemble a set of Maziarka et al. 2020 (https://arxiv.org/abs/2002.08264): a CSV file, then a file per split."""
    table, *splits = files
    header, *rows = read_csv(table)
    columns = []
    for file in splits:
        column = np.empty(len(rows), dtype=object)
        for part, indices in zip(PARTS, object_array(file), strict=True):
            column[indices] = part
        columns.append(column)
    names = [f"split_random_{i}" for i in range(len(splits))]
    cells = ([smiles.strip(), y, *split] for (smiles, y), *split in zip(rows, *columns, strict=True))
    return write_csv([*header, *names], cells)


def muben(files: Sequence[bytes], targets: Sequence[str]) -> bytes:
    """Assemble a scaffold split of MUBen (Li et al. 2023, https://arxiv.org/abs/2306.10060): one CSV file per part."""

    def rows() -> Iterator[list[str]]:
        for part, file in zip(PARTS, files, strict=True):
            for _, smiles, labels, masks in read_csv(file)[1:]:
                known = zip(ast.literal_eval(labels), ast.literal_eval(masks), strict=True)
                yield [smiles, *(str(float(label)) if mask else "" for label, mask in known), part]

    return write_csv(["smiles", *targets, "split"], rows())


def activity_cliffs(files: Sequence[bytes]) -> bytes:
    """Read a set of MoleculeACE (van Tilborg et al. 2022, https://doi.org/10.1021/acs.jcim.2c01073), one file.

    Of its columns the activity on a logarithmic scale is kept, -log10 mol/L, and whether a molecule is part of a cliff.
    """
    (table,) = files
    header, *rows = read_csv(table)
    chosen = [header.index(name) for name in ("smiles", "y [pEC50/pKi]", "cliff_mol", "split")]
    return write_csv(["smiles", "y", "cliff", "split"], ([row[i] for i in chosen] for row in rows))


_ARRAY_PARTS = {
    "_reconstruct": np.zeros(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
    "encode": codecs.encode,
}


def object_array(content: bytes) -> np.ndarray:
    """Read an array of arrays from a `.npy` file, which is a pickle inside; nothing but arrays can come out of it."""
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    np.lib.format.read_array_header_1_0(stream)
    return _ArraysOnly(stream).load()


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if module.split(".")[0] in ("numpy", "_codecs") and name in _ARRAY_PARTS:
            return _ARRAY_PARTS[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place in an array")


# --- The thirty sets of MoleculeACE: activities of ligands of one protein, by its ChEMBL identifier.
#
# van Tilborg et al. 2022, https://doi.org/10.1021/acs.jcim.2c01073.

ACTIVITY_SETS = {
    "CHEMBL1862_Ki": "c1a10583c9b8fb44bb3f40080d6657b5203166390ea211dd00bdcdf218e57cf9",
    "CHEMBL1871_Ki": "d8023c94f7b737eb04cdd78cc29e42c335ddae748633513b5dd2522a6497ac54",
    "CHEMBL2034_Ki": "2c18ee705446cbd37afddfe10b2c79c2e6b21b0bbc1689055f5bd9cb86bd9a0c",
    "CHEMBL2047_EC50": "9268f02e0d4c57f83ca22e2ab15bb19da42210fb95b45639d3155f62d3e3a964",
    "CHEMBL204_Ki": "a8f03516d47a9fb0843cbf480c2034e8cf602ead4f28c71e9b1dcf7baa324608",
    "CHEMBL2147_Ki": "52af2f80a6524463f26210ca5db08897f77cc52f097276877534d2d0d57f22e2",
    "CHEMBL214_Ki": "d43751c2e64800e4050a05fb5e232cd756c3fa07f81b69d4ae8d4a301151f1f5",
    "CHEMBL218_EC50": "b8cdf7a55ba26222f3e792659bb9f1e74864ab1cf6346d060a969f3316f1ef09",
    "CHEMBL219_Ki": "6ac0d28c57cf915ed6b794929b15a04a32bf5df8305d2b1860028621ebf89619",
    "CHEMBL228_Ki": "a6e566ca176f6a0cd510438afac157ba8c93fd3338d1ffece59efe47bc924b92",
    "CHEMBL231_Ki": "e0454d85df1079baab3f27a6b4537de6fd1399d1bd653ca2fa4ded40eed505be",
    "CHEMBL233_Ki": "e8adc5c3964dbdd9ff9c33569b95d2834afc64191cedd20edf1a5d829b664720",
    "CHEMBL234_Ki": "6ed1f754b10172021bdc25c511ecc740e81f7f655a364f5c59b856e5855ed510",
    "CHEMBL235_EC50": "fce62387ffd7e2f078504609abd86dc75a7262db40eb517b2c2565685f7920ae",
    "CHEMBL236_Ki": "d847aacd2402d0ff495865d4adadaa5bd7c5e0358a80fc6d4b590427f3aa8b82",
    "CHEMBL237_EC50": "e250d5adc4c61c473f8857066fe065ad461c293ff0954dba2aac57c0af772c93",
    "CHEMBL237_Ki": "24dca6464ff5243eb411b34e9ce93f7f651d303a6a294532f6845a297984ccb5",
    "CHEMBL238_Ki": "b121f4e58884b6de79660e8664b64c7ed74924626565856f4f985cd08a819101",
    "CHEMBL239_EC50": "853e40f75338d5bc78b978be642e8823527a4d4a4177e7d284b3194261cda31a",
    "CHEMBL244_Ki": "7389fc0937e21e066dad58ac352b1bfed2db836488147bb4570c6cafc0c4cb5e",
    "CHEMBL262_Ki": "9eff184060c135272e4fb7c0d9502fb077ff946428bb2a7d840f9b12abcff9a2",
    "CHEMBL264_Ki": "d3b4927f64e9d2100407d97d13575c8601158c2e268fc23d064b49da69341794",
    "CHEMBL2835_Ki": "de39f85b70f7b5e191dd1720ce2782198254c86cb002180f3d554c91e83fdf8f",
    "CHEMBL287_Ki": "98538dec4fa558339f7a5d255aba56d5f253c201c7e4ed277d566585bf040fab",
    "CHEMBL2971_Ki": "abcaee66ee68ad921b7032878ed98d72b738953d4c6ccd24e488bbc52efff3df",
    "CHEMBL3979_EC50": "50a009707061a19ea946c3d36be2e1b1716b2e9bf1d2f872ac2b0e52485d2ac8",
    "CHEMBL4005_Ki": "3552f6a70dd53010b5aa3ced2b3b647ae3fc0cf6faf4c3c29cc7e14b0d93dc65",
    "CHEMBL4203_Ki": "6cd88cbd24f42a1f12c25187f1fb079e3b74b01d4b0638e397f6a13aa7fd591c",
    "CHEMBL4616_EC50": "abe80160a4cfff2ac0d85c09c4404aef6876af74e76944dce4a397c3b06f7db3",
    "CHEMBL4792_Ki": "c531f45ecb1fe94ba4d11a6f4f362b45cd23bb7613b9535e9edeb0bc6bfccc3b",
}
"""SHA-256 of the tables that `activity_cliffs` makes, by name."""


# --- The sets of MAT, and of Uni-Mol and MUBen.

TITLES = {"esol": "ESOL", "freesolv": "FreeSolv", "bbbp": "BBBP", "bace": "BACE", "tox21": "Tox21"}
UNITS = {"esol": ", log mol/L", "freesolv": ", kcal/mol"}
RANDOM_SPLITS = {
    "esol": "84f26bdc80ad23371ce3dae4c960dc16d1aa9cdce1fd369dbc381a55ada46b34",
    "freesolv": "dfacba07afab95a3a90afd748d78a58bd3be33689f371d3a646ea8feaa365dc6",
}
"""SHA-256 of the tables that `molecule_attention_transformer` makes, by name."""
SCAFFOLD_SPLITS = {
    "esol": "e4323f0899885583a097af097bc67bc985764e88e6436dc4b215b997828f769c",
    "freesolv": "93220515cf039121cdb105627a61697ea40dfa134ac19b376adc0d01b4966f07",
    "bbbp": "1c03eb75dec8adcdfb932c9562717ec951dd7e60af0fd855c70ab648f5811be1",
    "bace": "4a97428569605f44e6de0768f4686541dc6ed0c4730eeea1b5ebf1657b46792a",
    "tox21": "27958ccb631555364f4e137e4d89d804648aafefa96808235a6506423f2d10bf",
}
"""SHA-256 of the tables that `muben` makes, by name."""


# --- Where the sets are.

_RAW = "https://raw.githubusercontent.com"
_MAT = f"{_RAW}/ardigen/MAT/1c7af06e440d967064763dc765847413b5770f05/data"
_MUBEN = f"{_RAW}/Yinghao-Li/MUBen/f0ec55667c1c4cc7b63369018fd011a96f31fdc4/data/files"
_ACTIVITY_CLIFFS = f"{_RAW}/molML/MoleculeACE/7e6de0bd2968c56589c580f2a397f01c531ede26/MoleculeACE/Data/benchmark_data"


def _mat(name: str, sha256: str, licence: str) -> PublicDataset:
    return PublicDataset(
        f"mat/{name}",
        f"{TITLES[name]}, in standard deviations; split and scaled as by Maziarka et al. 2020",
        Path("mat", f"{name}.csv"),
        targets=("y",),
        split_columns=tuple(f"split_random_{i}" for i in range(6)),
        sources=tuple(
            f"{_MAT}/{name}/{file}" for file in (f"{name}.csv", *(f"split-random-{i}.npy" for i in range(6)))
        ),
        licence=licence,
        sha256=sha256,
        assemble=molecule_attention_transformer,
    )


def _scaffold(name: str, sha256: str, licence: str) -> PublicDataset:
    targets = TOX21_ASSAYS if name == "tox21" else ("y",)
    return PublicDataset(
        f"scaffold/{name}",
        f"{TITLES[name]}{UNITS.get(name, '')}; the scaffold split of Uni-Mol and MUBen",
        Path("scaffold", f"{name}.csv"),
        targets,
        split_columns=("split",),
        sources=tuple(f"{_MUBEN}/{name}/{part}.csv" for part in ("train", "valid", "test")),
        licence=licence,
        sha256=sha256,
        assemble=partial(muben, targets=targets),
    )


def _activity(name: str, sha256: str) -> PublicDataset:
    target, _, kind = name.partition("_")
    return PublicDataset(
        f"moleculeace/{name}",
        f"p{kind} of ligands of {target}, and whether one is part of an activity cliff (van Tilborg et al. 2022)",
        Path("moleculeace", f"{name}.csv"),
        targets=("y",),
        split_columns=("split",),
        sources=(f"{_ACTIVITY_CLIFFS}/{name}.csv",),
        licence="CC BY-SA 3.0 (ChEMBL)",
        validated=False,
        sha256=sha256,
        assemble=activity_cliffs,
    )


LICENCES = {"freesolv": "CC BY 4.0"}
BENCHMARK_SETS: dict[str, PublicDataset] = {
    entry.name: entry
    for entry in (
        *(_mat(name, sha256, LICENCES.get(name, "not stated")) for name, sha256 in RANDOM_SPLITS.items()),
        *(_scaffold(name, sha256, LICENCES.get(name, "not stated")) for name, sha256 in SCAFFOLD_SPLITS.items()),
        *(_activity(name, sha256) for name, sha256 in ACTIVITY_SETS.items()),
    )
}
"""The sets, by name."""

PUBLIC_DATASETS.update(BENCHMARK_SETS)
