"""The command line as a stranger meets it."""

import io
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gtx.cli import load_command, main
from gtx.cli.options import settings_from
from gtx.training_data import load_training_table
from tests.tables import TINY_TRAIN, molecules, read, write, write_molecules
from tests.training.distributed import processes

from .victim import die_after_an_epoch

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run of the command in a process of its own, and its table."""
    folder = tmp_path_factory.mktemp("cli")
    table = write_molecules(folder / "data.csv", 100, "gap")
    words = [sys.executable, "-m", "gtx", "train", table, "--target-columns", "gap", "--units", "gap=eV"]
    words += ["--out", folder / "run", *(word for word in TINY_TRAIN if word != "--no-progress")]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert "test scores" in done.stdout and "rmse eV" in done.stdout and "model.gtx" in done.stdout
    told = ["100 rows: 100 read, 0 errors", "leakage: ", "epoch 1/3: loss", "epoch 3/3: loss", "--no-training-rows"]
    assert sorted(told, key=done.stderr.index) == told  # what is to be said of the data is said before the training
    assert all(done.stderr.count(line) == 1 for line in told)
    return folder


def test_the_same_command_again_says_it_is_finished(folder: Path, capsys) -> None:
    words = ["train", f"{folder}/data.csv", "--target-columns=gap", "--units", "gap=eV", f"--out={folder}/run"]
    words += TINY_TRAIN
    assert main(words) == 0
    assert "finished" in capsys.readouterr().out
    metrics = folder / "run" / "metrics.json"
    before = metrics.read_bytes()
    for damaged in (before[:100], b"[]", b"\xff", b'{"train": {"per_target": 3}}'):
        metrics.write_bytes(damaged)
        assert main(words) == 0 and metrics.read_bytes() == before  # scored anew
    capsys.readouterr()
    assert main([*words, "--lr", "0.01"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gtx: ") and "settings.lr" in error and "Traceback" not in error
    old = folder / "run" / "cache" / "old.safetensors"
    old.touch()
    assert main([*words, "--epochs", "4", "--overwrite"]) == 0
    assert not old.exists() and len(list(old.parent.iterdir())) == 1  # what was read is kept for the next time


def test_info_and_models_also_of_another_width_and_other_characters(folder: Path, capsys, monkeypatch) -> None:
    assert main(["info", str(folder / "run" / "model.gtx")]) == 0
    assert "regression" in (text := capsys.readouterr().out) and "gap (eV)" in text
    assert re.search(r"test scores +gap: rmse [\d.]+ eV, mae [\d.]+ eV, r2 -?[\d.]+ *\n", text)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["info", "foundation"]) == 0
    assert "minimol_19 and 492 more" in (text := " ".join(capsys.readouterr().out.split())) and "minimol_20" not in text
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    assert "(arXiv:2002.08264)" in text and "231,073" in text
    for words in (["models"], ["info", str(folder / "run" / "model.gtx")]):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr("sys.stdout", stream)
        assert main(words) == 0
        stream.flush()
        assert "standard" in stream.buffer.getvalue().decode("ascii")


def test_quiet_leaves_results_and_errors(folder: Path, tmp_path, capsys) -> None:
    model, words = str(folder / "run" / "model.gtx"), ["--quiet", "--out", str(tmp_path / "out.csv")]
    assert main(["predict", model, str(folder / "data.csv"), *words]) == 0
    assert capsys.readouterr() == ("", "") and len(read(tmp_path / "out.csv")) == 100
    assert main(["predict", model, "no.csv", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("gtx: no such file: no.csv")
    assert main(["predict", model, str(folder / "data.csv"), *words[1:]]) == 0
    said = capsys.readouterr().err
    assert "100 rows: 100 read" in said and "gap: rmse" in said and " eV" in said  # the table holds the target


def test_a_public_set_is_known_by_name(tmp_path, monkeypatch) -> None:
    file = tmp_path / "moleculenet" / "bace" / "raw" / "bace.csv"  # its molecules are in a column "mol"
    file.parent.mkdir(parents=True)
    write(file, [[smiles, i % 2] for i, smiles in enumerate(molecules(40)["smiles"])], ["mol", "Class"])
    monkeypatch.setenv("GTX_DATA", str(tmp_path))
    words = ["bace", "--target-columns", "Class", "--out", str(tmp_path / "run"), "--workers=0"]
    dataset = load_training_table(settings_from(vars(load_command("train").parse(words)))[0])
    assert dataset.smiles == molecules(40)["smiles"].tolist() and dataset.y[:, 0].tolist() == [0, 1] * 20


def test_unusable_input_is_one_paragraph_and_exit_2(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    for words, message in (
        (["predict", "no.gtx", "CCO"], "no such file: no.gtx"),
        (["info", "data.csv"], "expected one that gtx train wrote"),
        (["tune", "run", "--target-columns", "gap", "--out", "x"], "run is a folder; a table, which is one file"),
        (["explain", "CCO", "run/model.gtx"], "the model comes first"),
        (["predict", "run/model.gtx", "CCO", "--device=meta"], "device: expected one of cpu, cuda"),
        (["predict", "run/model.gtx", "run/model.gtx"], "run/model.gtx is a model file; a table of molecules was"),
        (["train", "data.csv", "--target-columns", "gap", "--out", "x", "--val", "/dev/zero"], "/dev/zero is no file"),
        (["train", "data.csv", "--out", "x", "--val", "0.1"], "--val: expected a file (--split-sizes sets shares),"),
        (["predict", "run/model.gtx", "dat.csv"], "no such file: dat.csv; did you mean 'data.csv'?"),
        (["train", "esoll", "--out", "x"], "no file 'esoll' and no public data set of that name; did you mean 'esol'?"),
        (["train", "data.csv", "--target-columns", "gap", "--out", "data.csv"], "is a file"),
    ):
        assert main(words + (TINY_TRAIN[1:] if words[0] == "train" else [])) == 2
        error = capsys.readouterr().err
        assert message in error and "Traceback" not in error
        assert error.strip().count("\n\n") == 0


def test_a_killed_run_goes_on_to_the_predictions_of_an_uninterrupted_one(folder: Path, tmp_path) -> None:
    words = ["train", str(folder / "data.csv"), "--target-columns", "gap", *TINY_TRAIN]
    ((status, _),) = processes(tmp_path, partial(die_after_an_epoch, [*words, f"--out={tmp_path / 'killed'}"]))
    assert status == -signal.SIGKILL
    assert (tmp_path / "killed" / "members" / "0" / "last.ckpt").exists()
    assert not (tmp_path / "killed" / "model.gtx").exists()
    for name in ("killed", "whole"):
        assert main([*words, f"--out={tmp_path / name}"]) == 0
    one, other = (tmp_path / name / "predictions.csv" for name in ("killed", "whole"))
    assert one.read_bytes() == other.read_bytes()
