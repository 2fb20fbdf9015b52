"""Public data sets by name: where they are, their columns and checksums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from gtx.base.errors import InputError, did_you_mean
from gtx.base.files import atomic_file
from gtx.data.tables import open_table


def assemble_zinc12k(files: Sequence[bytes]) -> bytes:
    """Assemble ZINC-12k (Dwivedi et al. 2020, https://arxiv.org/abs/2003.00982) with the SMILES of its graphs.

    The benchmark has graphs alone; its index files number the molecules of the lists of JT-VAE. The targets are those
    of PyG's copy, which PyG downloads and unpickles. The files are JT-VAE's lists of SMILES for train, val and test,
    then the benchmark's indices for them.
    """
    from torch_geometric.datasets import ZINC

    lines = ["smiles,y,split,source_index"]
    with TemporaryDirectory() as folder:
        for part, smiles_file, index_file in zip(("train", "val", "test"), files[:3], files[3:], strict=True):
            smiles, y = smiles_file.decode().split(), ZINC(folder, subset=True, split=part).y.numpy()
            for index, target in zip(index_file.decode().strip().split(","), y, strict=True):
                lines.append(f"{smiles[int(index)]},{np.format_float_positional(target, trim='0')},{part},{index}")
    return "".join(f"{line}\n" for line in lines).encode()


# --- Public data sets by name: addresses, columns, and checksums.

_MOLECULENET = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
_RAW = "https://raw.githubusercontent.com"
_JTVAE = f"{_RAW}/wengong-jin/icml18-jtnn/d4c425a8a28fce7d0e8f5da741d27d3fce4a7ec0/data/zinc"
_BENCHMARK = f"{_RAW}/graphdeeplearning/benchmarking-gnns/b6c407712fa576e9699555e1e035d1e327ccae6c/data/molecules"

TOX21_ASSAYS = (
    *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma"),
    *("SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
)
"""Targets of Tox21."""


@dataclass(frozen=True)
class PublicDataset:
    """Public data set that gtx can load by name: its file, columns, targets, split and source.

    Attributes:
        name: name for `load_public_dataset`.
        about: description of the content, with the units of the targets.
        path: path of the file; relative to the root before loading, the full path after loading.
        targets: the target columns.
        smiles_column: name of the column of molecules.
        split_columns: columns that define a split, the default split first.
        sources: addresses of the official files.
        licence: licence of the data, if the source states a licence.
        sha256: SHA-256 of the file; if None, the hash is recorded at the first download.
        assemble: function that makes the file from several official files.
        units: units of targets, by name.
        validated: whether the splits name validation rows.
    """

    name: str
    about: str
    path: Path
    targets: tuple[str, ...]
    smiles_column: str = "smiles"
    split_columns: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    licence: str = "not stated"
    sha256: str | None = None
    assemble: Callable[[Sequence[bytes]], bytes] = b"".join
    units: Mapping[str, str] = field(default_factory=dict)
    validated: bool = True

    @property
    def default_split(self) -> str | None:
        """Column that defines the default split of `gtx train`: the first split column, if it has validation rows."""
        return self.split_columns[0] if self.split_columns and self.validated else None


def _moleculenet(name: str, about: str, targets: tuple[str, ...], file: str, **more: Any) -> PublicDataset:
    """Fetch a file of MoleculeNet, laid out as PyG's `MoleculeNet(root)` does."""
    return PublicDataset(
        name, about, Path("moleculenet", name, "raw", file), targets, sources=(f"{_MOLECULENET}/{file}",), **more
    )


PUBLIC_DATASETS: dict[str, PublicDataset] = {
    entry.name: entry
    for entry in (
        PublicDataset(
            "xtb9",
            "GFN2-xTB: gap, eV; dipole, debye; atomisation and solvation energies, kcal/mol; with coordinates; bundled",
            Path(__file__).with_name("sets") / "xtb9.parquet",
            targets=("gap", "dipole", "atomisation", "solvation_water", "solvation_octanol"),
            units={"gap": "eV", "dipole": "debye"}
            | dict.fromkeys(("atomisation", "solvation_water", "solvation_octanol"), "kcal/mol"),
            split_columns=("split_random", "split_scaffold"),
            licence="CC0 1.0",
        ),
        _moleculenet(
            "esol",
            "solubility in water, log mol/L (Delaney 2004)",
            ("measured log solubility in mols per litre",),
            "delaney-processed.csv",
            units={"measured log solubility in mols per litre": "log mol/L"},
            sha256="8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189",
        ),
        _moleculenet(
            "freesolv",
            "hydration free energy, kcal/mol (Mobley & Guthrie 2014)",
            ("expt",),
            "SAMPL.csv",
            units={"expt": "kcal/mol"},
            sha256="ab5895d914ee87cb563bd7b9611e869527bba45bec6b014d34dc495a0f9dcb72",
            licence="CC BY 4.0",
        ),
        _moleculenet(
            "lipo",
            "octanol-water distribution at pH 7.4, log D (AstraZeneca, ChEMBL)",
            ("exp",),
            "Lipophilicity.csv",
            licence="CC BY-SA 3.0",
        ),
        _moleculenet(
            "bbbp",
            "whether a drug enters the brain (Martins et al. 2012); 11 rows cannot be read",
            ("p_np",),
            "BBBP.csv",
            sha256="d07a38487aeac5cee5508413e468043ef3097451d2a112701c2d60be9ec6b662",
        ),
        _moleculenet(
            "bace",
            "whether beta-secretase 1 is inhibited (Subramanian et al. 2016)",
            ("Class",),
            "bace.csv",
            smiles_column="mol",
        ),
        _moleculenet("tox21", "activity in twelve toxicity assays (Tox21)", TOX21_ASSAYS, "tox21.csv.gz"),
        _moleculenet(
            "qm9",
            "B3LYP properties of 134k small molecules, as MoleculeNet has them (Ramakrishnan et al. 2014)",
            ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u298", "h298", "g298", "cv"),
            "qm9.csv",
            licence="CC0 1.0",
        ),
        PublicDataset(
            "zinc12k",
            "penalised logP, standardised, of 12,000 drug-like molecules (Dwivedi et al. 2020)",
            Path("zinc12k", "zinc12k.csv"),
            targets=("y",),
            split_columns=("split",),
            sources=(
                *(f"{_JTVAE}/{part}.txt" for part in ("train", "valid", "test")),
                *(f"{_BENCHMARK}/{part}.index" for part in ("train", "val", "test")),
            ),
            licence="ZINC, free to use",
            sha256="035301d87179ce3e9422ae334417cd64a51bf1f6e8be02b0cc3c70e8125ea154",
            assemble=assemble_zinc12k,
        ),
    )
}
"""Public data sets that `load_public_dataset` can load, by name; more can be added."""


def load_public_dataset(name: str, root: str | os.PathLike[str] | None = None, download: bool = True) -> PublicDataset:
    """Load a public data set, downloading it if necessary.

    To read the table, call `open_table(loaded.path, loaded.smiles_column)`.

    Args:
        name: one of `PUBLIC_DATASETS`.
        root: folder of data sets, by default `$GTX_DATA` or `~/.cache/gtx`. A file that already exists in the folder is
            used.
        download: whether a missing file may be downloaded.

    Returns:
        The description of the data set, with the path of the file.

    Raises:
        InputError: the name is unknown, the file has a wrong checksum, or the file cannot be downloaded.
    """
    if name not in PUBLIC_DATASETS:
        hint = did_you_mean(name, PUBLIC_DATASETS)
        raise InputError(f"there is no data set {name!r}{hint or ';'} the names are {', '.join(PUBLIC_DATASETS)}")
    try:
        root = Path(root or os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
    except RuntimeError:
        raise InputError("public data sets need a folder, and no home folder is known: name one by GTX_DATA") from None
    entry = replace(PUBLIC_DATASETS[name], path=root / PUBLIC_DATASETS[name].path)
    if entry.path.is_file():
        _check(entry, hashlib.sha256(entry.path.read_bytes()).hexdigest())
    elif not entry.sources or not download:
        raise InputError(f"data set {name!r} is not at {entry.path}")
    else:
        _download(entry)
    return entry


def _download(entry: PublicDataset) -> None:
    try:
        content = entry.assemble([fetch(source) for source in entry.sources])
    except (OSError, HTTPException, ValueError, LookupError, UnpicklingError) as reason:
        raise _unavailable(entry, reason) from None
    digest = hashlib.sha256(content).hexdigest()
    _check(entry, digest)
    try:
        with atomic_file(entry.path) as part:
            part.write(content)
            part.flush()
            table = open_table(part.name, entry.smiles_column)
            for column in (*entry.targets, *entry.split_columns):
                table.index(column)
            if entry.sha256 is None:
                _record(entry.path).write_text(f"{digest}  {entry.path.name}\n")  # as sha256sum writes and checks it
    except InputError as reason:  # a page that says "log in first" is no table
        raise _unavailable(entry, reason) from None
    except OSError as reason:
        raise InputError(f"cannot write {entry.path}: {reason}") from None


def _unavailable(entry: PublicDataset, reason: Exception) -> InputError:
    return InputError(
        f"data set {entry.name!r} cannot be downloaded: {reason} (from {', '.join(entry.sources)}). "
        f"A copy of {entry.path.name} made elsewhere can be put at {entry.path}"
    )


def _check(entry: PublicDataset, digest: str) -> None:
    """Refuse a file whose hash differs from `PUBLIC_DATASETS` or, without one there, from that of its download."""
    record = _record(entry.path)
    recorded = record.read_text(errors="replace").split() if record.is_file() else [digest]
    expected = entry.sha256 or next(iter(recorded), "that is recorded beside it, which is empty,")
    if digest != expected:
        raise InputError(
            f"data set {entry.name!r}: {entry.path} should have SHA-256 {expected} and has {digest}; "
            "remove the file (and its .sha256) to download it anew"
        )


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def fetch(url: str) -> bytes:
    """Download an address, with a progress bar on stderr; `OSError` if that fails or is incomplete."""
    content = bytearray()
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with urlopen(url, timeout=60) as response, Progress(*columns, console=Console(stderr=True)) as bar:
        total = int(response.headers.get("Content-Length") or 0)
        task = bar.add_task(url.rpartition("/")[2], total=total or None)
        while chunk := response.read(1 << 16):
            content += chunk
            bar.update(task, completed=len(content))
    if len(content) < total:
        raise OSError(f"the connection broke after {len(content)} of {total} bytes of {url}")
    return bytes(content)
