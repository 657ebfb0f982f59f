"""Any history of calls leaves a store as the model says, in every column that the protocol speaks of."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from cairnq import AlreadyExists, LostLease, PostgresStore, Settlement, Task
from cairnq.pure.envelope import envelope, worker_crashed
from cairnq.pure.models import CONFLICTS, Held
from tests.store.model import LEASE_S, Model, Row
from tests.support.clock import ClockOfDatabase

WORKERS = ("worker_one", "worker_two")
KEYS = ("k", "l")
ERROR = envelope("Broken", "broke", "it broke", retryable=True)
DEATH = worker_crashed("it died", {"signal": 9})

# No sum of the steps comes near a lease's or a delay's end, so that the real time of a history decides nothing.
DELAY_S = 2500
STEPS_S = (900, 3100, 10_000)

Step = tuple[str, dict[str, Any]]


def step(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


WHICH = st.integers(0, 9)  # one of the tasks there are, counted from the newest
BY = st.sampled_from(WORKERS)
ATTEMPT = st.sampled_from(["any", "any", "current", "current", "next"])
MINE = {"which": WHICH, "by": st.sampled_from(["holder", "holder", "holder", *WORKERS]), "attempt": ATTEMPT}

SUBMIT = step(
    "submit",
    priority=st.integers(0, 1),
    max_attempts=st.integers(1, 2),
    delay=st.sampled_from([0, 0, 0, DELAY_S]),
    key=st.sampled_from([None, None, *KEYS]),
    conflict=st.sampled_from(CONFLICTS),
)
CLAIM = step("claim", by=BY, limit=st.integers(1, 2), names=st.sampled_from([None, ["x"], ["w", "x", "y"]]))
CRASH = step("crash", **MINE, alone=st.booleans(), delay=st.sampled_from([0, 0, DELAY_S]))

STEPS = st.one_of(  # without submits and claims there is nothing to do
    *(SUBMIT, SUBMIT, SUBMIT, CLAIM, CLAIM, CLAIM, CLAIM),
    step("complete", **MINE),
    step("succeed", **MINE),
    step("fail", **MINE, retryable=st.booleans(), delay=st.sampled_from([0, DELAY_S])),
    step("progress", **MINE, progress=st.sampled_from([None, 0.25, 0.5]), message=st.sampled_from([None, "", "m"])),
    step("heartbeat", **MINE),
    step("release", **MINE, started=st.booleans()),
    step("forget", **MINE),
    *(CRASH, CRASH, CRASH, step("claim_suspect", by=BY), step("claim_suspect", by=BY)),
    step("cancel", which=WHICH),
    step("retry", which=WHICH, reset_attempt=st.booleans()),
    step("cancel_by_key", key=st.sampled_from(KEYS)),
    step("retry_by_key", key=st.sampled_from(KEYS)),
    step("recover"),
    step("fail_worker", by=BY),
    step("purge"),
    step("advance", seconds=st.sampled_from(STEPS_S)),
)


class History:
    """Calls store and model alike, and compares what both answer and show."""

    def __init__(self, store: PostgresStore, clock: ClockOfDatabase, number: int) -> None:
        self.store = store
        self.model = Model()
        self._clock = clock
        self._queue = f"history {number}"
        self._number = number

    async def take(self, name: str, arguments: dict[str, Any]) -> None:
        note(f"{name} {arguments}")
        await getattr(self, f"_{name}")(**arguments)
        tasks = {task.id: shown(task) for task in await self.store.list(queue=self._queue, limit=1000)}
        assert tasks == {task_id: row.shown() for task_id, row in self.model.rows.items()}
        for key in KEYS:
            standing = await self.store.get_by_key(self._key(key))
            assert (standing and standing.id) == self.model.keys.get(key)

    def _key(self, key: str) -> str:
        return f"{self._number}/{key}"

    async def _submit(self, *, key: str | None, conflict: Any, delay: int, max_attempts: int, priority: int) -> None:
        options = {"max_attempts": max_attempts, "priority": priority, "run_at_delay_ms": delay * 1000}
        named = {} if key is None else {"key": self._key(key), "conflict": conflict}
        expected = self.model.conflict(key, conflict)
        try:
            task = await self.store.submit("x", queue=self._queue, **options, **named)
        except AlreadyExists:
            assert expected == "reject"
            return
        if expected == "reuse":
            assert task.id == self.model.keys[key or ""]
            return
        assert expected == "insert"
        assert task.id not in self.model.rows
        self.model.insert(task.id, Row(max_attempts, priority, self.model.moment(delay)), key)

    async def _claim(self, *, by: str, limit: int, names: list[str] | None) -> None:
        claimed = await self.store.claim_many([self._queue], self._worker(by), LEASE_S * 1000, limit, names)
        assert [item.task.id for item in claimed] == self.model.claim(self._worker(by), limit)

    async def _claim_suspect(self, *, by: str) -> None:
        claimed = await self.store.claim_suspect([self._queue], self._worker(by), LEASE_S * 1000, ["x"])
        assert [item.task.id for item in claimed] == self.model.claim(self._worker(by), 1, suspects=True)

    def _worker(self, name: str) -> str:
        return f"{name} of {self._queue}"

    # --- writes of a running task: each is taken by both, or by neither --------------------------------

    async def _complete(self, **mine: Any) -> None:
        await self._write(mine, self.store.complete, ({"r": 1},), lambda row: self.model.complete(row, {"r": 1}))

    async def _succeed(self, **mine: Any) -> None:
        await self._write(mine, self.store.succeed, (None,), lambda row: self.model.succeed(row, None))

    async def _fail(self, *, retryable: bool, delay: int, **mine: Any) -> None:
        await self._write(
            mine,
            self.store.fail,
            (ERROR, retryable, delay * 1000),
            lambda row: self.model.fail(row, "broke", retryable=retryable, delay=delay),
        )

    async def _progress(self, *, progress: float | None, message: str | None, **mine: Any) -> None:
        def report(row: Row) -> None:
            row.progress = row.progress if progress is None else progress
            row.message = row.message if message is None else message

        await self._write(mine, self.store.progress, (progress, message), report)

    async def _heartbeat(self, **mine: Any) -> None:
        def renew(row: Row) -> None:
            row.lease_end = self.model.now + LEASE_S

        await self._write(mine, self.store.heartbeat, (LEASE_S * 1000,), renew)

    async def _write(
        self,
        mine: dict[str, Any],
        write: Callable[..., Awaitable[Task]],
        values: tuple[Any, ...],
        apply: Callable[[Row], None],
    ) -> None:
        task_id, worker_id, attempt = self._target(**mine)
        row = self.model.held(task_id, worker_id, attempt)
        try:
            task = await write(task_id, worker_id, *values, attempt=attempt)
        except LostLease:
            assert row is None
            return
        assert row is not None
        apply(row)
        assert shown(task) == row.shown()

    async def _release(self, *, started: bool, **mine: Any) -> None:
        task_id, worker_id, attempt = self._target(**mine, must_name=True)
        row = self.model.held(task_id, worker_id, attempt)
        [status] = await self.store.release_many(worker_id, [Held(task_id, attempt or 0)], started=started)
        if row is not None:
            self.model.release(row, started=started)
        assert status == (row and row.status)

    async def _crash(self, *, alone: bool, delay: int, **mine: Any) -> None:
        task_id, worker_id, attempt = self._target(**mine, must_name=True)
        row = self.model.held(task_id, worker_id, attempt)
        crash = Settlement.crash(task_id, attempt or 0, DEATH, alone=alone, delay_ms=delay * 1000)
        [status] = await self.store.settle_many(worker_id, [crash])
        if row is not None:
            self.model.crash(row, alone=alone, delay=delay)
        assert status == (row and row.status)

    async def _forget(self, **mine: Any) -> None:
        task_id, worker_id, attempt = self._target(**mine, must_name=True)
        row = self.model.held(task_id, worker_id, attempt)
        [status] = await self.store.settle_many(
            worker_id, [Settlement.complete(task_id, attempt, "forgotten", forget=True)]
        )
        assert status == (row and self.model.forget(task_id, row))

    def _target(self, *, which: int, by: str, attempt: str, must_name: bool = False) -> tuple[str, str, int | None]:
        task_id = self._task(which)
        row = self.model.rows.get(task_id)
        current = row.attempt if row else 1
        worker_id = (row.worker_id if row else None) if by == "holder" else self._worker(by)
        attempts = {"any": current if must_name else None, "current": current, "next": current + 1}
        return task_id, worker_id or self._worker(WORKERS[0]), attempts[attempt]

    def _task(self, which: int) -> str:
        ids = sorted(self.model.rows, reverse=True)
        return ids[which % len(ids)] if ids else "task_none"

    # --- everybody else's ------------------------------------------------------------------------------

    async def _cancel(self, *, which: int) -> None:
        task = await self.store.cancel(self._task(which))
        assert (task and task.status) == self.model.cancel(self._task(which))

    async def _retry(self, *, which: int, reset_attempt: bool) -> None:
        task = await self.store.retry(self._task(which), reset_attempt=reset_attempt)
        assert (task and task.status) == self.model.retry(self._task(which), reset_attempt=reset_attempt)

    async def _cancel_by_key(self, *, key: str) -> None:
        task = await self.store.cancel_by_key(self._key(key))
        assert (task and task.status) == self.model.cancel(self.model.keys.get(key, ""))

    async def _retry_by_key(self, *, key: str) -> None:
        task = await self.store.retry_by_key(self._key(key))
        assert (task and task.status) == self.model.retry(self.model.keys.get(key, ""), reset_attempt=False)

    async def _recover(self) -> None:
        await self.store.recover()
        self.model.recover()

    async def _fail_worker(self, *, by: str) -> None:
        await self.store.fail_worker(self._worker(by), ERROR, backoff_ms=0)
        self.model.fail_worker(self._worker(by), "broke")

    async def _purge(self) -> None:
        await self.store.purge(queue=self._queue)
        self.model.purge()

    async def _advance(self, *, seconds: int) -> None:
        self._clock.advance(seconds * 1000)
        self.model.now += seconds


def shown(task: Task) -> tuple[Any, ...]:
    return (
        *(task.status, task.attempt, task.worker_id, task.lease_until_ms is not None, task.cancel_requested),
        *(task.result, task.error and _error(task.error), task.progress, task.message),
    )


def _error(error: dict[str, Any]) -> str:
    return f"{error['code']} {error['details']['suspect']}" if error["code"] == "worker_crashed" else str(error["code"])


NUMBERS = itertools.count()


# The fixtures are shared by the examples on purpose: each has a queue, keys and workers of its own. Shrinking would
# outlast the limit of a test; the history that failed is printed as it was.
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(steps=st.lists(STEPS, min_size=30, max_size=50))
async def test_any_history_leaves_what_the_model_says(
    store: PostgresStore, test_clock: ClockOfDatabase, steps: list[Step]
) -> None:
    history = History(store, test_clock, next(NUMBERS))
    await history.take("submit", {"key": "k", "conflict": "reuse", "delay": 0, "max_attempts": 2, "priority": 0})
    await history.take("claim", {"by": WORKERS[0], "limit": 1, "names": None})
    for name, arguments in steps:
        await history.take(name, arguments)
