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
