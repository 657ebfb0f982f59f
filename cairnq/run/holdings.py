"""Which attempts this worker holds: enters them into the lease table, counts them, tells when trust ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from cairnq.pure.clock import Clock
from cairnq.pure.models import ClaimedTask, Held, Outcome
from cairnq.pure.quota import PayloadBudget
from cairnq.run.attempt import Attempt
from cairnq.run.leases import LeaseTable

_FAILURES = frozenset({Outcome.FAIL, Outcome.FAIL_PERMANENTLY})
_RELEASES = frozenset({Outcome.RELEASE, Outcome.INTERRUPT})


class Observer(Protocol):
    """Hears of every attempt that a worker holds. Must not block and must not raise."""

    def claimed(self, attempt: Attempt) -> None: ...
    def closed(self, attempt: Attempt) -> None:
        """Settled with `attempt.status`, or (None) lost."""
        ...


class Holdings:
    """Everything between a claim's reply and the settlement's, in slots of `table`."""

    def __init__(
        self, table: LeaseTable, budget: PayloadBudget, lease_s: float, clock: Clock, observer: Observer | None = None
    ) -> None:
        self.table = table
        self.budget = budget
        self._lease_s = lease_s
        self._clock = clock
        self._by_slot: dict[int, Attempt] = {}
        self._let_go: dict[Held, float] = {}
        self._observer = observer

    def __iter__(self) -> Iterator[Attempt]:
        """Over a copy: attempts may be closed on the way."""
        return iter(list(self._by_slot.values()))

    def __len__(self) -> int:
        return len(self._by_slot)

    def hold(self, claimed: Sequence[ClaimedTask], sent: float) -> list[Attempt]:
        """Before any handler of their claim starts. `sent` is the instant at which the claim went out."""
        table, budget, held = self.table, self.budget, []
        for item in claimed:
            slot = table.hold(item.task.id, item.task.attempt, lease_s=self._lease_s, sent=sent)
            attempt = self._by_slot[slot] = Attempt(item, table, slot, self._forget)
            budget.add(item.payload_bytes)
            held.append(attempt)
            if self._observer is not None:
                self._observer.claimed(attempt)
        table.claimed += len(held)
        table.in_flight_bytes = budget.used
        return held

    def unknown(self, running: list[Held]) -> list[Held]:
        """Those that the database says are this worker's and that it never heard of.

        An attempt that it gave up as lost is not among them: its handler may still be on its way out, so that row
        waits for its lease to expire.
        """
        now = self._clock()
        self._let_go = {held: until for held, until in self._let_go.items() if until > now}
        known = {attempt.held for attempt in self._by_slot.values()} | self._let_go.keys()
        return [held for held in running if held not in known]

    def trust_ends(self) -> float:
        """The first instant at which the trust in some lease ends; infinity where nothing is held."""
        table = self.table
        return min((table.trusted_until(slot) for slot in self._by_slot), default=float("inf"))

    def _forget(self, attempt: Attempt, slot: int) -> None:
        del self._by_slot[slot]
        table = self.table
        self.budget.remove(attempt.payload_bytes)
        table.in_flight_bytes = self.budget.used
        if self._observer is not None:
            self._observer.closed(attempt)
        if attempt.status is None or attempt.settlement is None:
            self._remember(attempt.held)
            return
        if attempt.settlement.outcome in _RELEASES:
            table.released += 1
        elif attempt.settlement.outcome in _FAILURES:
            table.failed += 1
        else:
            table.succeeded += 1

    def _remember(self, let_go: Held) -> None:
        """For as long as its lease may live on in the database. Who was remembered first is forgotten first."""
        now = self._clock()
        while self._let_go:
            first, until = next(iter(self._let_go.items()))
            if until > now:
                break
            del self._let_go[first]
        self._let_go[let_go] = now + 2 * self._lease_s
