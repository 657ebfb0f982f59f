"""`cairnq check`: what a deploy would run into, before it does. Changes nothing."""

from __future__ import annotations

import argparse

from cairnq_supervisor.commands.shape import Commands, command, database_options


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "check",
        _act,
        does="Check a deploy before it happens. Configuration, application and database: a line for each thing in "
        "order and for each fault. Nothing is changed. The exit code is that of the first fault.",
        example="  cairnq check -c cairnq.toml\n  cairnq check --json | jq '.[] | select(.verdict == \"fault\")'\n",
    )
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.before_deploy import check
    from cairnq_supervisor.commands.serving import answered

    return answered(options, lambda: check(options))
