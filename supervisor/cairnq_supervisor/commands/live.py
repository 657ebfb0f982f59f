"""The work of `cairnq status`: one look, or one after another with what was done between them."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

from cairnq_supervisor.commands.answer import Answer
from cairnq_supervisor.commands.calling import ask
from cairnq_supervisor.commands.overview import overview
from cairnq_supervisor.commands.serving import INTERRUPTED, answered, answered_in_turn
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.requests import Status

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def once(options: argparse.Namespace) -> int:
    return answered(options, lambda: _look(options, None, 0.0)[1])


def watch(options: argparse.Namespace, interval: float) -> int:
    """Until Ctrl-C, or until the supervisor or the reader has gone."""
    code = answered_in_turn(options, _looks(options, interval))
    return Exit.OK if code == INTERRUPTED else code


def _looks(options: argparse.Namespace, interval: float) -> Iterator[Answer]:
    """A terminal gets one in the place of the other; a pipe, a dumb terminal and a program one after another."""
    before: dict[str, Any] | None = None
    looked_at = time.monotonic()
    on_screen = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not options.json
    while True:
        since, looked_at = looked_at, time.monotonic()
        height = shutil.get_terminal_size().lines if on_screen else None
        # Asked first, so that the old picture stands until there is a new one.
        report, answer = _look(options, before, looked_at - since, height)
        if on_screen:
            sys.stdout.write(_HOME_AND_CLEAR)
        elif before is not None and not options.json:
            sys.stdout.write("\n")
        yield answer
        before = report
        time.sleep(interval)


def _look(
    options: argparse.Namespace, before: dict[str, Any] | None, elapsed: float, height: int | None = None
) -> tuple[dict[str, Any], Answer]:
    report = ask(options, Status())
    return report, Answer(report, overview(report, before, elapsed, height=height))
