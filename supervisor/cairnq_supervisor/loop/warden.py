"""Looks at living workers by what their tables prove, at each beat: blocked loops, calls over time, spent workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.incarnation import Incarnation
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure import evidence
from cairnq_supervisor.pure.evidence import Limits
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.stack import guilty, shortened
from cairnq_supervisor.system.granted_memory import memory_grant
from cairnq_supervisor.system.processes import resident_bytes

_WRITING = 0.1
"""Seconds that a worker gets to write its stacks."""

_AGE_JITTER = 0.1
"""Part of `max_age` by which workers that started together part."""

Replace = Callable[[WorkerSeat, str], None]


class Warden:
    """`replace(seat, reason)` gets a worker that is spent."""

    def __init__(self, house: House, replace: Replace) -> None:
        self._house = house
        self._replace = replace

    def look(self, seat: WorkerSeat, *, interval: float) -> None:
        """`interval`: seconds between two looks."""
        incarnation = seat.incarnation
        if incarnation is None or not seat.vouched:
            return
        guilty = evidence.overrun(incarnation.table.entries(), now=self._house.clock(), max_run=seat.queue.max_run)
        if guilty:
            seat.kill_for_overrun(guilty)
            return
        self._look_at_loop(seat, incarnation, interval)
        if seat.state is SeatState.READY and seat.pid is not None:
            limits = Limits(max_tasks=seat.queue.max_tasks, max_rss=seat.queue.max_rss)
            reason = evidence.spent(limits, claimed=incarnation.table.claimed, rss=resident_bytes(seat.pid))
            if reason is not None:
                self._replace(seat, reason)

    def look_at_memory(self, seats: Iterable[WorkerSeat]) -> None:
        """One out-of-memory kill may take the whole container: the worker over its share leaves before."""
        grant = memory_grant()
        if grant is None:
            return
        ready = [seat for seat in seats if seat.state is SeatState.READY and seat.pid is not None]
        resident = {seat: resident_bytes(seat.pid) or 0 for seat in ready if seat.pid is not None}
        heavy = evidence.over_share(resident, limit=grant.limit, used=grant.used)
        if heavy is not None:
            part, mib = grant.used / grant.limit, resident[heavy] >> 20
            self._replace(
                heavy, f"memory is at {part:.0%} of {grant.limit >> 20} MiB, and its {mib} MiB are over its share"
            )

    def welcome(self, seat: WorkerSeat) -> None:
        """It became ready: from now on it ages."""
        if seat.queue.max_age is None:
            return
        age = seat.queue.max_age * random.uniform(1 - _AGE_JITTER, 1.0)  # noqa: S311 - jitter, not a secret

        def retire() -> None:
            if seat.state is SeatState.READY:
                self._replace(seat, f"max_age reached after {age:.0f} s")

        seat.retirement = self._house.reactor.call_after(age, retire)

    def show_stacks(self, seat: WorkerSeat, event: str, **facts: object) -> None:
        """Ask for its stacks and, when it has had the time to write them, emit `event` with them."""
        incarnation, pid = seat.incarnation, seat.pid
        if incarnation is None or pid is None:
            return
        identity = seat.identity
        incarnation.stacks.request(pid)

        def show() -> None:
            if incarnation.is_open:
                dump = incarnation.stacks.read()
                self._house.emit(event, **identity, pid=pid, **facts, handler=guilty(dump), stack=shortened(dump))

        self._house.reactor.call_after(_WRITING, show)

    def _look_at_loop(self, seat: WorkerSeat, incarnation: Incarnation, interval: float) -> None:
        """One report a block, however long it lasts; past `stall_timeout` the process is ended."""
        last = incarnation.table.last_progress
        silent = evidence.silence(now=self._house.clock(), last_progress=last)
        if silent > seat.queue.stall_timeout:
            seat.kill(f"its loop has not turned for {silent:.0f} s (stall_timeout)")
        elif silent > interval * evidence.BLOCKED_AFTER and seat.told_block != last:
            seat.told_block = last
            self.show_stacks(seat, "worker.blocked", blocked_s=round(silent, 1))
