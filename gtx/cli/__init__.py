"""The command line `gtx`. Each command is a module with `USAGE`, `EXAMPLES`, `NOTES`, `OPTIONS` and `run(arguments)`.

An annex adds a command by an entry point of the group `gtx.commands`, see `gtx.base`: a module that also
defines `ABOUT`, the text about the command in `gtx --help`.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import gtx
from gtx.base import additions
from gtx.base.errors import InputError, Terminated, did_you_mean, raise_on_sigterm
from gtx.cli.printing import prepare, say

if TYPE_CHECKING:
    from gtx.cli.parser import Command

COMMANDS = {
    "train": "train a graph transformer on a table of molecules",
    "predict": "predict the molecules of a table with a trained model",
    "explain": "draw what is behind one prediction: attention, atoms or substructures, similar molecules",
    "info": "show what a model file holds",
    "tune": "search for settings that are better than the defaults, on your table",
    "benchmark": "compare gtx with simple models on your table, by cross-validation",
    "demo": "train a first model on an example table, and predict another",
    "models": "list the architectures",
}
"""The commands of the core."""
RESUMED = ("train", "tune", "benchmark", "demo")

EXAMPLES = """
examples:
  gtx demo
  gtx train examples/solvation.csv --target-columns dG_water --out run/
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx "CCO"
  gtx explain run/model.gtx "CCO" --out figure.svg
  gtx benchmark examples/solvation.csv --target-columns dG_water --out bench/
  gtx tune examples/solvation.csv --target-columns dG_water --hours 1 --out study/

gtx --version prints the version; gtx COMMAND --help explains a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0, 2 where the input is at fault, 130 after Ctrl-C, 143 after SIGTERM."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # PyG's import calls torch.jit.script; from torch 2.14 on that is a warning to users, who can do nothing about it
    warnings.filterwarnings("ignore", r".torch\.jit\.script. is deprecated", FutureWarning)
    # GNU OpenMP's threads wait 300,000 turns for each other before they sleep: on an idle machine little quicker
    # than 3,000, on a busy one we have seen it slow training a hundredfold; torch reads this at its import
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # a terminal that knows only ASCII shows other characters as ?
    command = next(iter(words), "")
    same = "the same command without --overwrite" if "--overwrite" in words else "the same command"
    resumable = f"; run {same} again to resume" if command in RESUMED else ""
    try:
        with raise_on_sigterm():
            return _run(command, words[1:])
    except InputError as error:
        # before processes that torchrun has started know of each other, all make the same mistake: the first says it
        if error.reports_for_all or "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0":
            say(f"gtx: {error}", sys.stderr)
        return 2
    except (KeyboardInterrupt, Terminated) as end:
        word, status = ("terminated", end.status) if isinstance(end, Terminated) else ("interrupted", 130)
        if "pytorch_lightning" in sys.modules:
            from gtx.training.processes import is_main_process

            if not is_main_process():  # of several that train together, one prints
                return status
        print(f"\ngtx: {word}{resumable}", file=sys.stderr)
        return status
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a folder that cannot be made, a full disk
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            resumable = ""
        say(f"gtx: {error.filename or 'writing'}: {error.strerror or error}{resumable}", sys.stderr)
        return 2


@contextmanager
def importing() -> Iterator[None]:
    """Leave garbage alone while packages are imported: their million objects stay, and to look through them takes 1 s.

    Until the end of the process, Python does not look through them again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load_command(name: str) -> Command:
    """Import the module of a command, and no other, so that its help is fast.

    Raises:
        InputError: there is no such command.
    """
    from gtx.cli.parser import Command

    if name in COMMANDS:
        module, about = import_module(f"gtx.cli.{name}"), COMMANDS[name]
    elif name in additions("commands"):
        module = additions("commands")[name]
        about = module.ABOUT
    else:
        raise InputError(f"there is no command {name!r}{did_you_mean(name, list_commands())} (gtx --help)")
    return Command(f"gtx {name}", f"{about[0].upper()}{about[1:]}.", module)


def list_commands() -> dict[str, str]:
    """List the commands, also those of annexes, with what each does."""
    return COMMANDS | {name: module.ABOUT for name, module in additions("commands").items()}


def _run(name: str, words: Sequence[str]) -> int:
    """Run a command, or print the help or the version of gtx."""
    if name == "--version":
        print(f"gtx {gtx.__version__}")
        return 0
    if name in ("", "-h", "--help"):
        print("usage: gtx COMMAND ...\n\nGraph transformers for molecules: from a CSV to honest predictions.\n")
        print("\n".join(["commands:", *(f"  {command:<11}{about}" for command, about in list_commands().items())]))
        print(EXAMPLES)
        return 0
    if name.startswith("-"):
        raise InputError(f"unknown option {name}{did_you_mean(name, ('--help', '--version'), str)} (gtx --help)")
    command = load_command(name)
    arguments = command.parse(words)
    options = [option for option in command.options if option.flag]
    flags = {name: option.flag for option in options for name in (option.name, option.entry)}
    prepare(arguments.quiet, flags)
    return command.module.run(arguments)
