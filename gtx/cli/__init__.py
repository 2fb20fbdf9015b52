"""The command line: words to calls. Each command is a module with `add(parser)` and `run(arguments)`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import gtx
from gtx.cli.printing import note
from gtx.errors import InputError, did_you_mean
from gtx.termination import Terminated, terminable

COMMANDS = {
    "train": "train a graph transformer on a table of molecules",
    "predict": "predict the molecules of a table with a trained model",
    "serve": "answer requests for predictions, and show a page for people",
    "explain": "draw what is behind one prediction: attention, atoms or substructures, similar molecules",
    "info": "show what a model file holds",
    "adapt": "train a pretrained model further on your molecules, without labels",
    "prepare": "read molecules once, for trainings on more of them than fit into memory",
    "tune": "search for settings that are better than the defaults, on your table",
    "benchmark": "compare gtx with ridge and a random forest on your table, by cross-validation",
    "demo": "train on the molecules that come with gtx, and see all results",
    "models": "list the architectures",
}
RESUMED = ("train", "tune", "adapt", "benchmark", "demo")

EXAMPLES = """
examples:
  gtx demo
  gtx train examples/solvation.csv --target-columns dG_water --out run/
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx "CCO"
  gtx explain run/model.gtx "CCO" --out figure.svg
  gtx benchmark examples/solvation.csv --target-columns dG_water --out bench/
  gtx tune examples/solvation.csv --target-columns dG_water --hours 1 --out study/

gtx COMMAND --help explains a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0, 2 where the input is at fault, 130 after Ctrl-C, 143 after SIGTERM."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _share_cores()
    command = next(iter(words), "")
    goes_on = "; the same command goes on where it stopped" * (command in RESUMED)
    try:
        with terminable():
            if command not in COMMANDS:
                return _refuse_or_help(command)
            return _run(command, words[1:]) or 0
    except InputError as error:
        # before processes that torchrun has started know of each other, all make the same mistake: the first says it
        if error.speaks_for_all or "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0":
            note(f"gtx: {error}")
        return 2
    except (KeyboardInterrupt, Terminated) as end:
        word, status = ("terminated", end.code) if isinstance(end, Terminated) else ("interrupted", 130)
        if _speaks():
            print(f"\ngtx: {word}{goes_on}", file=sys.stderr)
        return status
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a folder that cannot be made, a full disk
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        note(f"gtx: {error.filename or 'writing'}: {error.strerror or error}{goes_on * full}")
        return 2


def _speaks() -> bool:
    """Whether this process is the only one of the command, or the first of several that train together."""
    if "pytorch_lightning" not in sys.modules:
        return True
    from gtx.training import is_main_process

    return is_main_process()


def _share_cores() -> None:
    """Where another program wants a core, torch's threads are to sleep and not to spin; before torch is imported.

    GNU OpenMP's threads wait 300,000 turns for each other before they sleep: on an idle machine that is little quicker
    than 3,000, on a busy one we have seen it slow training a hundredfold.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")


def _run(command: str, words: Sequence[str]) -> int | None:
    """Only the command that is called is imported, to keep `gtx --help` immediate."""
    from gtx.cli.parser import Parser

    module, about = import_module(f"gtx.cli.{command}"), COMMANDS[command]
    parser = Parser(f"gtx {command}", description=f"{about[0].upper()}{about[1:]}.")
    module.add(parser)
    return module.run(parser.parse_args(words))


def _refuse_or_help(word: str) -> int:
    """What is to be done about a first word that is no command: an option of gtx itself, or a mistake."""
    from gtx.cli.parser import Parser

    if word and not word.startswith("-"):
        raise InputError(f"there is no command {word!r}{did_you_mean(word, COMMANDS)} (gtx --help)")
    parser = Parser(
        "gtx",
        usage="gtx COMMAND ...",
        description="Graph transformers for molecules: from a CSV to honest predictions.",
        epilog="\n".join(["commands:", *(f"  {name:<11}{about}" for name, about in COMMANDS.items()), EXAMPLES]),
    )
    parser.add_argument(
        "--version", action="version", version=f"gtx {gtx.__version__}", help="show the version and exit"
    )
    parser.parse_args([word] * bool(word))  # ends after --help and --version
    parser.print_help()
    return 0
