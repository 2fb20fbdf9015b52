"""What a GPU is asked in one call runs on a processor as far as it can, and says where it cannot."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from experiments import gpu_check


def results(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("phase", gpu_check.PHASES)
def test_a_phase_runs_on_a_processor(phase: str, tmp_path: Path) -> None:
    note = gpu_check.Notes(tmp_path / "results.jsonl", phase)
    gpu_check.PHASES[phase](note, torch.device("cpu"), quick=True)
    found = results(tmp_path)
    assert found and not [line for line in found if "failed" in line]
    if phase == "step":
        assert {"refused": None}.items() <= found[0].items()
    if phase == "train":
        assert found[-1]["repeated, largest difference of a weight"] == 0 == found[-1]["resumed"]
    if phase in ("environment", "step", "kernels", "tests"):
        assert "a GPU" in found[-1]["needs"]


def test_a_phase_that_fails_or_takes_too_long_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note = gpu_check.Notes(tmp_path / "results.jsonl", "step")
    assert note.attempt("division", lambda: 1 / 0) is None
    assert results(tmp_path)[0]["failed"] == "ZeroDivisionError: division by zero"
    assert sum(gpu_check.LIMITS.values()) < 600
    monkeypatch.setattr(gpu_check, "LIMITS", {"environment": 0.1, "kernels": 0.2})
    begun = time.time()
    gpu_check.main(["--out", str(tmp_path / "new"), "--device", "cpu", "--phases", "environment", "kernels"])
    assert time.time() - begun < 60
    found = results(tmp_path / "new")
    assert next(line["ended"] for line in found if "ended" in line) == "killed at its time limit"
    assert capsys.readouterr().out.splitlines() == [json.dumps(line) for line in found]
