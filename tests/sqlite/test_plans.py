"""Plans on a file of 200,000 tasks: every statement reads an index, and a claim costs the same whatever the backlog."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cairnq import SqliteStore
from cairnq.db.statements import Statements, sql_root

ROWS = 200_000
TASK = "task_000100000"
ERROR = json.dumps({"code": "x"})
NOW_MS = time.time_ns() // 1_000_000
SOON = NOW_MS + 3_600_000
SUSPECT = json.dumps({"code": "worker_crashed", "message": "m", "details": {"signal": 9, "suspect": 2}})

# How many of 200,000, and what they are: due, in backoff at a high priority, foreign names, running, finished; and
# suspects, with a little due work behind them.
MIX: list[tuple[float, dict[str, Any]]] = [
    (0.4, {"status": "queued", "name": "ours", "run_at_ms": NOW_MS - 1000}),
    (0.10, {"status": "queued", "name": "ours", "run_at_ms": SOON, "priority": 9}),
    (0.20, {"status": "queued", "name": "foreign", "run_at_ms": NOW_MS - 2000, "queue": "mixed", "priority": 5}),
    (0.05, {"status": "queued", "name": "ours", "run_at_ms": NOW_MS - 1000, "queue": "mixed"}),
    (0.005, {"status": "running", "worker_id": "me", "attempt": 1, "lease_until_ms": SOON}),
    (0.17, {"status": "succeeded", "completed_at_ms": NOW_MS - 5000}),
    (0.025, {"status": "queued", "queue": "haunted", "run_at_ms": NOW_MS - 9000, "error": SUSPECT}),
    (0.025, {"status": "queued", "queue": "haunted", "run_at_ms": NOW_MS - 1000}),
    (0.025, {"status": "failed", "completed_at_ms": NOW_MS - 5000, "correlation_id": "c", "root_id": "root"}),
]

VALUES: dict[str, Any] = {
    "id": TASK,
    "worker_id": "me",
    "attempt": 1,
    "lease_ms": 1000,
    "limit": 10,
    "offset": 0,
    "key": "k",
    "queue": "default",
    "name": "ours",
    "root_id": "root",
    "correlation_id": "c",
    "error": ERROR,
    "bound": 100,
    "queues": ["default"],
    "names": ["ours"],
    "keys": ["k"],
    "ids": [TASK],
    "task_ids": [TASK],
    "cutoff_ms": NOW_MS,
    "worker_ids": ["me"],
    "attempts": [1],
    "leases_ms": [1000],
    "outcomes": ["complete"],
    "bodies": ["{}"],
    "delays_ms": [0],
    "delay_ms": 0,
    "statuses": ["failed", "succeeded"],
    "before_id": "task_9",
    "payload": "{}",
    "metadata": "{}",
    "max_attempts": [3],
    "priority": 0,
    "priorities": [0],
    "parent_id": None,
    "progress": 0.5,
    "duty": "purge",
    "holder": "me",
    "message": "m",
    "reset_attempt": False,
    "backoff_ms": 1,
    "backoff_max_ms": 1,
    "payloads": ["{}"],
    "metadatas": ["{}"],
    "parent_ids": [None],
    "root_ids": [None],
    "correlation_ids": [None],
}

VARIANTS: dict[str, list[tuple[str, ...]]] = {
    "list": [
        *(("root_id",), ("correlation_id",), ("status", "finished"), ("queue",), ("name",)),
        *((), ("queue", "status", "finished"), ("queue", "name", "correlation_id")),
    ],
    "purge": [(), ("queue",), ("name",), ("queue", "name")],
    "stats": [(), ("queue",)],
    "outlook": [(), ("expired",)],
}

READS_EVERYTHING = {"stats"}  # an overview for people
WALKS_WHAT_RUNS = {"backlog", "lapsed", "outlook", "recover"}  # there is no index on the lease, which every beat writes
STEPS_FROM_THE_FIRST = {"queued_queues"}  # its first look is for the first entry of all
WALKS_THE_PRIMARY_KEY = {"list"}  # newest first, until the limit
NOT_PLANNED = {"connection", "data_version", "optimize", "patience", "restart_log"}
STATEMENTS = sorted(
    entry.name.removesuffix(".sql") for entry in (sql_root() / "sqlite").iterdir() if entry.name.endswith(".sql")
)


def fill(path: Path, rows: int) -> None:
    columns = ("name", "queue", "priority", "worker_id", "attempt", "lease_until_ms", "run_at_ms", "completed_at_ms")
    columns += ("status", "root_id", "correlation_id", "error")
    default = {"name": "ours", "queue": "default", "priority": 0, "attempt": 0, "run_at_ms": NOW_MS}
    with closing(sqlite3.connect(path)) as connection, connection:
        number = 0
        for share, fields in MIX:
            count = max(1, int(rows * share))
            row = [{**default, **fields}.get(column) for column in columns]
            connection.executemany(
                f"insert into cairnq_tasks (id, payload, created_at_ms, updated_at_ms, {', '.join(columns)}) "
                f"values ('task_' || substr('000000000' || ?, -9), '{{}}', 1, 1{', ?' * len(columns)})",
                ((number + n, *row) for n in range(count)),
            )
            number += count


async def install(path: Path) -> None:
    store = SqliteStore(path)
    await store.connect()
    await store.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A file of 1,000 tasks and one of 200,000."""
    found = {}
    for rows in (1000, ROWS):
        path = found[rows] = tmp_path_factory.mktemp("plans") / f"{rows}.db"
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, install(path)).result()
        fill(path, rows)
    return found


@pytest.fixture(params=["never gathered", "fresh", "gathered with nothing running"])
def connection(request: pytest.FixtureRequest, files: dict[int, Path]) -> Iterator[sqlite3.Connection]:
    """On the large file, with the planner's statistics in that state; nothing that is done is kept."""
    with closing(sqlite3.connect(files[ROWS], isolation_level=None)) as connection:
        connection.execute("begin")
        match request.param:
            case "fresh":
                connection.execute("analyze cairnq_tasks")
            case "gathered with nothing running":
                connection.execute("update cairnq_tasks set status = 'queued' where status = 'running'")
                connection.execute("analyze cairnq_tasks")
                connection.execute("update cairnq_tasks set status = 'running' where worker_id = 'me'")
        if request.param != "never gathered":
            connection.execute("analyze sqlite_schema")  # read the statistics just written
        yield connection
        connection.execute("rollback")


def arranged(name: str, conditions: tuple[str, ...] = (), **values: Any) -> tuple[str, list[Any]]:
    literals = {"status": "'failed'"} if "status" in conditions else None
    statement = Statements("sqlite", "main").get(name, conditions, literals)
    given = {**VALUES, **values}
    if name in ("submit_one", "submit_alike"):
        given["max_attempts"] = 3
    arranged = statement.arrange(given)
    return statement.text, [json.dumps(value) if isinstance(value, list) else value for value in arranged]


def plan(connection: sqlite3.Connection, name: str, conditions: tuple[str, ...] = ()) -> list[str]:
    text, values = arranged(name, conditions)
    return [str(row[3]) for row in connection.execute(f"explain query plan {text}", values)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(connection: sqlite3.Connection, name: str) -> None:
    if name in NOT_PLANNED:
        return
    for conditions in VARIANTS.get(name, [()]):
        scans = [
            step
            for step in plan(connection, name, conditions)
            if step.startswith(("SCAN t", "SCAN c", "SCAN k", "SCAN cairnq"))
            and not (name in WALKS_WHAT_RUNS and "cairnq_lean_running_idx" in step)
            and not (name in WALKS_THE_PRIMARY_KEY and step.endswith("sqlite_autoindex_cairnq_tasks_1"))
            and not (name in STEPS_FROM_THE_FIRST and step.endswith("cairnq_lean_claim_idx"))
            and not any(what in step for what in ("CONSTANT ROW", "VIRTUAL TABLE", "SCAN counted"))
        ]
        assert name in READS_EVERYTHING or scans == [], (conditions, scans)


@pytest.mark.parametrize("conditions", VARIANTS["list"])
def test_a_list_sorts_at_most_what_its_index_found(connection: sqlite3.Connection, conditions: tuple[str, ...]) -> None:
    steps = plan(connection, "list", conditions)
    reads = [step for step in steps if step.startswith(("SEARCH t", "SCAN t"))]
    if "correlation_id" in conditions:
        assert reads == ["SEARCH t USING INDEX cairnq_lean_correlation_idx (correlation_id=?)"]
    elif "status" in conditions:
        assert reads == ["SEARCH t USING INDEX cairnq_lean_finished_idx (status=?)"]
    elif "root_id" in conditions:
        assert reads == ["SEARCH t USING INDEX sqlite_autoindex_cairnq_tasks_1 (id=?)"]
    else:
        assert reads == ["SCAN t USING INDEX sqlite_autoindex_cairnq_tasks_1"]
    assert not any("ORDER BY" in step for step in steps), steps


def steps_of(connection: sqlite3.Connection, run: Callable[[], Any]) -> int:
    """How many instructions of SQLite's virtual machine that took, to the nearest ten."""
    ticks = 0

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    connection.set_progress_handler(tick, 10)
    run()
    connection.set_progress_handler(None, 0)
    return ticks * 10


CLAIMS = {
    "any name": ("claim", {}),
    "our name, alone in its queue": ("claim_named", {}),
    "our name, behind 40,000 of a foreign one": ("claim_named", {"queues": ["mixed"]}),
    "our name, behind 5,000 suspects": ("claim_named", {"queues": ["haunted"]}),
    "one of 5,000 suspects": ("claim_suspect", {"queues": ["haunted"]}),
    "a look for suspects": ("suspect_waits", {"queues": ["haunted"]}),
    "a look behind suspects": ("due", {"queues": ["haunted"]}),
    "two queues": ("claim", {"queues": ["default", "mixed"]}),
    "a look": ("due", {}),
    "an outlook": ("outlook", {"queues": ["default", "mixed"], "bound": 10}),
    "a look for a name": ("due", {"queues": ["mixed"]}),
    "the depth of a queue": ("queue_depth", {}),
    "which queues hold work": ("queued_queues", {}),
}


@pytest.mark.parametrize("which", CLAIMS)
def test_a_claim_costs_the_same_whatever_the_backlog(files: dict[int, Path], which: str) -> None:
    name, values = CLAIMS[which]
    text, arguments = arranged(name, **values)
    cost, found = {}, {}
    for rows, path in files.items():
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("begin")
            connection.execute(text, arguments).fetchall()
            found[rows] = []
            cost[rows] = steps_of(connection, lambda: found[rows].extend(connection.execute(text, arguments)))  # noqa: B023
            connection.execute("rollback")
    assert len(found[ROWS]) == len(found[1000]) > 0
    assert cost[ROWS] <= 1.5 * cost[1000], cost


@pytest.mark.parametrize("name", ["claim", "claim_named", "due"])
def test_a_claim_steps_over_priorities_of_which_nothing_is_due(files: dict[int, Path], name: str) -> None:
    text, arguments = arranged(name)
    with closing(sqlite3.connect(files[ROWS], isolation_level=None)) as connection:
        connection.execute("begin")
        assert connection.execute(
            "select count(*) from cairnq_tasks where status = 'queued' and priority = 9 and queue = 'default'"
        ).fetchone() == (20_000,)
        assert steps_of(connection, lambda: connection.execute(text, arguments).fetchall()) < 5_000
        connection.execute("rollback")


def test_ten_thousand_priorities_are_not_all_walked(files: dict[int, Path]) -> None:
    text, arguments = arranged("claim")
    with closing(sqlite3.connect(files[ROWS], isolation_level=None)) as connection:
        connection.execute("begin")
        connection.execute("update cairnq_tasks set priority = 100 + rowid where rowid <= 10000 and status = 'queued'")
        assert steps_of(connection, lambda: connection.execute(text, arguments).fetchall()) < 10_000
        connection.execute("rollback")


@pytest.mark.parametrize(("name", "count"), [("settle", 500), ("settle_forget", 500), ("beat", 500), ("standing", 500)])
def test_many_rows_cost_as_much_each_as_a_few(files: dict[int, Path], name: str, count: int) -> None:
    with closing(sqlite3.connect(files[ROWS], isolation_level=None)) as connection:
        cost = {}
        ids = [row[0] for row in connection.execute("select id from cairnq_tasks where status = 'running'")][:count]
        assert len(ids) == count
        for size in (10, count):
            row = {
                "worker_ids": "me",
                "attempts": 1,
                "leases_ms": 1,
                "outcomes": "fail",
                "bodies": "{}",
                "delays_ms": 0,
            }
            repeated = {column: [value] * size for column, value in row.items()}
            text, arguments = arranged(name, ids=ids[:size], **repeated)
            connection.execute("begin")
            cost[size] = steps_of(connection, lambda: connection.execute(text, arguments).fetchall()) / size  # noqa: B023
            connection.execute("rollback")
    assert cost[count] <= 1.2 * cost[10], cost
