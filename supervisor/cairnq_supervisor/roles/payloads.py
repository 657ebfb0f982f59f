"""A worker's payload budget where the ceilings are the host's: kept in the ledger that all workers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cairnq.pure.quota import ByteCeiling, PayloadBudget
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.messages import BytesFreed, Message


class SharedBudget(PayloadBudget):
    """Under two ceilings, the queue's and the host's, either of which may be none.

    Whoever is refused says so in its row; whoever gives bytes up then tells the supervisor, which passes it on.
    """

    def __init__(
        self,
        ledger: Ledger,
        place: Place,
        *,
        of_queue: int | None,
        of_host: int | None,
        say: Callable[[Message], None],
    ) -> None:
        super().__init__(None)
        self._ledger = ledger
        self._row = place.row
        self._most = tuple((most, queue) for most, queue in ((of_queue, place.queue), (of_host, None)) if most)
        self._freed_for = None if of_host else place.queue
        """Whom bytes of this worker may be enough for: without a ceiling of the host, its own queue alone."""
        self._say = say
        self._claims = self._starts = True

    def ceilings(self) -> Sequence[ByteCeiling]:
        ledger = self._ledger
        return [ByteCeiling(most, ledger.held(queue), ledger.running(queue)) for most, queue in self._most]

    def add(self, size: int) -> None:
        super().add(size)
        self._ledger.hold(self._row, self.used)

    def remove(self, size: int) -> None:
        super().remove(size)
        self._ledger.hold(self._row, self.used)
        if self._most:
            self._freed()

    def start(self, size: int) -> None:
        super().start(size)
        self._ledger.run(self._row, self.running)

    def end(self, size: int) -> None:
        super().end(size)
        self._ledger.run(self._row, self.running)
        if self._most:
            self._freed()

    def limit(self) -> int | None:
        limit = super().limit()
        self._claims = limit != 0
        self._note()
        if limit == 0:  # what was freed between the look and the note was not told to us
            limit = super().limit()
        return limit

    def admits(self, size: int) -> bool:
        if not self._most:
            return True
        self._starts = super().admits(size)
        self._note()
        return self._starts or super().admits(size)

    def beyond(self, size: int) -> int | None:
        return super().beyond(size) if self._most else None

    def told(self) -> None:
        """Bytes were freed. Whoever still wants some says so again when it is refused again.

        So a refusal that nothing came of (what it was for was lost, or given back) costs one message, not one a task.
        """
        self._claims = self._starts = True
        self._note()

    def _note(self) -> None:
        if self._most:
            self._ledger.wait(self._row, waits=not (self._claims and self._starts))

    def _freed(self) -> None:
        if self._ledger.others_wait(self._row, self._freed_for):
            self._say(BytesFreed())
