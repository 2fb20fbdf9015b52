"""A page of options for each command, made from its options."""

from __future__ import annotations

import html

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gtx.cli import list_commands, load_command


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
        text = html.escape(" ".join(each.about().split()), quote=False)
        groups.setdefault(each.group, []).append(f"`{each.invocation()}`\n:   {text}")
    return "\n\n".join("\n\n".join([f"## {title[0].upper()}{title[1:]}", *terms]) for title, terms in groups.items())
