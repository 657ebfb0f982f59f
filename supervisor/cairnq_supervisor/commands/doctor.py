"""`cairnq doctor`: what is not well on a running system, a line each with what to do."""

from __future__ import annotations

import argparse

from cairnq_supervisor.commands.shape import Commands, command, database_options


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "doctor",
        _act,
        does="Examine a running system. Database, notifications, vacuum, limits and time-outs: a line for each, with "
        "what to do. The exit code is that of the first fault.",
        example="  cairnq doctor -c /etc/cairnq/shop.toml\n  kubectl exec deploy/cairnq -- cairnq doctor --json\n",
    )
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.examination import examine
    from cairnq_supervisor.commands.serving import answered

    return answered(options, lambda: examine(options))
