"""The title of this process: what `ps` and `top` show of it."""

from __future__ import annotations

import setproctitle

from cairnq_supervisor.pure.printable import clip, printable

_LONGEST = 200
"""Columns: a queue's name may have any length."""


def show_title(title: str) -> None:
    setproctitle.setproctitle(clip(printable(title), _LONGEST))
