"""The work of `cairnq status`: one look, or one after another with what was done between them."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any

from cairnq_supervisor.commands.answer import Answer
from cairnq_supervisor.commands.calling import ask
from cairnq_supervisor.commands.overview import overview
from cairnq_supervisor.commands.serving import answered
from cairnq_supervisor.pure.requests import Status

_HOME_AND_CLEAR = "\x1b[H\x1b[J"


def once(options: argparse.Namespace) -> int:
    return answered(options, lambda: _look(options, None, 0.0)[1])


def watch(options: argparse.Namespace, interval: float) -> int:
    """Until Ctrl-C, or until the supervisor has gone. A pipe gets one look after another."""
    before: dict[str, Any] | None = None
    looked_at, code = time.monotonic(), 0

    def look() -> Answer:
        """Asked first, so that the old picture stands until there is a new one."""
        nonlocal before, looked_at
        since, looked_at = looked_at, time.monotonic()
        height = shutil.get_terminal_size().lines if sys.stdout.isatty() else None
        before, answer = _look(options, before, looked_at - since, height)
        if height is not None:
            sys.stdout.write(_HOME_AND_CLEAR)
        return answer

    try:
        while code == 0:
            code = answered(options, look)
            if code == 0:
                time.sleep(interval)
    except KeyboardInterrupt:
        return 0
    return code


def _look(
    options: argparse.Namespace, before: dict[str, Any] | None, elapsed: float, height: int | None = None
) -> tuple[dict[str, Any], Answer]:
    report = ask(options, Status())
    return report, Answer(report, overview(report, before, elapsed, height=height))
