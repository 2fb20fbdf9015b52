"""Tasks on molecules: what is learned from is not what is asked, and what is written is judged rightly."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import archive
from experiments.sequence import hydrolysis, language, molecules, smiles
from experiments.sequence.hydrolysis_rule import products
from experiments.sequence.judging import canonical, judge, tally
from experiments.sequence.results_page import sequence_page
from experiments.sequence.running import Setting, kept, publish

ALANINE = "C[C@H](N)C(=O)O"
SMALL = Setting(
    {"channels": 16, "layers": 1, "heads": 2, "encoder": {"layers": 1}, "dropout": 0.0, "attention_dropout": 0.0},
    {"epochs": 2, "seed": 0, "threads": 1, "accelerator": "cpu", "progress": False, "batch_molecules": 4},
)
TEXTS = ["CCO", "CCN", "CC=O", "CCC", "CC(C)O", "CCCO", "OCCO", "CNC", "COC", "C#N"]


def test_a_molecule_is_the_same_however_it_is_written() -> None:
    assert judge("OC(=O)[C@@H](N)C", ALANINE) == judge("C[C@H](N)C(O)=O", ALANINE) == "same"
    assert judge("C[C@@H](N)C(=O)O", ALANINE) == judge("CC(N)C(=O)O", ALANINE) == "other stereochemistry"
    assert judge("CC(N)CC(=O)O", ALANINE) == "another molecule"
    assert judge("C[C@H](N)C(=O", ALANINE) == judge("", ALANINE) == judge("CC(C)(C)(C)C", ALANINE) == "invalid"
    assert judge("O.CO", "CO.O") == "same" and judge("O", "O.O") == "another molecule"


def test_a_tally_hides_nothing() -> None:
    found = tally(["same", "same", "other stereochemistry", "invalid"])
    assert found == {"rows": 4, "same": 0.5, "same_constitution": 0.75, "invalid": 1}


def test_mirror_images() -> None:
    assert smiles.mirrored(canonical(ALANINE)) == canonical("C[C@@H](N)C(=O)O")
    assert smiles.mirrored("C/C=C/C") == "C/C=C/C" and smiles.mirrored("CCO") == "CCO"


def test_grown_molecules_share_no_constitution_with_forbidden_ones() -> None:
    free = list(smiles.grown(60, []))
    assert any("@" in each for each in free) and all(canonical(each) == each for each in free)
    forbidden = [smiles.mirrored(each) for each in free[:20]]
    fewer = list(smiles.grown(60, forbidden))
    assert 0 < len(fewer) < len(free)
    assert not {canonical(each, False) for each in fewer} & {canonical(each, False) for each in forbidden}


@pytest.mark.parametrize("name", ["xtb9", "zinc12k"])
def test_what_is_made_is_not_what_is_asked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    esters = [canonical(f"{'C' * i}[C@H](F)OC(=O){'C' * j}") for i in range(2, 8) for j in range(1, 6)]
    parts = {"train": esters[:20], "val": esters[20:25], "test": [*esters[25:], "CCO"]}
    monkeypatch.setattr(smiles, "spelled", lambda name: parts)
    monkeypatch.setattr(smiles, "GROWN", 30)
    monkeypatch.setattr(smiles, "CONDENSED", 10)
    task = smiles.task(name, tmp_path)
    held = {read for read, _ in (*task.val, *task.test)}
    assert len(held) == 11 and not held & {read for read, _ in (*task.train, *task.first)}
    assert {*parts["train"], *map(smiles.mirrored, parts["train"])} <= {read for read, _ in task.train}
    assert task.kinds == [smiles.STEREO] * 5 + [smiles.FLAT] and bool(task.first) == (name == "zinc12k")
    assert all(read == write for read, write in (*task.train, *task.test))


def test_condensed_molecules_fall_apart_again() -> None:
    answers = ["CC(=O)O.Nc1ccccc1", "O=C(O)c1ccco1.OCC1CC1"]
    made = list(hydrolysis.condensed(answers, 4, seed=0))
    parts = {part for answer in answers for part in answer.split(".")}
    assert len(set(made)) == 4 and all(set(products(each).split(".")) <= parts for each in made)


def test_what_is_held_out_is_not_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    esters = [f"{'C' * i}OC(=O){'C' * j}" for i in range(1, 6) for j in range(1, 6)]
    monkeypatch.setattr(hydrolysis, "pool", lambda: dict.fromkeys(map(canonical, esters), "set"))
    monkeypatch.setattr(hydrolysis, "TEST", 5)
    monkeypatch.setattr(hydrolysis, "VAL", 5)
    task = hydrolysis.task(20, tmp_path)
    held = {read for read, _ in (*task.val, *task.test)}
    assert len(held) == 10 and len(task.train) >= 15 and not held & {read for read, _ in task.train}
    assert all(products(read) == write for read, write in (*task.train, *task.val, *task.test))


def test_a_run_is_scored_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(text, text) for text in TEXTS]
    task = molecules.MoleculePairs(pairs[:6], pairs[6:8], [*pairs[:2], ("CCBr", "CCBr")], ["a", "a", "b"])
    found = molecules.train_and_write(task, SMALL, tmp_path)
    assert found["rows"] == {"first": 0, "train": 6, "val": 2, "test": 3} and len(found["history"]) == 2
    assert found["test"]["rows"] == 3 and found["test_by_kind"]["b"]["same"] == 0  # Br is not in the vocabulary
    assert len(found["test_wrong"]) == 3 - round(3 * found["test"]["same"])
    (log,) = tmp_path.glob("*/members/0/log.csv")
    trained = log.stat().st_mtime_ns
    again = molecules.train_and_write(task, SMALL, tmp_path)
    assert log.stat().st_mtime_ns == trained and again["test"] == found["test"]
    molecules.train_and_write(task, replace(SMALL, smoothing=0.1), tmp_path)
    assert len(list(tmp_path.glob("*/members/0/log.csv"))) == 2  # another setting is another run


def test_small_molecules_come_first(tmp_path: Path) -> None:
    pairs = [(text, text) for text in TEXTS]
    task = molecules.MoleculePairs(pairs[:4], pairs[6:8], pairs[8:], ["a", "a"], first=[*pairs[4:6], ("CBr", "CBr")])
    found = molecules.train_and_write(task, SMALL, tmp_path)
    assert found["rows"]["first"] == 3 and len(found["first"]["history"]) == 1 and len(found["history"]) == 2
    spent = [{"seconds": each, "cpu_seconds": each / 2, "history": []} for each in (3.0, 4.0)]
    assert molecules.after(*spent).items() >= {"seconds": 7.0, "cpu_seconds": 3.5}.items()
    logs = {log: log.stat().st_mtime_ns for log in tmp_path.glob("*/members/0/log.csv")}
    assert len(logs) == 2 and molecules.train_and_write(task, SMALL, tmp_path)["test"] == found["test"]
    assert logs == {log: log.stat().st_mtime_ns for log in tmp_path.glob("*/members/0/log.csv")}


def test_a_language_model_writes_and_is_counted(tmp_path: Path) -> None:
    network = {"channels": 16, "layers": 1, "heads": 2, "dropout": 0.0, "attention_dropout": 0.0}
    found = language.train_and_sample(
        {"train": TEXTS, "val": TEXTS[:2]}, replace(SMALL, network=network), tmp_path, count=20
    )
    assert found["samples"] == 20 and 0 <= found["valid"] <= 1
    counted = language.counted(["OCC", "CCO", "C(", "CCN", "CCCl"], ["CCO"])
    assert (counted["valid"], counted["unique"], counted["novel"]) == (4 / 5, 3 / 4, 2 / 3)
    assert counted["invalid_examples"] == ["C("] and counted["new_examples"] == ["CCN", "CCCl"]
    assert language.counted(["("], [])["unique"] is None


def test_lines_are_made_once(tmp_path: Path) -> None:
    file = tmp_path / "a" / "lines.smi"
    assert kept(file, lambda: iter(["C", "CC"])) == ["C", "CC"] == kept(file, lambda: 1 / 0)


def test_the_page_has_every_run_with_its_command(tmp_path: Path) -> None:
    pairs = [(text, text) for text in TEXTS]
    found = molecules.train_and_write(
        molecules.MoleculePairs(pairs[:6], pairs[6:8], pairs[8:], ["a", "b"]), SMALL, tmp_path / "runs"
    )
    read = argparse.Namespace(epochs=2, rows=None, seed=0, threads=1, out=tmp_path / "results")
    publish("smiles-xtb9", "smiles --set xtb9", {"xtb9": found}, read)
    written = sequence_page(read.out)
    assert "`python -m experiments.sequence.smiles --set xtb9 --epochs 2 --seed 0 --threads 1`" in written
    assert "(sequence/smiles-xtb9.svg)" in written and (read.out / "sequence" / "smiles-xtb9.svg").exists()
    assert f"| xtb9 | {found['test']['same']:.1%} |" in written and "| b |" in written
    (kept_run,) = archive.runs(read.out, "sequence")
    assert {"commit", "versions", "machine"} <= kept_run.keys() and found.items() <= kept_run.items()
