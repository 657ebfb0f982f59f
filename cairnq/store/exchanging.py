"""What a worker has finished is written, and what it does next is taken, in one round trip and one commit."""

from __future__ import annotations

from collections.abc import Sequence

from cairnq.db.fault import Fault
from cairnq.db.session import Row
from cairnq.db.sqlstate import classify
from cairnq.pure.models import ClaimedTask, Outcome, Settlement, TaskStatus
from cairnq.store import rows
from cairnq.store.claiming import Claiming, ClaimRequest, checked_limit
from cairnq.store.settlements import Statuses, each_task_once, kept, settlement_values
from cairnq.store.settling import Settling

_UNDONE = frozenset({Fault.DATA, Fault.RETRY})


class Exchanging(Claiming, Settling):
    exchanges = False
    """Whether the driver sends both before it awaits an answer; where it cannot, nothing is gained."""

    async def settle_and_claim(
        self,
        worker_id: str,
        settlements: Sequence[Settlement],
        queues: Sequence[str],
        lease_ms: int,
        limit: int,
        names: Sequence[str] | None,
    ) -> tuple[Statuses, list[ClaimedTask]] | None:
        """See `TaskStore.settle_and_claim`."""
        request = ClaimRequest(queues, worker_id, lease_ms, names)
        if not self.exchanges or request.asks_for_nothing or len(each_task_once(settlements)) != 1:
            return None
        forgotten = [item for item in settlements if item.outcome is Outcome.FORGET]
        written = [item for item in settlements if item.outcome is not Outcome.FORGET]
        parts = {"settle_forget": forgotten, "settle": written}
        asked = [(name, (), settlement_values(worker_id, some)) for name, some in parts.items() if some]
        limit, place = checked_limit(limit), self._place_for(request)
        try:
            async with self._autocommit() as bound:
                found = await bound.together([*asked, request.statement(request.names, limit, place)])
        except Exception as error:
            if classify(error.__cause__ or error) in _UNDONE:
                return None
            raise
        moved = {row[0] for row in found[0] if not row[1]} if forgotten else set()
        answers = _answers(found[:-1], removed=bool(forgotten))
        late = [item if item.task_id in moved else kept(item) for item in forgotten if item.task_id not in answers]
        if late:
            statuses = await self.settle_many(worker_id, late)
            answers.update((item.task_id, status) for item, status in zip(late, statuses, strict=True) if status)
        claimed = await self._rest(request, limit, rows.claimed(found[-1]), place)
        return [answers.get(item.task_id) for item in settlements], claimed


def _answers(found: Sequence[Sequence[Row]], *, removed: bool) -> dict[str, TaskStatus]:
    """The status of each task that a statement answered for. `removed`: the first of them removed its rows."""
    answers: dict[str, TaskStatus] = {}
    for position, part in enumerate(found):
        if removed and position == 0:
            answers.update((row[0], "succeeded") for row in part if row[1])
        else:
            answers.update((row[0], row[1]) for row in part)
    return answers
