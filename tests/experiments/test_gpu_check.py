"""What a GPU is asked in one call runs on a processor as far as it can, and says where it cannot."""

import json
from pathlib import Path

import pytest
import torch

from experiments import gpu_check

pytestmark = pytest.mark.slow


def results(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("phase", gpu_check.PHASES)
def test_a_phase_runs_on_a_processor(phase: str, tmp_path) -> None:
    note = gpu_check.Notes(tmp_path / "results.jsonl", phase)
    gpu_check.PHASES[phase](note, torch.device("cpu"), quick=True)
    found = results(tmp_path)
    assert found and not [line for line in found if "failed" in line]
    if phase == "step":
        assert found[0]["refused"] is None
    if phase == "train":
        assert found[-1]["repeated, largest difference of a weight"] == 0 == found[-1]["resumed"]
    if phase == "kernels":
        assert "a GPU" in found[-1]["needs"]


def test_a_failure_is_a_result(tmp_path) -> None:
    gpu_check.Notes(tmp_path / "results.jsonl", "step").attempt("division", lambda: 1 / 0)
    assert results(tmp_path)[0]["failed"] == "ZeroDivisionError: division by zero"
