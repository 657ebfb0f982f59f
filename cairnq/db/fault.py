"""What a driver's exception means for us: the five answers, whatever the database."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    RETRY = "retry"  # the statement did not happen; the connection is fine; the same statement may succeed now
    GONE = "gone"  # no connection, or none any more; whether the statement happened is unknown
    CONFIGURATION = "configuration"  # rights, schema, a standby: no retry helps until somebody changes something
    DATA = "data"  # a value that this database refuses
    BUG = "bug"  # ours
