"""One worker process's identity, its bell, and its lease table, which outlives it until what it held is settled."""

from __future__ import annotations

import os

from cairnq.pure.ids import new_worker_id
from cairnq.run.leases import LeaseTable
from cairnq_supervisor.pure.keeper_messages import Lend, LendBell
from cairnq_supervisor.system import memory
from cairnq_supervisor.system.bell import Bell
from cairnq_supervisor.system.descriptors import Descriptors
from cairnq_supervisor.system.stacks import StackBook


class Incarnation:
    """Made before each fork: a `worker_id` is never used twice. `lease` is seconds."""

    def __init__(self, capacity: int, lease: float, descriptors: Descriptors, *, rung_for: str | None) -> None:
        """`rung_for`: the queue of whose work the keeper tells it; None: of none.

        Raises `OSError` when the system has no memory or descriptor left.
        """
        self.worker_id = new_worker_id()
        self.capacity = capacity
        self.lease = lease
        self._rung_for = rung_for
        self._descriptors = descriptors
        self.fd = memory.create("cairnq-leases", LeaseTable.size_for(capacity))
        descriptors.add(self.fd)
        try:
            self._memory = memory.Mapping(self.fd)
            self.stacks = StackBook()
        except OSError:
            self._close_fd()
            raise
        try:
            self.bell = Bell()
        except OSError:
            self.stacks.close()
            self._close_fd()
            raise
        self.is_open = True
        self.table = LeaseTable(self._memory.view, capacity)

    @property
    def memory(self) -> memoryview:
        return self._memory.view

    @property
    def holds_nothing(self) -> bool:
        return self.table.in_flight_calls == 0 and not self.table.entries()

    @property
    def needs_beats(self) -> bool:
        """Of one that waits for a beat before it claims, too."""
        return not (self.holds_nothing and self.table.is_kept)

    def hide_from_siblings(self) -> None:
        """After this worker's fork: children that are forked later do not inherit its memory."""
        self._memory.hide_from_children()
        self._descriptors.add(self.stacks.fd, self.bell.fd)

    def lend(self) -> tuple[Lend, int]:
        """The message that gives the keeper this table, and the descriptor that goes with it."""
        return Lend(self.worker_id, self.capacity, self.lease), self.fd

    def lend_bell(self) -> tuple[LendBell, int] | None:
        """The message that lets the keeper wake it, and the descriptor that goes with it; None where it shall not."""
        return None if self._rung_for is None else (LendBell(self.worker_id, self._rung_for), self.bell.fd)

    def close(self) -> None:
        """Nothing of this worker is left to settle."""
        self.is_open = False
        self._close_fd()
        self._descriptors.discard(self.stacks.fd, self.bell.fd)
        self.stacks.close()
        self.bell.close()
        self.table.close()

    def _close_fd(self) -> None:
        self._descriptors.discard(self.fd)
        os.close(self.fd)
