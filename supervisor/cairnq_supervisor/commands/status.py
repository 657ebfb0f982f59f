"""`cairnq status`: what the supervisor of this host is doing, once or as a live view."""

from __future__ import annotations

import argparse

from cairnq_supervisor.commands.calling import socket_options
from cairnq_supervisor.commands.shape import Commands, command

INTERVAL = 1.0
"""Seconds between two looks of the live view."""


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "status",
        _act,
        does="Show what this host's supervisor, its keeper, its queues and its workers are doing.",
        example="  cairnq status\n  cairnq status --watch\n  cairnq status --json | jq .queues\n",
    )
    parser.add_argument("--watch", action="store_true", help="show it again every second, until Ctrl-C")
    socket_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.live import once, watch

    return watch(options, INTERVAL) if options.watch else once(options)
