"""The pins of constraints.txt agree with what the CUDA build of torch requires."""

from pathlib import Path

CUDA_BUILD = {
    "cuda-toolkit": "13.0.3",
    "nvidia-cudnn-cu13": "9.20.0.48",
    "nvidia-cusparselt-cu13": "0.8.1",
    "nvidia-nccl-cu13": "2.29.7",
    "nvidia-nvshmem-cu13": "3.4.5",
    "triton": "3.7.1",
}
"""What the CUDA build of torch 2.13.0 requires by exact version, from its metadata on PyPI (`Requires-Dist`). The build
for processors requires none of it, so that pins at odds with this go unnoticed where that one is installed."""


def test_the_pins_install_with_the_cuda_build_of_torch() -> None:
    lines = (Path(__file__).parents[1] / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    assert pins["torch"] == "2.13.0"  # with another, look up what its CUDA build requires
    assert {name: version for name, version in pins.items() if CUDA_BUILD.get(name, version) != version} == {}
    assert pins["triton"] == CUDA_BUILD["triton"]
