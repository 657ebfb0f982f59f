"""What a worker counts of an attempt."""

from __future__ import annotations

from typing import Any

import pytest

from cairnq.pure.models import ClaimedTask, Settlement, Task
from cairnq.run.attempt import Attempt
from cairnq.run.leases import LeaseTable
from cairnq.store import rows
from cairnq_supervisor.pure.messages import Message, Tallied
from cairnq_supervisor.roles.tallying import Tallying
from tests.unit.test_rows import ROW


def held(task: Task) -> Attempt:
    table = LeaseTable.private(1)
    slot = table.hold(task.id, task.attempt, lease_s=30.0, sent=0.0)
    return Attempt(ClaimedTask(task, 2), table, slot, lambda _attempt, _slot: None)


async def tallied(attempt: Attempt, now: float) -> Any:
    said: list[Message] = []
    tallying = Tallying(said.append, clock=lambda: now)
    tallying.claimed(attempt)
    tallying.closed(attempt)
    tallying.tell()
    [message] = said
    assert isinstance(message, Tallied)
    return message.names["mail.send"]


async def test_a_duration_ends_with_the_handler_and_not_with_the_record() -> None:
    attempt = held(rows.task(ROW))
    attempt.start(10.0)
    attempt.ended_at = 10.25
    attempt.settlement = Settlement.complete(attempt.task.id, attempt.task.attempt, None)
    attempt.close("succeeded")
    claimed, fates, _, duration = await tallied(attempt, now=99.0)
    assert (claimed, fates) == (1, {"succeeded": 1})
    assert duration[1] == pytest.approx(0.25)


async def test_what_was_lost_ran_until_then() -> None:
    attempt = held(rows.task(ROW))
    attempt.start(10.0)
    attempt.close(None)
    _, fates, _, duration = await tallied(attempt, now=13.0)
    assert fates == {"lost": 1}
    assert duration[1] == pytest.approx(3.0)
