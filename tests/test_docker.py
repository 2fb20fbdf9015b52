"""The Dockerfiles: well-formed, pinned, and of files that are there. No image is built."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with its words, lines that go on joined; raises ValueError where a line is none."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            match = re.fullmatch(r"(FROM|RUN|COPY|USER|WORKDIR|ENTRYPOINT|CMD) (\S.*)", line)
            if match is None:
                raise ValueError(f"no instruction: {line}")
            found.append((match[1], match[2]))
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_instruction_is_well_formed_and_pinned(file: Path) -> None:
    steps = instructions(file.read_text())
    names = [name for name, _ in steps]
    assert names[0] == "FROM" and names.count("FROM") == 1
    assert re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+-\S+", steps[0][1])  # an exact version, not latest
    assert names.index("USER") < names.index("ENTRYPOINT")  # not as root
    for name, words in steps:
        if name == "COPY":
            *sources, _ = words.split()
            assert all((ROOT / source).exists() for source in sources)
        if name in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(word, str) for word in json.loads(words))
        if name == "RUN":
            shlex.split(words)  # quotes are closed
            for command in re.findall("pip install [^&]+", words):
                assert "constraints.txt" in command and "--no-cache-dir" in command
            if "apt-get install" in words:
                assert "apt-get update" in words and "--yes" in words and "rm -rf /var/lib/apt/lists" in words


def test_there_is_one_for_the_processor_and_one_for_cuda() -> None:
    assert [file.stem for file in FILES] == ["cpu", "cuda"]
    cpu, cuda = (file.read_text() for file in FILES)
    assert "whl/cpu" in cpu and "whl/cpu" not in cuda


def test_what_is_no_instruction_is_found() -> None:
    with pytest.raises(ValueError, match="no instruction: RNU pip"):
        instructions("FROM a:1\nRNU pip \\\n  install x\n")


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
    pins = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert pins["torch"] == "2.13.0"  # with another, look up what its CUDA build requires
    assert {name: version for name, version in pins.items() if CUDA_BUILD.get(name, version) != version} == {}
    assert pins["triton"] == CUDA_BUILD["triton"]
    for file in ("Makefile", "docker/cuda.Dockerfile"):  # torch by its pin, the rest within the same constraints
        text = (ROOT / file).read_text()
        assert re.search(r"torch==\S*sed -n 's/\^torch==//p' \S*constraints\.txt", text)
        assert re.search(r"(-c|--constraint) \S*constraints\.txt", text) and not re.search(
            "triton|nvidia-[a-z]+=", text
        )
