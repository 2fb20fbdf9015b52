from __future__ import annotations

import os
import signal
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gtx.bulk import preparing
from gtx.bulk.preparing import ShardReader, prepare_molecule_store, prepared_shards
from gtx.data import MoleculeStore, featurise
from gtx.data.featurising import DEADLY
from gtx.errors import InputError
from gtx.molecules import Featuriser

TEXTS = [f"{'C' * (1 + i % 7)}{'NOS'[i % 3]}" for i in range(19)] + ["C1CC", "C[Si]", "CCO"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of two tables, of 22 and 12 rows."""
    folder = tmp_path / "tables"
    (folder / "more").mkdir(parents=True)
    pd.DataFrame({"smiles": TEXTS, "y": np.arange(22) / 4}).to_csv(folder / "a.csv", index=False)
    (folder / "more" / "b.smi").write_text("".join(f"{'C' * (1 + i % 5)}Cl number {i}\n" for i in range(12)))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files, by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_shards_hold_what_reading_all_at_once_gives(tables: Path, tmp_path: Path) -> None:
    outcome = prepare_molecule_store(tables, tmp_path / "store", workers=0, shard_rows=10)
    assert outcome.row_log.summary().startswith("34 rows: 33 read, 1 error (1 with an unusable molecule)")
    assert (outcome.shards, outcome.kept, outcome.problems) == (5, 33, [])
    shards = list(prepared_shards(tmp_path / "store"))
    assert [made.rows.name for made in shards] == [
        *("a.csv-000000000000.parquet", "a.csv-000000000010.parquet", "a.csv-000000000020.parquet"),
        *("b.smi-000000000000.parquet", "b.smi-000000000010.parquet"),
    ]
    whole = featurise(Featuriser(), TEXTS, workers=0)
    rows = pd.concat([pd.read_parquet(made.rows) for made in shards[:3]])
    assert rows["smiles"].tolist() == TEXTS and rows["canonical_smiles"].fillna("").tolist() == [
        text or "" for text in whole.smiles
    ]
    assert rows["error"].notna().tolist() == [error is not None for error in whole.errors]
    assert rows["error"].iloc[19].startswith('row 20, column "smiles", value "C1CC": ')
    start = 0
    for made in shards[:3]:
        store = MoleculeStore.open(made.tensors)
        index = np.arange(start, start + len(store))
        assert store.checksum() == whole.store.subset(index).checksum()
        start += len(store)
    assert start == len(whole.store)
    assert len(pd.read_parquet(tmp_path / "store")) == 34  # a data set; nothing else is in the way


def test_killed_in_the_middle_it_goes_on_and_nothing_is_lost_or_made_twice(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, usual = tmp_path / "store", {"workers": 0, "shard_rows": 10}

    def killed(count: int) -> None:
        own, calls = preparing.MoleculeStore.save, iter(range(100))

        def save(*given: object) -> None:
            if next(calls) == count:  # the rows are on the disk, the molecules are not
                os.kill(os.getpid(), signal.SIGKILL)
            own(*given)

        preparing.MoleculeStore.save = save
        prepare_molecule_store(tables, out, **usual)

    child = get_context("fork").Process(target=killed, args=(2,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL and len(list(prepared_shards(out))) == 2
    made = {name: content for name, content in contents(out).items() if name.startswith("_molecules")}
    made_anew, own = [], ShardReader.work
    monkeypatch.setattr(ShardReader, "work", lambda self, shard: made_anew.append(shard.part) or own(self, shard))
    outcome = prepare_molecule_store(tables, out, **usual)
    assert outcome.before == 2 and len(made_anew) == 3 and outcome.row_log.rows == 34
    prepare_molecule_store(tables, tmp_path / "at once", **usual)
    assert contents(out) == contents(tmp_path / "at once") and made.items() <= contents(out).items()
    next((out / "_molecules").glob("a*")).write_bytes(b"damaged")
    made_anew.clear()
    prepare_molecule_store(tables, out, **usual)
    assert len(made_anew) == 1 and contents(out) == contents(tmp_path / "at once")


def test_shards_of_something_else_are_refused(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"
    prepare_molecule_store(tables, out, workers=0)
    with pytest.raises(InputError, match=r"holds another store with .*: shard_rows .10000 there, 5 now.\. Choose"):
        prepare_molecule_store(tables, out, workers=0, shard_rows=5)
    with pytest.raises(InputError, match=r"holds another store with .*: featuriser\.hydrogens .false there"):
        prepare_molecule_store(tables, out, workers=0, featuriser=Featuriser(hydrogens=True))
    with pytest.raises(InputError, match=r"more is within .*: a store would be taken for molecules"):
        prepare_molecule_store(tables, tables / "more", workers=0)
    (tables / "a.csv").write_text("smiles\nC\n")
    with pytest.raises(InputError, match=r"a\.csv has changed since .*a\.csv-000000000000.safetensors was written"):
        prepare_molecule_store(tables, out, workers=0)


@pytest.mark.usefixtures("forks")
def test_a_row_that_kills_workers_has_an_error_and_a_shard_without_molecules_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = preparing.featurise_texts

    def reading(featuriser: Featuriser, texts: list[str], *more: object) -> object:
        if "CCCCCS" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(featuriser, texts, *more)

    monkeypatch.setattr(preparing, "featurise_texts", reading)
    (tmp_path / "a.smi").write_text("CCO\nC1CC\nCCCCCS\nCN\n")
    outcome = prepare_molecule_store(tmp_path / "a.smi", tmp_path / "store", workers=2, shard_rows=1)
    assert (
        outcome.row_log.error_counts == {"with an unusable molecule": 1, "with a broken row": 1} and outcome.kept == 2
    )
    shards = list(prepared_shards(tmp_path / "store"))
    assert [len(MoleculeStore.open(made.tensors)) for made in shards] == [1, 0, 0, 1]
    assert pd.read_parquet(shards[2].rows)["error"].tolist() == [f"row 3: {DEADLY}"]
