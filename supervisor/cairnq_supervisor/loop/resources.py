"""Carries the treasury's orders to the workers, and what they give back to the treasury."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from cairnq.pure.clock import Clock
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure.messages import AskBack, Grant, Returned
from cairnq_supervisor.pure.treasury import Order, Treasury


def forget_units(locks: tuple[Path, str] | None) -> None:
    """At the end, when no process of ours is left: take the units' files away."""
    if locks is not None:
        folder, stem = locks
        for path in folder.glob(f"{stem}.*.unit"):
            path.unlink(missing_ok=True)


class Resources:
    """`workers()`: the seats there are now."""

    def __init__(self, workers: Callable[[], Iterable[WorkerSeat]], clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._treasury = Treasury()

    def welcome(self, seat: WorkerSeat) -> None:
        """It is ready and has said what its handlers use."""
        if seat.incarnation is None or not seat.uses:
            return
        worker_id, most = seat.incarnation.worker_id, seat.queue.concurrency
        self._carry(self._treasury.join(worker_id, seat.line, seat.uses, most=most, now=self._clock()))

    def retire(self, worker_id: str) -> None:
        self._treasury.retire(worker_id)

    def bury(self, worker_id: str) -> None:
        self._carry(self._treasury.leave(worker_id, now=self._clock()))

    def returned(self, worker_id: str, message: Returned) -> None:
        self._carry(self._treasury.returned(worker_id, message.resource, message.unit, now=self._clock()))

    def sampled(self, due: Mapping[str, int]) -> None:
        self._carry(self._treasury.sampled(due, now=self._clock()))

    def held(self) -> dict[str, dict[str, int]]:
        return self._treasury.held()

    def _carry(self, orders: Iterable[Order]) -> None:
        seats = {seat.incarnation.worker_id: seat for seat in self._workers() if seat.incarnation is not None}
        for order in orders:
            seat = seats.get(order.worker_id)
            if seat is not None:
                seat.say(Grant(order.resource, order.unit) if order.grant else AskBack(order.resource, order.unit))
