"""Training from a store on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
from gtx.bulk import stored
from gtx.bulk.preparing import prepare_molecule_store, prepared_shards
from gtx.bulk.stored import DataOnDisk, WindowBatches, load_prepared_dataset, use_prepared_featuriser
from gtx.cli import main
from gtx.errors import InputError
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model

HEADS, TAILS = ("C", "N", "O", "CC", "OC", "NC", "CN", "CO", "CCC", "COC"), ("F", "Cl", "C#N", "C=O", "S", "Br", "[Si]")
TEXTS = [f"{head}C{tail}" for tail in TAILS for head in HEADS] + ["C1CC", "CCF"]
SMALL = TrainSettings(
    model_arguments={"channels": 8, "layers": 1}, epochs=2, batch_molecules=8, progress=False, threads=1
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 72 rows, one of which cannot be read and two of which are one molecule, and its store."""
    folder = tmp_path_factory.mktemp("prepared")
    values = [float(i * 29 % 72) for i in range(len(TEXTS))]  # which composition does not explain
    table = pd.DataFrame({"smiles": TEXTS, "y": values, "high": [int(value > 30) for value in values]})
    table["part"] = ["val" if i % 6 == 0 else "test" if i % 6 == 1 else "train" for i in range(len(TEXTS))]
    table.loc[3, "y"] = np.nan
    table.to_csv(folder / "a.csv", index=False)
    prepare_molecule_store(folder / "a.csv", folder / "store", workers=0, shard_rows=10)
    return folder


def read(prepared: Path, cache: Path, *targets: str, **more: Any) -> stored.StoredDataset:
    return load_prepared_dataset(
        use_prepared_featuriser(DataSettings(str(prepared / "store"), targets or ("y",), **more)), cache
    )


def test_a_store_has_what_the_table_has(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_training_table(DataSettings(str(prepared / "a.csv"), ("y",), split_column="part", workers=0))
    there = read(prepared, tmp_path, split_column="part")
    assert there.counts == {part: len(index) for part, index in whole.split.items()}
    for part in ("train", "val", "test"):
        assert there.store.subset(there.split[part]).checksum() == whole.store.subset(whole.split[part]).checksum()
    portions = list(there.train.portions())
    assert len(portions) == 8 and sum(map(len, portions)) == there.counts["train"] == len(there.train)
    torch.testing.assert_close(torch.cat([part.y for part in portions]), whole.store.y[whole.split["train"]])
    own, usual = there.fitted().scaler, whole.fitted().scaler
    torch.testing.assert_close((own.mean, own.sd), (usual.mean, usual.sd))
    repeated = ", 2 with warnings"  # rows that give one molecule different values, for which a store does not look
    assert there.files[0].row_log.summary() + repeated == whole.files[0].row_log.summary()
    errors = list(there.files[0].row_log.errors.values())
    assert errors == [f"a.csv, {message}" for message in whole.files[0].row_log.errors.values()] and len(errors) == 1
    monkeypatch.setattr(stored, "MOST", 10)
    few = read(prepared, tmp_path)
    assert few.counts["train"] + few.counts["val"] + few.counts["test"] == 70 and len(few.split["train"]) < 25
    assert few.split_summary.endswith("seed 0")
    monkeypatch.setattr(stored, "MOST", 5)
    few = read(prepared, tmp_path, split_column="part")
    assert 0 < len(few.split["val"]) < 11 and 0 < len(few.split["test"]) < 11 < few.counts["train"]
    assert few.split_summary == "column 'part', of 12 val rows 5 at random, of 12 test rows 5 at random"


def test_warnings_of_shards_are_kept_as_messages(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared / "store", tmp_path / "store")
    file = sorted((tmp_path / "store").glob("*.parquet"))[0]
    rows = pd.read_parquet(file)
    rows.loc[0, "part"] = "none"
    rows.to_parquet(file)
    settings = DataSettings(str(tmp_path / "store"), ("y",), split_column="part")
    (messages,) = load_prepared_dataset(use_prepared_featuriser(settings), tmp_path).files[0].row_log.warnings.values()
    assert len(messages) == 1 and messages[0].startswith("a.csv, row 1, ") and "train, val and test" in messages[0]


def test_a_hash_divides_the_molecules_alike_wherever_they_stand(prepared: Path, tmp_path: Path) -> None:
    shares = {"split_sizes": (0.4, 0.3, 0.3)}
    first, again, other = (read(prepared, tmp_path / str(i), seed=seed, **shares) for i, seed in enumerate((0, 0, 1)))
    parts = [{part: {d.smiles[i] for i in d.split[part]} for part in d.split} for d in (first, again, other)]
    assert parts[0] == parts[1] != parts[2]
    assert all(sum(text in part for part in parts[0].values()) == 1 for text in ("CCF", "CCCl"))
    assert 10 < len(parts[0]["val"]) < 35 and 10 < len(parts[0]["test"]) < 35


@pytest.mark.parametrize("replicas", [1, 2])
def test_every_molecule_is_in_one_batch_of_an_epoch(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    monkeypatch.setattr(stored, "WINDOW", 3)
    dataset = read(prepared, tmp_path, split_column="part")
    task = dataset.fitted()

    def epoch(number: int, rank: int) -> list[list[float]]:
        data = DataOnDisk(task, dataset.train, dataset.store.subset(dataset.split["val"]), SMALL)
        data.trainer = SimpleNamespace(current_epoch=number, global_rank=rank, world_size=replicas)
        batches = data.train_dataloader()
        made = [task.unscaled(batch.y, None)[:, 0].tolist() for batch in batches]
        assert len(made) == len(batches) and isinstance(batches, WindowBatches) and len(batches.windows) == 3
        return made

    ranks = [epoch(0, rank) for rank in range(replicas)]
    assert len({len(batches) for batches in ranks}) == 1
    seen = sorted(round(y, 3) for batches in ranks for batch in batches for y in batch)
    every = sorted(dataset.y[dataset.split["train"], 0].tolist())
    if replicas == 1:
        assert seen == every
        assert epoch(0, 0) == ranks[0] != epoch(1, 0)
    else:
        repeated = len(seen) - len(every)  # windows of an odd number of batches
        assert 0 <= repeated <= 3 * SMALL.batch_molecules and set(seen) == set(every)


@pytest.mark.parametrize("damage", [b"PAR1 damaged", None])
def test_a_damaged_shard_is_named(damage: bytes | None, prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared / "store", tmp_path / "store")
    shard = sorted((tmp_path / "store").glob("*.parquet"))[1]
    content = bytearray(shard.read_bytes())
    content[40:400] = bytes(360)  # of the pages, not of the header
    shard.write_bytes(content if damage is None else damage)
    with pytest.raises(InputError, match=rf"{shard.name} cannot be read \(.*\): prepare it again"):
        read(tmp_path, tmp_path / "cache", split_column="part")


@pytest.fixture
def run(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(stored, "WINDOW", 3)

    def run(out: str, *targets: str, **more: Any) -> Any:
        data = DataSettings(str(prepared / "store"), targets or ("y",), split_column="part")
        return train_model(data, SMALL, tmp_path / out, **more)

    return run


@pytest.mark.slow
def test_a_run_killed_between_epochs_goes_on_to_the_same_model(
    run: Callable, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, drawn = WindowBatches.__iter__, iter(range(100))

    def interrupted(self: WindowBatches) -> Iterator[Any]:
        for batch in own(self):
            if next(drawn) == 12:  # an epoch has some eight
                raise KeyboardInterrupt
            yield batch

    with monkeypatch.context() as patch:
        patch.setattr(WindowBatches, "__iter__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("run", report=False)
    assert (tmp_path / "run" / "members" / "0" / "last.ckpt").exists()
    outcome = run("run")
    at_once = run("at once", report=False)
    assert outcome.metrics == at_once.metrics and run("run").was_finished
    models = [gtx.load(tmp_path / name / "model.gtx", device="cpu") for name in ("run", "at once")]
    weights = [model.members[0].state_dict() for model in models]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())
    assert models[0].header.split["train"] == 46 and models[0].header.smiles_column == "smiles"
    rows = pd.read_csv(tmp_path / "run" / "predictions.csv")
    table = pd.read_csv(prepared / "a.csv")
    held = rows[rows["split"] == "test"]
    assert held["row"].tolist() == [i + 1 for i in range(72) if i % 6 == 1]
    assert held["y"].tolist() == table["y"][held["row"] - 1].tolist() and held["y_pred"].notna().all()
    assert any("in scores and report 46 of the 46 training molecules stand for all" in note for note in outcome.notes)
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    with pytest.raises(InputError, match="holds a run with other settings or data"):
        run("run", "high")


def test_a_new_column_is_a_new_target(prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for made in prepared_shards(prepared / "store"):
        frame = pd.read_parquet(made.rows)
        frame.assign(carbons=frame["smiles"].str.upper().str.count("C").astype(float)).to_parquet(made.rows)
    words = ["train", str(prepared / "store"), "--target-columns", "high", "carbons", "--task", "regression"]
    tiny = ["--epochs", "1", "--model-arguments", "channels=8", "layers=1", "--no-report", "--seed", "3"]
    assert main([*words, "--out", str(tmp_path / "run"), *tiny]) == 0
    assert set(json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]["per_target"]) == {"high", "carbons"}
    task = read(prepared, tmp_path, "high", seed=3).task
    assert task.name == "classification"
    made = next(prepared_shards(prepared / "store"))
    rows = pd.read_parquet(made.rows)
    rows.iloc[1:].to_parquet(made.rows)
    with pytest.raises(InputError, match=r"has been changed: 10 rows without an error were expected, got 9"):
        read(prepared, tmp_path)
    rows.to_parquet(made.rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "scaffold"], "--split scaffold needs a table"),
        (["--blend", "kernel"], "--blend kernel needs all training rows in memory"),
        (["--task", "atoms"], "task atoms does not support a store that gtx prepare made: it needs a table"),
    ],
)
def test_what_needs_all_rows_is_refused(
    prepared: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    given = ["train", str(prepared / "store"), "--target-columns", "y", "--out", str(tmp_path / "run"), *words]
    assert main(given) == 2 and message in capsys.readouterr().err
