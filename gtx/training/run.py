"""The folder of a run: its settings, and whether the run may continue."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gtx.errors import InputError
from gtx.files import write_text
from gtx.tasks import Task
from gtx.training.ranks import is_main_process
from gtx.training.settings import TrainSettings

BEFORE = {"coverage": 0.9, "set_kind": "smallest"}
"""What was done before there was such an option."""
MOST_TOLD = 5
"""So many differences are named."""


class RunFolder:
    """`config.yaml`, the settings of the run, and `members/0`, `members/1`, ..., one per model.

    Args:
        path: the folder; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.yaml"

    def open(self, config: dict[str, Any], overwrite: bool = False) -> bool:
        """Begin the run `config`, or go on with it. A run without a single whole epoch is nothing to go on with.

        Args:
            config: plain values that decide the result: settings, data, split, model.
            overwrite: forget what an earlier run left.

        Returns:
            Whether the folder holds this run already, so that it goes on.

        Raises:
            InputError: the folder holds a run of another config; the message names the entries that differ.
        """
        if not is_main_process():
            return True  # the main process has checked; removing things twice would be a race
        config = json.loads(json.dumps(config))  # tuples and the like as YAML gives them back
        if overwrite:
            self._clear()
        if not self.config_file.exists() and self._begun():
            raise InputError(f"{self.path} holds members of a run but no config.yaml; --overwrite starts anew")
        for part in self.path.glob("members/*/.*.part"):  # of a run that was killed while it wrote
            part.unlink(missing_ok=True)
        if begun := self._begun() or self.finished:
            self._compare(config)
        else:
            self._write(config)
        return begun

    @property
    def finished(self) -> bool:
        """Whether `finish` was called."""
        return self._read().get("finished", False) if self.config_file.exists() else False

    def finish(self) -> None:
        """Note in `config.yaml` that every output of the run has been written."""
        if is_main_process():
            self._write({**self._read(), "finished": True})

    def member(self, number: int) -> Path:
        """The folder of one member."""
        return self.path / "members" / str(number)

    def _begun(self) -> bool:
        return any((self.path / "members").glob("*/*"))

    def _compare(self, config: dict[str, Any]) -> None:
        old = self._read()
        old.pop("finished", None)
        differ = differences(old, config)
        if differ:
            raise InputError(
                f"{self.path} holds a run with other settings or data: {'; '.join(differ)}. "
                "Choose another --out, the same settings to go on, or --overwrite to start anew."
            )

    def _read(self) -> dict[str, Any]:
        try:
            config = yaml.safe_load(self.config_file.read_text(encoding="utf-8"))
            return dict(config)
        except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError) as error:
            raise InputError(f"{self.config_file} cannot be read; --overwrite starts anew") from error

    def _write(self, config: dict[str, Any]) -> None:
        plain = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
        write_text(self.config_file, plain)

    def _clear(self) -> None:
        # nothing but what a run writes here: the folder may hold other things of the user's
        self.config_file.unlink(missing_ok=True)
        shutil.rmtree(self.path / "members", ignore_errors=True)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The entries in which two configs differ, each as `settings.lr (0.01 there, 0.02 now)`; of many the first few."""
    there, now = dict(_flat(old)), dict(_flat(new))
    names = [name for name in sorted(there.keys() | now.keys()) if not _agree(there, now, name)]
    told = [f"{name} ({_shown(there, name)} there, {_shown(now, name)} now)" for name in names[:MOST_TOLD]]
    return told + [f"and {len(names) - MOST_TOLD} more"] * (len(names) > MOST_TOLD)


def _agree(old: dict[str, Any], new: dict[str, Any], name: str) -> bool:
    """Whether an entry is the same; an option that there was not yet is one that nobody chose."""
    if name in old and name in new:
        return old[name] == new[name]
    value = old.get(name, new.get(name))
    return value is None or value is False or value in ("none", []) or value == BEFORE.get(name)


def run_config(task: Task, settings: TrainSettings, marks: dict[str, Any]) -> dict[str, Any]:
    """What `config.yaml` says of a run: all that decides its result, and nothing else."""
    return {**task.config(), **marks, "settings": settings.decisive()}


def _flat(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _shown(flat: dict[str, Any], name: str) -> str:
    text = json.dumps(flat[name], ensure_ascii=False) if name in flat else "absent"
    return text if len(text) <= 80 else f"{text[:77]}..."
