"""What every room uses: errors, files, signals, compiled loops, and what annexes add to gtx.

Annexes are packages, of gtx or others, that add commands, tasks, models and featurisers by entry points.

An annex is known by the section `[project.entry-points."gtx.GROUP"]` of its `pyproject.toml` alone. The groups:

- `gtx.commands`: the module of a command, with `ABOUT`, `USAGE`, `EXAMPLES`, `NOTES`, `OPTIONS` and `run(arguments)`;
- `gtx.tasks`: a `gtx.settings.TaskEntry`;
- `gtx.models`: a `gtx.models.Architecture`;
- `gtx.featurisers`: a function with the arguments and the results of `gtx.molecules.perception.featurise_with_rdkit`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from gtx.base.errors import InputError


@cache
def additions(group: str) -> dict[str, Any]:
    """Load what the annexes add to a group, by name; an annex whose folder was deleted adds nothing.

    Args:
        group: such as "commands".

    Raises:
        InputError: an annex cannot be imported.
    """
    loaded = {}
    for entry in sorted(entry_points(group=f"gtx.{group}")):
        try:
            loaded[entry.name] = entry.load()
        except ModuleNotFoundError as missing:
            if not f"{entry.module}.".startswith(f"{missing.name}."):
                raise InputError(f"{entry.value}, an annex of gtx, needs {missing.name}, which is missing") from None
    return loaded
