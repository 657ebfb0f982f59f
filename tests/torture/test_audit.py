"""The audit can fail: each kind of breach, made by hand in the tables of an honest run, is found there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cairnq_supervisor.torture.audit import CHECKS, audit
from cairnq_supervisor.torture.evidence import Deed, Note, Run
from cairnq_supervisor.torture.ground_postgres import PostgresGround
from cairnq_supervisor.torture.ground_sqlite import SqliteGround

WORKER = "worker_00000000000000000000000001"
RUNNING = "status = 'running', completed_at_ms = null, worker_id = 'worker_2', lease_until_ms = 5"
ENDED, ALLOWED, EXIST = "every task ended", "every change of status allowed", "every acknowledged task exists"
CALLS, AT_ONCE = "every success is the result of a call", "never two trusted calls at once"
SETTLED = "settled at most once"
BOUNDS, KEYS, MARKS = "attempts within bounds", "keys unique", "leases and marks fit the status"
CANCELS, CHAINS = "acknowledged cancels hold", "what a handler submitted exists"

BREACHES = {
    "a task is gone": (
        (
            "delete from cairnq_tasks where id = '{quick}'; delete from torture_changes where task_id = '{quick}';"
            "delete from torture_runs where task_id = '{quick}'"
        ),
        {EXIST},
    ),
    "a task is removed that is of no handler that forgets": (
        "delete from cairnq_tasks where id = '{quick}'",
        {EXIST, ALLOWED},
    ),
    "a task is forgotten before it was done": (
        "update torture_runs set ended = null where task_id = '{forgotten}'",
        {EXIST},
    ),
    "a task is left": (
        (
            "insert into cairnq_tasks (id, name, status, payload, run_at_ms, created_at_ms, updated_at_ms)"
            " values ('task_left', 'quick', 'queued', '1', 1, 1, 1)"
        ),
        {ENDED},
    ),
    "a success nobody worked for": ("delete from torture_runs where task_id = '{quick}'", {CALLS}),
    "a success of a call that was cut off": (
        "update torture_runs set ended = null where task_id = '{quick}'",
        {CALLS},
    ),
    "a result of somebody else": (
        "update cairnq_tasks set result = '{{\"run\": \"{younger}\"}}' where id = '{quick}'",
        {CALLS},
    ),
    "a settlement by another's call": (
        "update torture_runs set worker_id = 'worker_2' where task_id = '{quick}'",
        {CALLS},
    ),
    "a failure by a call that had raised nothing": (
        "update torture_runs set raised = null where task_id = '{failing}'",
        {CALLS},
    ),
    "a failure by the holder of an earlier attempt": (
        "update torture_runs set worker_id = 'worker_2' where task_id = '{failing}'",
        {CALLS},
    ),
    "a failure nobody saw": ("delete from torture_runs where task_id = '{failing}'", {CALLS}),
    "two calls at once": (
        "update torture_runs set began = began - 9.5 where task_id = '{again}' and attempt = 2",
        {AT_ONCE},
    ),
    "a short call within a long one": (
        "update torture_runs set trusted = 100 where task_id = '{again}' and attempt = 1",
        {AT_ONCE},
    ),
    "a settlement that was written twice": (
        "insert into torture_effects (task_id, run_id) values ('{transact}', 'late')",
        {SETTLED},
    ),
    "a settlement without its rows": ("delete from torture_effects", {SETTLED}),
    "more calls than claims": (
        (
            "insert into torture_runs (run_id, task_id, attempt, worker_id, pid, began)"
            " values ('extra', '{quick}', 1, 'worker_2', 1, 50)"
        ),
        {BOUNDS},
    ),
    "more attempts than allowed": (
        "update cairnq_tasks set max_attempts = 1 where id = '{again}'",
        {BOUNDS},
    ),
    "a task given up too soon": (
        (
            'update cairnq_tasks set max_attempts = 3, error = \'{{"code": "handler_error", "retryable": true}}\''
            " where id = '{failing}'"
        ),
        {BOUNDS},
    ),
    "a good task that failed": (
        "update cairnq_tasks set name = 'quick', max_attempts = 1000 where id = '{failing}'",
        {BOUNDS},
    ),
    "two tasks that lived under one key": (
        "update torture_changes set seq = seq + 1000 where task_id = '{older}' and after = 'succeeded'",
        {KEYS},
    ),
    "a forgotten task that lived under a key beside another": (
        "update torture_changes set key = 'k', conflict = 'reuse', seq = -seq where task_id = '{forgotten}'",
        {KEYS, ALLOWED},
    ),
    "a key that points at nothing": ("delete from cairnq_task_keys where key = 'k'", {KEYS}),
    "a key that points at the past": ("update cairnq_task_keys set task_id = '{older}' where key = 'k'", {KEYS}),
    "a second success where one is enough": (
        ("update torture_changes set conflict = 'reuse-succeeded' where task_id in ('{older}', '{younger}')"),
        {KEYS},
    ),
    "an outcome that was written over": (
        "update cairnq_tasks set result = '{{\"run\": \"{quick}.1\"}}' where id = '{quick}'",
        {ALLOWED},
    ),
    "a running task that was taken": (
        (
            "update cairnq_tasks set " + RUNNING + " where id = '{quick}';"
            "update cairnq_tasks set worker_id = 'worker_3' where id = '{quick}'"
        ),
        {ALLOWED, ENDED},
    ),
    "a lease of nobody": ("update cairnq_tasks set lease_until_ms = 5 where id = '{quick}'", {MARKS}),
    "a success that is not complete": ("update cairnq_tasks set progress = 0.5 where id = '{quick}'", {MARKS}),
    "an end without its time": ("update cairnq_tasks set completed_at_ms = null where id = '{quick}'", {MARKS}),
    "a cancel that did not hold": (
        (
            "delete from torture_notes where deed = 'canceled';"
            "insert into torture_notes (deed, task_id, name) values ('canceled', '{quick}', 'quick')"
        ),
        {CANCELS},
    ),
    "a chain that broke": ("update cairnq_tasks set parent_id = null where id = '{child}'", {CHAINS}),
    "an end that was not one": ("update cairnq_tasks set " + RUNNING + " where id = '{quick}'", {ALLOWED, ENDED}),
    "a cancel that lost": (
        "update torture_changes set canceling = true where task_id = '{quick}' and after = 'succeeded'",
        {ALLOWED},
    ),
    "an attempt that was skipped": (
        "update torture_changes set attempt = 2 where task_id = '{quick}' and after = 'running'",
        {ALLOWED},
    ),
    "a retry that nobody asked for": ("delete from torture_notes where deed = 'retried'", {ALLOWED}),
    "a row that nobody saw made": ("delete from torture_changes where task_id = '{canceled}'", {ALLOWED}),
}


@pytest.fixture
async def ground(tmp_path):
    """The tables of a run in which everything was as it should be, and in `.tasks` the ids of it."""
    async with SqliteGround(tmp_path / "run.db").prepared(keep=False) as ground:
        ground.tasks = await honest_run(ground)
        yield ground


@pytest.fixture
async def server_ground(database):
    """The same on a server."""
    ground = PostgresGround(database, direct=None, name="cairnq_torture_x", abilities=())
    async with ground.prepared(keep=False):
        ground.tasks = await honest_run(ground)
        yield ground


async def honest_run(ground):
    """One task of each kind, from its submit to its end, and what handlers and clients would have noted."""
    tasks, runs, notes = {}, [], []
    async with ground.client(None) as client:
        store = client.store

        async def submit(title, name, **options):
            task = await client.submit(name, 1, **options)
            tasks[title] = task.id
            notes.append(Note(Deed.SUBMITTED, task.id, name))
            return task

        async def claim():
            [task] = await store.claim(["default"], WORKER, limit=1)
            at = float(10 * len(runs))
            runs.append(Run(task.id + f".{task.attempt}", task.id, task.attempt, WORKER, 1, at, at + 1, at + 1))
            return task, {"run": runs[-1].run_id}

        async def fail(**error):
            task, _ = await claim()
            runs[-1] = replace(runs[-1], ended=None, raised=runs[-1].ended)
            await store.fail(task.id, WORKER, error, retryable=error["retryable"])
            return task

        async def succeed():
            task, result = await claim()
            await store.complete(task.id, WORKER, result)

        await submit("quick", "quick")
        await succeed()
        for title in ("older", "younger"):
            await submit(title, "quick", key="k", metadata={"key": "k", "conflict": "reuse"})
            await succeed()
        await submit("again", "slow")
        await fail(code="handler_error", retryable=True)
        await succeed()
        await submit("failing", "failing", max_attempts=1)
        await fail(code="task_error", retryable=False)
        await submit("retried", "failing", max_attempts=1)
        task = await fail(code="task_error", retryable=False)
        notes.append(Note(Deed.RETRIED, task.id, "failing"))
        await client.retry(task.id, reset_attempt=True)
        await succeed()
        await submit("transact", "transact")
        task, result = await claim()

        async def write(session):
            insert = f"insert into {ground.effects} (task_id, run_id) values ($1, $2)"
            await session.query(insert, [task.id, result["run"]])
            return result

        await store.complete_in(task.id, WORKER, write)
        await submit("forgotten", "forgotten")
        task, result = await claim()
        await forget(store, task, result)
        parent = await submit("chain", "chain")
        await succeed()
        await submit("child", "quick", parent_id=parent.id)
        await succeed()
        await submit("canceled", "quick")
        await client.cancel(tasks["canceled"])
        notes.append(Note(Deed.CANCELED, tasks["canceled"], "quick"))
    await ground.gather(runs, notes)
    return tasks


async def forget(store, task, result):
    from cairnq.pure.models import Settlement

    await store.settle_many(WORKER, [Settlement.complete(task.id, task.attempt, result, forget=True)])


def found(evidence):
    return {check: breaches for check, breaches in audit(evidence).items() if breaches}


async def test_an_honest_run_has_no_breach(ground):
    evidence = await ground.evidence()
    assert found(evidence) == {}
    assert len(evidence.rows) == 10
    assert len(evidence.runs) == 12


@pytest.mark.parametrize("breach", BREACHES)
async def test_a_breach_is_found(ground, breach):
    sql, checks = BREACHES[breach]
    await ground._run_script(sql.format(**ground.tasks))
    seen = {ALLOWED} if "update cairnq_tasks" in sql else set()  # that a row was written after its end
    assert set(found(await ground.evidence())) == checks | seen


async def test_an_honest_run_on_a_server_has_no_breach_until_each_is_made(server_ground):
    assert found(await server_ground.evidence()) == {}
    for sql, _ in BREACHES.values():
        if "delete from cairnq_tasks" not in sql and RUNNING not in sql:  # they hide what is wrong with the row
            await server_ground._run_script(sql.format(**server_ground.tasks))
    assert set(found(await server_ground.evidence())) == set(CHECKS)


def test_each_check_has_a_breach_that_it_finds():
    assert set(CHECKS) == set().union(*(checks for _, checks in BREACHES.values()))


async def test_calls_without_trust_may_overlap(ground):
    await ground._run_script(
        "update torture_runs set began = 0, trusted = null where attempt = 2;"
        "update torture_runs set trusted = 100 where attempt = 1 and task_id = '{again}'".format(**ground.tasks)
    )
    assert found(await ground.evidence()) == {}


async def test_nothing_is_left_of_a_file_when_it_is_over(tmp_path):
    async with SqliteGround(tmp_path / "run.db").prepared(keep=False):
        assert list(tmp_path.glob("run.db*"))
    assert not list(tmp_path.glob("run.db*"))


async def test_nothing_is_left_of_a_schema_when_it_is_over(database):
    there = "select from pg_namespace where nspname = 'cairnq_torture_x'"
    ground = PostgresGround(database, direct=None, name="cairnq_torture_x", abilities=())
    async with ground.prepared(keep=False):
        assert await ground._query(there) != []
    assert await ground._query(there) == []
