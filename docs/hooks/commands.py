"""A page of options for each command, made from its options."""

from __future__ import annotations

import html
from argparse import ArgumentParser, RawTextHelpFormatter
from functools import partial

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gtx.cli import list_commands, load_command
from gtx.cli.parser import Option


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `commands.md`, a list of the commands, and a page for each, with a list per group of options."""
    commands = list_commands()
    rows = [f"| [`gtx {name}`](commands/{name}.md) | {about} |" for name, about in commands.items()]
    head = "# Commands\n\n`gtx COMMAND --help all` prints the same options.\n\n| command | |\n|---|---|\n"
    files.append(File.generated(config, "commands.md", content=head + "\n".join(rows)))
    for name, about in commands.items():
        text = f"# gtx {name}\n\n{about[0].upper()}{about[1:]}.\n\n{_options(name)}"
        files.append(File.generated(config, f"commands/{name}.md", content=text))
    return files


def _options(name: str) -> str:
    groups: dict[str, list[str]] = {}
    for each in load_command(name).options:
        invocation, *text = _help_lines(each)
        about = html.escape(" ".join(text), quote=False)
        groups.setdefault(each.group, []).append(f"`{invocation}`\n:   {about}")
    return "\n\n".join("\n\n".join([f"## {title[0].upper()}{title[1:]}", *terms]) for title, terms in groups.items())


def _help_lines(option: Option) -> list[str]:
    """List the lines of an option in the help: the option with its value, then the text."""
    shape = partial(RawTextHelpFormatter, max_help_position=4, width=10_000)
    parser = ArgumentParser(add_help=False, formatter_class=shape)
    option.add_to(parser.add_argument_group("entry").add_argument, 9_000)
    return [line.strip() for line in parser.format_help().partition("entry:\n")[2].splitlines()]
