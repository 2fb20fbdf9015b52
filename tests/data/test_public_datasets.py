import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from gtx.base.errors import InputError
from gtx.data.public_datasets import PUBLIC_DATASETS, PublicDataset, load_public_dataset
from gtx.data.rows import InputFile, RowLog
from gtx.data.splits import split_by_column
from gtx.data.tables import open_table
from gtx.tasks.combined import InferredTask
from tests.tables import XTB9, bundled

CONTENT = b"smiles,y\nCCO,1.5\nC,2\n"


@pytest.fixture
def toy(site, monkeypatch) -> PublicDataset:
    """A set of one file, with no hash known beforehand."""
    folder, address = site
    (folder / "toy.csv").write_bytes(CONTENT)
    entry = PublicDataset("toy", "", Path("toys", "toy.csv"), targets=("y",), sources=(f"{address}/toy.csv",))
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", entry)
    return entry


def test_a_download_is_kept_recorded_and_compared(toy, site, tmp_path, monkeypatch):
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "root"))
    with pytest.raises(InputError, match="'toy' is not at"):
        load_public_dataset("toy", download=False)
    with pytest.raises(InputError, match="no data set 'toys'; did you mean 'toy'"):
        load_public_dataset("toys")
    loaded = load_public_dataset("toy")
    assert loaded.path == tmp_path / "root" / "toys" / "toy.csv"
    assert [row.text for row in open_table(loaded.path, loaded.smiles_column).rows] == ["CCO", "C"]
    record = loaded.path.with_name("toy.csv.sha256")
    assert record.read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  toy.csv\n"
    assert sorted(path.name for path in loaded.path.parent.iterdir()) == ["toy.csv", "toy.csv.sha256"]

    whole = record.read_text()
    record.write_text("")
    with pytest.raises(InputError, match="should have SHA-256 that is recorded beside it, which is empty, and has"):
        load_public_dataset("toy")
    record.write_text(whole)

    (site[0] / "toy.csv").write_bytes(CONTENT + b"N,3\n")  # what lies in place is used
    assert load_public_dataset("toy").path.read_bytes() == CONTENT
    loaded.path.write_bytes(CONTENT + b"N,3\n")  # but not if it changed
    with pytest.raises(InputError, match=r"should have SHA-256 .* and has .* remove the file"):
        load_public_dataset("toy")
    (site[0] / "toy.csv.gz").write_bytes(gzip.compress(CONTENT))  # as some sets are served
    packed = replace(toy, path=Path("toy.csv.gz"), sources=(f"{site[1]}/toy.csv.gz",))
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", packed)
    assert [row.text for row in open_table(load_public_dataset("toy").path).rows] == ["CCO", "C"]


def test_without_a_home_folder_one_line_says_what_to_name(toy, monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GTX_DATA", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match="no home folder is known: name one by GTX_DATA"):
        load_public_dataset("toy")


def test_a_known_hash_is_checked_before_anything_is_written(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sha256="0" * 64))
    with pytest.raises(InputError, match=f"should have SHA-256 {'0' * 64} and has"):
        load_public_dataset("toy", tmp_path)
    assert not (tmp_path / "toys").exists()
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sha256=hashlib.sha256(CONTENT).hexdigest()))
    assert [path.name for path in load_public_dataset("toy", tmp_path).path.parent.iterdir()] == ["toy.csv"]


def test_a_failed_download_says_what_where_and_what_to_do(toy, site, tmp_path, monkeypatch):
    folder, address = site
    (folder / "broken.csv").write_bytes(CONTENT)
    (folder / "login.csv").write_text("<html>smiles, please\n")
    (folder / "other.csv").write_text("smiles,z\nC,1\n")
    reasons = {"none": "404", "broken": "after 21 of 121", "login": "no column 'smiles'", "other": "no column 'y'"}
    for stem, reason in reasons.items():
        file = f"{stem}.csv"
        monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sources=(f"{address}/{file}",)))
        with pytest.raises(InputError, match=reason) as error:
            load_public_dataset("toy", tmp_path / "root")
        assert f"{address}/{file}" in str(error.value)
        assert str(tmp_path / "root" / "toys" / "toy.csv") in str(error.value)
        assert not list((tmp_path / "root").rglob("*toy.csv*"))
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sources=("http://127.0.0.1:9/none.csv",)))
    with pytest.raises(InputError, match="cannot be downloaded"):
        load_public_dataset("toy", tmp_path / "root")


ROWS = {"esol": 1128, "freesolv": 642, "bbbp": 2050, "zinc12k": 12_000}


@pytest.mark.parametrize("name", ROWS)
def test_sets_in_place_hold_what_their_entries_say(name, shared_data):
    check_entry(load_public_dataset(name, shared_data, download=False), ROWS[name])


def check_entry(loaded: PublicDataset, number: int, without: tuple[str, ...] = ()) -> None:
    """The file of a set has the rows, targets and splits that its entry names; parts `without` rows are empty."""
    table = open_table(loaded.path, loaded.smiles_column)
    rows = list(table.rows)
    assert len(rows) == number
    row_log = RowLog("fail")
    row_log.enter(rows)
    file = InputFile(loaded.name, table.columns, table.smiles_column, rows, row_log, 0)
    task = InferredTask(loaded.targets).infer_from_table([file])
    assert task.discrete == (loaded.name.split("/")[-1] in ("bbbp", "bace", "tox21"))
    assert np.isfinite(task.columns.parse(rows, table.columns, row_log).y).any()
    for column in loaded.split_columns:
        place = table.index(column)
        split = split_by_column([row.cells[place] for row in rows], row_log)
        assert sum(map(len, split.values())) == len(rows)
        assert all(len(rows) for part, rows in split.items() if part not in without)


def test_the_bundled_set_is_what_its_card_says():
    frame, card = bundled(), XTB9.with_suffix(".md").read_text()
    assert f"{len(frame):,} neutral molecules" in card and f"{XTB9.stat().st_size:,} bytes" in card
    for name in ("gap", "dipole", "atomisation", "solvation_water", "solvation_octanol"):
        x = frame[name]
        assert f"| {x.min():.2f} | {x.mean():.2f} | {x.max():.2f} | {x.std(ddof=0):.2f} |" in card, name
    for name in ("split_random", "split_scaffold"):
        shares = frame[name].value_counts(normalize=True).to_dict()
        assert shares == pytest.approx({"train": 0.8, "val": 0.1, "test": 0.1}, abs=3e-4)
    assert frame["smiles"].is_unique
    some = frame[::20]
    mols = [Chem.MolFromSmiles(smiles) for smiles in some["smiles"]]
    assert [Chem.MolToSmiles(mol) for mol in mols] == some["smiles"].tolist()
    scaffolds = np.array([MurckoScaffoldSmiles(mol=mol, includeChirality=False) for mol in mols])
    assert some.groupby(scaffolds)["split_scaffold"].nunique().max() == 1
    assert set(some.loc[scaffolds == "", "split_scaffold"]) == {"train"}
