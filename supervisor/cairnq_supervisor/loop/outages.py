"""One outage, two lines: every child notices by itself that the database is away, and the log says it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from cairnq.pure.clock import Clock

FAILED = "database.failed"
RECOVERED = "database.recovered"
_KNOWN = {FAILED: "database.failed-too", RECOVERED: "database.recovered-too"}
"""What an event is called that repeats what is known: for programs, not for the log."""


class Outages:
    """Takes the children's events about the database; `emit` gets the first failure and the last recovery as such.

    Whoever alone saw an outage may be gone before it is over. Then it lasts until somebody has had an answer.
    """

    def __init__(self, emit: Callable[..., Any], clock: Clock) -> None:
        self._emit = emit
        self._clock = clock
        self._open: Counter[Hashable] = Counter()
        self._began_at = 0.0
        self._operation: Any = None
        self._is_orphaned = False

    @property
    def is_on(self) -> bool:
        return self._is_orphaned or self._open.total() > 0

    def heard(self, child: Hashable, name: str, fields: Mapping[str, Any]) -> None:
        """`child` says that something failed, or works again."""
        if name == FAILED:
            known = self.is_on
            if not known:
                self._began_at, self._operation = self._clock(), fields.get("operation")
            self._open[child] += 1
            self._is_orphaned = False
        else:
            self._open[child] -= 1
            self._open += Counter()  # drops what is not above zero
            self._is_orphaned = False
            known = self.is_on
        self._emit(_KNOWN[name] if known else name, **fields)

    def forget(self, child: Hashable) -> None:
        """It is gone. Its successor looks for itself."""
        saw_it = self._open.pop(child, 0) > 0
        self._is_orphaned = self._is_orphaned or (saw_it and not self.is_on)

    def answered(self) -> None:
        """The database has just served somebody."""
        if self._is_orphaned:
            self._is_orphaned = False
            self._emit(RECOVERED, operation=self._operation, after_s=round(self._clock() - self._began_at, 3))
