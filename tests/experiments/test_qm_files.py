"""QM7 and QM9 as arrays: what their official files say, and what is said where they cannot be had."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments import qm_files, qm_sets
from gtx.errors import InputError

SYMBOLS = {number: symbol for symbol, number in qm_files.NUMBERS.items()}


def held(shared_data: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(shared_data / name) as arrays:
        return dict(arrays)


def cut(arrays: dict[str, np.ndarray], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Atomic numbers and positions of the first molecules."""
    ends = np.cumsum(arrays["num_atoms"].astype(int))[: count - 1]
    last = int(arrays["num_atoms"][:count].astype(int).sum())
    return list(zip(np.split(arrays["Z"][:last], ends), np.split(arrays["R"][:last], ends), strict=True))


def as_qml(arrays: dict[str, np.ndarray], count: int) -> bytes:
    """The first molecules as qml's archive has them, among files of other kinds."""
    files = {"qml-8bb833c/tests/data/other.txt": "no molecule", "qml-8bb833c/tests/qm7/readme": "no molecule either"}
    heats = ""
    labels = zip(arrays["xyz_name"][:count], arrays["energy_pbe0"][:count], strict=True)
    for (numbers, places), (name, energy) in zip(cut(arrays, count), labels, strict=True):
        atoms = [f" {SYMBOLS[z]} {x:.6f} {y:.6f} {w:.6f}\n" for z, (x, y, w) in zip(numbers, places, strict=True)]
        files[f"qml-8bb833c/tests/qm7/{name}"] = f"{len(atoms)}\ncharge = 0\n{''.join(atoms)}"
        heats += f"{name} {energy} -1.0\n"
    files["qml-8bb833c/tests/data/hof_qm7.txt"] = heats
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in reversed(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def as_moleculenet(arrays: dict[str, np.ndarray], count: int) -> bytes:
    """The first molecules as MoleculeNet's archive has them, each followed by one that is not taken."""
    names = arrays["target_names"].tolist()
    sdf, table = "", ",".join(["mol_id", *names]) + "\n"
    labels = zip(arrays["mol_id"][:count], arrays["targets"][:count], strict=True)
    for (numbers, places), (name, targets) in zip(cut(arrays, count), labels, strict=True):
        for shift in (0, 1):
            own = f"gdb_{int(name[4:]) + shift}"
            table += ",".join([own, *(repr(float(value) + shift) for value in targets)]) + "\n"
            sdf += f"{own}\n  -OEChem-\n\n{len(numbers):3d}  1  0     0  0\n"
            for z, (x, y, w) in zip(numbers, places + shift, strict=True):
                sdf += f"{x:10.4f}{y:10.4f}{w:10.4f} {SYMBOLS[z]:<3} 0  0\n"
            sdf += "  1  2  1  0  0  0  0\nM  END\n$$$$\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as files:
        files.writestr("gdb9.sdf", sdf)
        files.writestr("gdb9.sdf.csv", table)
    return out.getvalue()


@pytest.mark.parametrize(
    ("file", "pack", "read"),
    [
        ("qm7/qm7_qml_7101.npz", as_qml, qm_files.qm7),
        ("qm9/qm9_3d_3000.npz", as_moleculenet, qm_files.qm9),
    ],
)
def test_official_files_become_the_arrays(shared_data: Path, file: str, pack, read) -> None:
    arrays, count = held(shared_data, file), 30
    made = read(pack(arrays, count))
    atoms = int(arrays["num_atoms"][:count].sum())
    for name, found in made.items():
        whole = arrays[name] if name == "target_names" else arrays[name][: atoms if name in "ZR" else count]
        assert found.dtype.kind == whole.dtype.kind and np.array_equal(found, whole), name
    assert len(made["num_atoms"]) == count


@pytest.mark.parametrize("file", ["qm7/qm7_qml_7101.npz", "qm9/qm9_3d_3000.npz"])
def test_the_digest_is_of_the_files_at_hand_and_sees_an_atom_moved(shared_data: Path, file: str) -> None:
    arrays = held(shared_data, file)
    assert qm_files.digest(arrays) == qm_files.DIGESTS[Path(file).name]
    arrays["R"][100, 1] += 0.001
    assert qm_files.digest(arrays) != qm_files.DIGESTS[Path(file).name]


def test_what_was_downloaded_is_kept_and_read(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = held(shared_data, "qm7/qm7_qml_7101.npz")
    archive = tmp_path / "qml.tar.gz"
    archive.write_bytes(as_qml(arrays, 30))
    monkeypatch.setitem(qm_files.SOURCES, "qm7_qml_7101.npz", archive.as_uri())
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "data"))
    with pytest.raises(InputError, match=r"its molecules should have SHA-256 .* and have"):
        qm_sets.molecules("qm7-energy", 0)
    assert not (tmp_path / "data").exists()
    small = qm_files.digest(qm_files.qm7(archive.read_bytes()))
    monkeypatch.setitem(qm_files.DIGESTS, "qm7_qml_7101.npz", small)
    found = qm_sets.molecules("qm7-energy", 0)
    archive.unlink()
    again = qm_sets.molecules("qm7-energy", 0)
    np.testing.assert_array_equal(found.store.y, again.store.y)
    np.testing.assert_allclose(found.store.y[:, 0], arrays["energy_pbe0"][:30])
    assert [one.name for one in (tmp_path / "data" / "qm7").iterdir()] == ["qm7_qml_7101.npz"]


@pytest.mark.parametrize("content", [b"a page that says log in", None])
def test_files_that_cannot_be_had_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    page = tmp_path / "page"
    if content:
        page.write_bytes(content)
    for name in qm_files.SOURCES:
        monkeypatch.setitem(qm_files.SOURCES, name, page.as_uri())
        with pytest.raises(InputError, match=rf"{name} is not there, and cannot be made of file:.*made elsewhere"):
            qm_files.obtain(tmp_path / name)
        assert not (tmp_path / name).exists()
