"""A page of options for each command, made from the parsers themselves."""

from __future__ import annotations

import html

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gtx.base.annexes import additions
from gtx.cli import COMMANDS, command_module
from gtx.cli.parser import Parser


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `commands.md`, a list of the commands, and a page for each, with a list per group of options."""
    commands = COMMANDS | {name: module.ABOUT for name, module in additions("commands").items()}
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
    groups = []
    for title, options in parser.groups.items():
        terms = [
            f"`{each.invocation()}`\n:   {html.escape(' '.join(each.about().split()), quote=False)}" for each in options
        ]
        groups.append("\n\n".join([f"## {title[0].upper()}{title[1:]}", *terms]))
    return "\n\n".join(groups)
