"""What of the workers did not reach the keeper, for want of a descriptor: it cannot keep their leases, or wake them."""

from __future__ import annotations

from collections.abc import Callable

from cairnq_supervisor.pure.keeper_messages import Unlent
from cairnq_supervisor.roles.link import Link

_TABLE, _BELL = "lease table", "bell"


class Arrivals:
    """Told of all that is lent, whether it came or not; `on_change()` is called when `is_complete` may differ."""

    def __init__(self, link: Link, on_change: Callable[[], None]) -> None:
        self._link = link
        self._on_change = on_change
        self._missing: dict[str, set[str]] = {}

    @property
    def is_complete(self) -> bool:
        return not self._missing

    def table(self, worker_id: str, *, came: bool) -> None:
        self._note(worker_id, _TABLE, came=came)

    def bell(self, worker_id: str, *, came: bool) -> None:
        self._note(worker_id, _BELL, came=came)

    def forget(self, worker_id: str) -> None:
        """It is dead, or left: nothing of it is missed."""
        self._missing.pop(worker_id, None)
        self._on_change()

    def _note(self, worker_id: str, what: str, *, came: bool) -> None:
        missing = self._missing.get(worker_id, set())
        if came:
            missing.discard(what)
            if not missing:
                self.forget(worker_id)
            return
        if not missing:  # said once a worker, however often it is lent in vain
            self._link.emit("keeper.fault", worker_id=worker_id, error=f"no descriptor left for its {what}")
        self._missing.setdefault(worker_id, set()).add(what)
        self._link.send(Unlent(worker_id, is_kept=_TABLE not in self._missing[worker_id]))
        self._on_change()
