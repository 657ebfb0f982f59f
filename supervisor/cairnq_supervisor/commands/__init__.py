"""What an operator types beside `run`: one file a command, over the client and the checks. Nothing here forks."""

from __future__ import annotations

import argparse

from cairnq_supervisor.commands import (
    cancel,
    check,
    completion,
    doctor,
    get,
    init,
    listing,
    migrate,
    purge,
    retry,
    roles,
    stats,
    status,
    steering,
    submit,
    torture,
)
from cairnq_supervisor.commands.shape import Commands

_SETTING_UP = (init, check, doctor, migrate, roles)
_QUEUE = (submit, get, listing, stats, cancel, retry, purge)
_SUPERVISOR = (status, steering)
_ALL = (*_SETTING_UP, *_QUEUE, *_SUPERVISOR, completion, torture)


def add_to(commands: Commands) -> None:
    """Register every command. A chosen one is `options.act(options)`, which returns the exit code."""
    for module in _ALL:
        module.add(commands)


def chosen(options: argparse.Namespace) -> bool:
    """Whether the command line named one of these."""
    return hasattr(options, "act")
