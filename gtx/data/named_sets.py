"""Public data sets by name: where they come from, what their columns mean, and that they are what they were."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from urllib.request import urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from gtx.data import assembling
from gtx.data.activity_sets import ACTIVITY_SETS
from gtx.data.tables import open_table
from gtx.errors import InputError, did_you_mean

_MOLECULENET = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
_RAW = "https://raw.githubusercontent.com"
_MAT = f"{_RAW}/ardigen/MAT/1c7af06e440d967064763dc765847413b5770f05/data"
_MUBEN = f"{_RAW}/Yinghao-Li/MUBen/f0ec55667c1c4cc7b63369018fd011a96f31fdc4/data/files"
_JTVAE = f"{_RAW}/wengong-jin/icml18-jtnn/d4c425a8a28fce7d0e8f5da741d27d3fce4a7ec0/data/zinc"
_ACTIVITY_CLIFFS = f"{_RAW}/molML/MoleculeACE/7e6de0bd2968c56589c580f2a397f01c531ede26/MoleculeACE/Data/benchmark_data"
_BENCHMARK = f"{_RAW}/graphdeeplearning/benchmarking-gnns/b6c407712fa576e9699555e1e035d1e327ccae6c/data/molecules"

_NUCLEAR = ("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma")
_STRESS = ("SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53")


def _as_it_is(files: Sequence[bytes]) -> bytes:
    (content,) = files
    return content


@dataclass(frozen=True)
class NamedSet:
    """A public data set.

    Attributes:
        name: what `load_set` calls it.
        about: what is in it, and the targets' unit.
        path: its file; below the root before it is loaded, where it lies afterwards.
        targets: the target columns.
        smiles_column: the column of molecules.
        split_columns: columns that spell out a split, the usual one first.
        sources: addresses of the official files.
        licence: of the data, as far as its source states one.
        sha256: of the file, where one was at hand to compute it from; else the hash is recorded at the first download.
        assemble: makes the file of the official ones.
        units: of targets, by name, where they are not in `about` alone.
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
    assemble: Callable[[Sequence[bytes]], bytes] = _as_it_is
    units: Mapping[str, str] = field(default_factory=dict)
    validated: bool = True

    @property
    def own_split(self) -> str | None:
        """The column by which `gtx train` divides the rows unless told otherwise: the usual one, if it validates."""
        return self.split_columns[0] if self.split_columns and self.validated else None


def _moleculenet(name: str, about: str, targets: tuple[str, ...], file: str, **more: object) -> NamedSet:
    """A file of MoleculeNet, laid out as PyG's `MoleculeNet(root)` does."""
    return NamedSet(
        name, about, Path("moleculenet", name, "raw", file), targets, sources=(f"{_MOLECULENET}/{file}",), **more
    )


def _mat(name: str, about: str, kind: str, sha256: str, **more: object) -> NamedSet:
    files = [f"{name}.csv", *(f"split-{kind}-{i}.npy" for i in range(6))]
    return NamedSet(
        f"mat/{name}",
        f"{about}; split and scaled as by Maziarka et al. 2020",
        Path("mat", f"{name}.csv"),
        targets=("y",),
        split_columns=tuple(f"split_{kind}_{i}" for i in range(6)),
        sources=tuple(f"{_MAT}/{name}/{file}" for file in files),
        sha256=sha256,
        assemble=partial(assembling.molecule_attention_transformer, kind=kind),
        **more,
    )


def _scaffold(name: str, about: str, sha256: str, targets: tuple[str, ...] = ("y",), **more: object) -> NamedSet:
    return NamedSet(
        f"scaffold/{name}",
        f"{about}; the scaffold split of Uni-Mol and MUBen",
        Path("scaffold", f"{name}.csv"),
        targets,
        split_columns=("split",),
        sources=tuple(f"{_MUBEN}/{name}/{part}.csv" for part in ("train", "valid", "test")),
        sha256=sha256,
        assemble=partial(assembling.muben, targets=targets),
        **more,
    )


def _activity(name: str, sha256: str) -> NamedSet:
    target, _, kind = name.partition("_")
    return NamedSet(
        f"moleculeace/{name}",
        f"p{kind} of ligands of {target}, and whether one is part of an activity cliff (van Tilborg et al. 2022)",
        Path("moleculeace", f"{name}.csv"),
        targets=("y",),
        split_columns=("split",),
        sources=(f"{_ACTIVITY_CLIFFS}/{name}.csv",),
        licence="CC BY-SA 3.0 (ChEMBL)",
        validated=False,
        sha256=sha256,
        assemble=assembling.activity_cliffs,
    )


_FREE = {"licence": "CC BY 4.0"}

SETS: dict[str, NamedSet] = {
    entry.name: entry
    for entry in (
        NamedSet(
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
            sha256="8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189",
        ),
        _moleculenet(
            "freesolv",
            "hydration free energy, kcal/mol (Mobley & Guthrie 2014)",
            ("expt",),
            "SAMPL.csv",
            sha256="ab5895d914ee87cb563bd7b9611e869527bba45bec6b014d34dc495a0f9dcb72",
            **_FREE,
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
        _moleculenet("tox21", "activity in twelve toxicity assays (Tox21)", _NUCLEAR + _STRESS, "tox21.csv.gz"),
        _moleculenet(
            "qm9",
            "B3LYP properties of 134k small molecules, as MoleculeNet has them (Ramakrishnan et al. 2014)",
            ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u298", "h298", "g298", "cv"),
            "qm9.csv",
            licence="CC0 1.0",
        ),
        NamedSet(
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
            assemble=assembling.zinc12k,
        ),
        _mat(
            "esol",
            "ESOL, in standard deviations",
            "random",
            "84f26bdc80ad23371ce3dae4c960dc16d1aa9cdce1fd369dbc381a55ada46b34",
        ),
        _mat(
            "freesolv",
            "FreeSolv, in standard deviations",
            "random",
            "dfacba07afab95a3a90afd748d78a58bd3be33689f371d3a646ea8feaa365dc6",
            **_FREE,
        ),
        _mat("bbbp", "BBBP", "scaffold", "b340effb21aae95ff8586fc9efd16b1792c16c500740c0a9e36c487ad85b02ce"),
        _scaffold("esol", "ESOL, log mol/L", "e4323f0899885583a097af097bc67bc985764e88e6436dc4b215b997828f769c"),
        _scaffold(
            "freesolv",
            "FreeSolv, kcal/mol",
            "93220515cf039121cdb105627a61697ea40dfa134ac19b376adc0d01b4966f07",
            **_FREE,
        ),
        _scaffold("bbbp", "BBBP", "1c03eb75dec8adcdfb932c9562717ec951dd7e60af0fd855c70ab648f5811be1"),
        _scaffold("bace", "BACE", "4a97428569605f44e6de0768f4686541dc6ed0c4730eeea1b5ebf1657b46792a"),
        _scaffold(
            "tox21",
            "Tox21",
            "27958ccb631555364f4e137e4d89d804648aafefa96808235a6506423f2d10bf",
            _NUCLEAR + _STRESS,
        ),
        *(_activity(name, sha256) for name, sha256 in ACTIVITY_SETS.items()),
    )
}


def load_set(name: str, root: str | os.PathLike[str] | None = None, download: bool = True) -> NamedSet:
    """A public data set, downloaded if need be; read its file with `open_table(loaded.path, loaded.smiles_column)`.

    Args:
        name: one of `SETS`.
        root: the folder of data sets, by default `$GTX_DATA` or `~/.cache/gtx`. A file that lies there is used.
        download: False never goes to the network.

    Returns:
        Its description, with `path` the file.

    Raises:
        InputError: for an unknown name, a file that is not what it should be, or one that cannot be had.
    """
    if name not in SETS:
        near = did_you_mean(name, SETS)
        raise InputError(f"there is no data set {name!r}{near or ';'} the names are {', '.join(SETS)}")
    root = Path(root or os.environ.get("GTX_DATA") or Path.home() / ".cache" / "gtx").expanduser()
    entry = replace(SETS[name], path=root / SETS[name].path)
    if entry.path.is_file():
        _check(entry, _sha256(entry.path.read_bytes()))
    elif not entry.sources or not download:
        raise InputError(f"data set {name!r} is not at {entry.path}")
    else:
        _download(entry)
    return entry


def _download(entry: NamedSet) -> None:
    try:
        content = entry.assemble([fetch(source) for source in entry.sources])
    except (OSError, HTTPException, ValueError, LookupError, UnpicklingError) as reason:
        raise _unavailable(entry, reason) from None
    digest = _sha256(content)
    _check(entry, digest)
    part = entry.path.with_name(f".{entry.path.name}.{os.getpid()}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        table = open_table(part, entry.smiles_column)
        for column in (*entry.targets, *entry.split_columns):
            table.index(column)
        if entry.sha256 is None:
            _record(entry.path).write_text(f"{digest}  {entry.path.name}\n")  # as sha256sum writes and checks it
        part.replace(entry.path)
    except InputError as reason:  # a page that says "log in first" is no table
        raise _unavailable(entry, reason) from None
    except OSError as reason:
        raise InputError(f"cannot write {entry.path}: {reason}") from None
    finally:
        part.unlink(missing_ok=True)


def _unavailable(entry: NamedSet, reason: Exception) -> InputError:
    return InputError(
        f"data set {entry.name!r} cannot be downloaded: {reason} (from {', '.join(entry.sources)}). "
        f"A copy of {entry.path.name} made elsewhere can be put at {entry.path}"
    )


def _check(entry: NamedSet, digest: str) -> None:
    """Refuse a file whose hash is not the one in `SETS` or, without one there, the one recorded at its download."""
    record = _record(entry.path)
    expected = entry.sha256 or (record.read_text().split()[0] if record.is_file() else digest)
    if digest != expected:
        raise InputError(
            f"data set {entry.name!r}: {entry.path} should have SHA-256 {expected} and has {digest}; "
            "remove the file (and its .sha256) to download it anew"
        )


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(url: str) -> bytes:
    """What lies at an address, with a progress bar on stderr.

    Raises:
        OSError: it cannot be had, or not all of it.
    """
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
