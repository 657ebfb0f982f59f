"""`cairnq completion SHELL`: the words of the command line, for a shell's tab key."""

from __future__ import annotations

import argparse
import sys

from cairnq_supervisor.commands.shape import Commands, command
from cairnq_supervisor.pure import shells
from cairnq_supervisor.pure.shells import Option, Word

_EXAMPLE = """\
  source <(cairnq completion bash)                     # or into ~/.bashrc
  cairnq completion zsh > "${fpath[1]}/_cairnq"
  cairnq completion fish > ~/.config/fish/completions/cairnq.fish
"""


def add(commands: Commands) -> None:
    def act(options: argparse.Namespace) -> int:
        from cairnq_supervisor.pure.printable import machine_json

        script = shells.SCRIPTS[options.shell](_words(commands))
        sys.stdout.write(machine_json({"script": script}) + "\n" if options.json else script)
        return 0

    parser = command(commands, "completion", act, does="Print a completion script for a shell.", example=_EXAMPLE)
    parser.add_argument(
        "shell", metavar="SHELL", choices=sorted(shells.SCRIPTS), help=", ".join(sorted(shells.SCRIPTS))
    )


def _words(commands: Commands) -> list[Word]:
    """Every command that is registered when the script is asked for, with its options and their choices."""
    summaries = {action.dest: action.help or "" for action in commands._choices_actions}  # noqa: SLF001
    return [Word(name, summaries.get(name, ""), _options(parser)) for name, parser in commands.choices.items()]


def _options(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    return tuple(
        Option(
            tuple(action.option_strings),
            "" if action.help in (None, argparse.SUPPRESS) else str(action.help),
            takes_value=action.nargs != 0,
            choices=tuple(map(str, action.choices or ())),
            is_file=action.dest == "config",
        )
        for action in parser._actions  # noqa: SLF001 - argparse has no public way to ask
        if action.option_strings or action.choices
    )
