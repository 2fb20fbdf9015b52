"""The GELU of MLPs takes batches of ever new shapes without growing."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from gtx.nn.mlp import GELU

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

torch.set_num_threads(1)
for count in range(1, 401):
    GELU()(torch.ones(count, 16, requires_grad=True)).sum().backward()
    if count == 100:
        before = resident()
print((resident() - before) / 2**20)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_shapes() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 15  # MiB
