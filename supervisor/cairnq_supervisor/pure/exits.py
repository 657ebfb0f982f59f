"""Exit codes: the sysexits that systemd and people know."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FAILED = 1  # not found, or the task that was waited for failed
    USAGE = 64  # the command line
    UNAVAILABLE = 69  # no worker of the first generation could become ready
    SOFTWARE = 70  # a bug of ours, or a drain that could not release everything
    TEMPFAIL = 75  # the database cannot be reached
    PROTOCOL = 76  # the database's schema or protocol version is not ours
    CONFIG = 78  # configuration, the application's import included
