"""A page of options for each command, made from the parsers themselves."""

from __future__ import annotations

import argparse
import html

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gtx.cli import COMMANDS, annexes, command_module
from gtx.cli.parser import Parser


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `commands.md`, a list of the commands, and a page for each, with a list per group of options."""
    commands = COMMANDS | {name: module.ABOUT for name, module in annexes().items()}
    rows = [f"| [`gtx {name}`](commands/{name}.md) | {about} |" for name, about in commands.items()]
    head = "# Commands\n\n`gtx COMMAND --help all` prints the same options.\n\n| command | |\n|---|---|\n"
    files.append(File.generated(config, "commands.md", content=head + "\n".join(rows)))
    for name, about in commands.items():
        text = f"# gtx {name}\n\n{about[0].upper()}{about[1:]}.\n\n{_options(name)}"
        files.append(File.generated(config, f"commands/{name}.md", content=text))
    return files


def _options(command: str) -> str:
    parser = Parser(f"gtx {command}")
    command_module(command).add(parser)
    formatter = parser._get_formatter()
    groups = []
    for group in parser._action_groups:
        terms = [
            f"`{_names(action, formatter)}`\n:   {_meaning(action, formatter)}"
            for action in group._group_actions
            if action.help not in (None, argparse.SUPPRESS)
        ]
        if terms:
            groups.append("\n\n".join([f"## {_title(group.title)}", *terms]))
    return "\n\n".join(groups)


def _title(title: str | None) -> str:
    words = title or "options"
    return words[0].upper() + words[1:]


def _names(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    value = formatter._format_args(action, action.metavar or (action.dest or "").upper()) if action.nargs != 0 else ""
    return " ".join(filter(None, (", ".join(action.option_strings), value)))


def _meaning(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    return html.escape(" ".join(formatter._expand_help(action).split()), quote=False)
