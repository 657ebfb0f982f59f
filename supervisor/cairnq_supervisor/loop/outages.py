"""One outage, two lines: every child notices by itself that the database is away, and the log says it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

FAILED = "database.failed"
RECOVERED = "database.recovered"
_KNOWN = {FAILED: "database.failed-too", RECOVERED: "database.recovered-too"}
"""What an event is called that repeats what is known: for programs, not for the log."""


class Outages:
    """Takes the children's events about the database; `emit` gets the first failure and the last recovery as such."""

    def __init__(self, emit: Callable[..., Any]) -> None:
        self._emit = emit
        self._open: Counter[Hashable] = Counter()

    @property
    def is_on(self) -> bool:
        return self._open.total() > 0

    def heard(self, child: Hashable, name: str, fields: Mapping[str, Any]) -> None:
        """`child` says that something failed, or works again."""
        if name == FAILED:
            known = self.is_on
            self._open[child] += 1
        else:
            self._open[child] -= 1
            self._open += Counter()  # drops what is not above zero
            known = self.is_on
        self._emit(_KNOWN[name] if known else name, **fields)

    def forget(self, child: Hashable) -> None:
        """It is gone, and what it saw with it. Its successor looks for itself."""
        del self._open[child]
