"""`gtx train` with conformers, and on a full disk."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import gtx
from gtx.cli import main
from tests.tables import TINY_TRAIN, molecules, read, write, write_molecules

IMPOSSIBLE = "C[C@]12C[C@@]1(C)C2"  # centres that no cage of this kind can have
REASON = f'row 5, column "smiles", value "{IMPOSSIBLE}": no conformer could be made: ETKDG gave up'


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("conformers")
    rows = molecules(40)[["smiles", "gap"]].to_numpy().tolist()
    rows[4][0] = IMPOSSIBLE
    write(folder / "data.csv", rows, ["smiles", "gap"])
    words = ["train", str(folder / "data.csv"), "--target-columns", "gap", "--out", str(folder / "run"), "--workers=0"]
    assert main([*words, "--conformers", *TINY_TRAIN]) == 0
    return folder


def test_prediction_makes_conformers_unasked_and_a_failed_one_keeps_its_row_and_says_why(folder, tmp_path) -> None:
    trained = read(folder / "run" / "predictions.csv")
    assert [i for i, row in enumerate(trained) if "conformer" in row["warning"]] == [4]
    assert trained[4]["warning"].startswith(REASON) and all(row["gap_pred"] and not row["error"] for row in trained)
    model = gtx.load(folder / "run" / "model.gtx")
    assert model.header.featuriser.conformers and model.header.model["arguments"]["coordinates"]
    frame = model.predict(["CCO", "OCC", IMPOSSIBLE])
    assert frame["gap_pred"].notna().all() and frame["error"].isna().all()
    assert frame["gap_pred"][0] == pytest.approx(frame["gap_pred"][1], abs=1e-4)
    assert frame["warning"].isna().tolist() == [True, True, False]
    assert frame["warning"][2].startswith("no conformer could be made")
    words = [str(folder / "run" / "model.gtx"), str(folder / "data.csv"), "--out", str(tmp_path / "out.csv")]
    assert main(["predict", *words]) == 0
    again = read(tmp_path / "out.csv")
    assert again[4]["warning"].startswith(REASON)
    assert [float(row["gap_pred"]) for row in again] == pytest.approx([float(row["gap_pred"]) for row in trained], 1e-4)


# --- A disk that is full: one line, no half file, and the same command goes on once there is room.


@contextmanager
def room(kilobytes: int) -> Iterator[None]:
    """No file may be larger within; the system then fails a write as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_training_goes_on_when_there_is_room_again(tmp_path, capsys) -> None:
    table, out = write_molecules(tmp_path / "data.csv", 60, "gap"), tmp_path / "run"
    words = ["train", str(table), "--target-columns=gap", "--workers=0", f"--out={out}", *TINY_TRAIN]
    for kilobytes, file in ((1, "cache/*.safetensors"), (100, "members/0/last.ckpt")):
        with room(kilobytes):
            assert main(words) == 2
        said = capsys.readouterr().err.splitlines(keepends=True)[-1]
        named, reason = said.removeprefix("gtx: ").rsplit(": ", 1)
        assert Path(named).match(str(out / file)), said
        assert reason == "File too large; run the same command again to resume\n"
        with room(kilobytes):
            assert main([*words, "--overwrite"]) == 2
        assert capsys.readouterr().err.endswith("; run the same command without --overwrite again to resume\n")
        assert not list(out.rglob("*.part"))
    assert main(words) == 0
