"""The floors under our own rates: the same statements, driven by a bare Python loop and by pgbench; and COPY."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from functools import cache, partial

from bench import databases
from bench.counters import Observer
from bench.draining import Asked, Drained, drain_in
from bench.listener import listening
from bench.server import connect_as_ours, pgbench
from bench.session import Session
from bench.systems.base import Setting
from bench.systems.installing import Installed
from bench.systems.ours import OURS
from bench.systems.protocol import ProtocolSystem
from cairnq.db.statements import Statements

BATCH = 100
PACE = 40_000
CLIENTS = 2
"""Of pgbench, for each worker process that it stands for."""
LOOP = "floor: a bare loop, settle and claim of 100 in one round trip"
PGBENCH = "floor: pgbench, claim of 100, then settle"
NAMES = (LOOP, PGBENCH)
INSERT = "floor: pgbench, the statement of one submit"
COPY = "floor: COPY into the table"


@cache
def _installed() -> Installed:
    return dataclasses.replace(OURS.install(), command=(sys.executable, "-m", "bench.programs.bare"))


BARE = ProtocolSystem(
    name="bare loop",
    install=_installed,
    settings=(),
    waiting=Setting("claims what it hears of", 0, {"batch": 1}),
)
"""It works as a peer's program does, on our tables."""


def drains(session: Session, processes: int, seconds: float) -> dict[str, Callable[[], Drained]]:
    count = round(PACE * (seconds if not session.quick else 0.5))
    setting = Setting(f"batch {BATCH}", PACE, {"batch": BATCH})
    return {
        LOOP: partial(_bare, session, setting, Asked(count, processes=processes)),
        PGBENCH: partial(_pgbench, session, count, processes * CLIENTS),
    }


def _bare(session: Session, setting: Setting, asked: Asked) -> Drained:
    with session.database(OURS) as dsn:
        OURS.fill(dsn, asked.count, asked.size)
        session.tidy(dsn)
        return drain_in(session, dsn, BARE, setting, asked)


def _pgbench(session: Session, count: int, clients: int) -> Drained:
    with session.database(OURS) as dsn:
        OURS.fill(dsn, count, 100)
        session.tidy(dsn)
        with Observer(session.server, dsn) as observer:
            before = observer.spent()
            rounds = count // BATCH // clients * clients
            rate = pgbench(session.server, dsn, _script(), clients=clients, transactions=rounds)
            spent = observer.spent().since(before)
        done = rounds * BATCH
        return Drained(rate * BATCH, 0.0, 0.0, spent.statements / done, spent.wal / done)


def inserts(session: Session, seconds: float) -> tuple[float, float]:
    """Rows a second by one connection, and microseconds a statement."""
    with session.database(OURS) as dsn, listening(dsn):
        rate = pgbench(session.server, dsn, submit_script(), clients=1, transactions=round(2_000 * seconds))
    return rate, 1e6 / rate


def copies(session: Session, seconds: float, size: int) -> tuple[float, float]:
    """Rows a second by one connection, `size` rows a COPY, and microseconds a COPY."""
    columns = ("id", "name", "queue", "status", "payload", "run_at_ms", "root_id", "created_at_ms", "updated_at_ms")
    payload = f'{{"text": "{databases.PAYLOAD_TEXT}"}}'
    copy = f"copy cairnq_tasks ({', '.join(columns)}) from stdin".encode()
    done = 0
    with session.database(OURS) as dsn, listening(dsn), connect_as_ours(dsn) as connection:
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            with connection.cursor() as cursor, cursor.copy(copy) as rows:
                for task_id in (f"task_{number:026}" for number in range(done, done + size)):
                    rows.write_row((task_id, "work", "default", "queued", payload, 1, task_id, 1, 1))
            done += size
        took = time.perf_counter() - start
    return done / took, took / (done / size) * 1e6


def submit_script() -> str:
    """One submit, with a random id."""
    submit = Statements("postgres", "public").get("submit_one")
    values = {
        "id": "'task_' || lpad(:r::bigint::text, 26, '0')",
        "name": "'noop'",
        "queue": "'default'",
        "payload": f"""'{{"text": "{databases.PAYLOAD_TEXT}"}}'""",
        "metadata": "'{}'",
        "max_attempts": "3",
        "priority": "0",
        "parent_id": "null",
        "root_id": "null",
        "correlation_id": "null",
        "delay_ms": "0",
    }
    text = _with_values(submit.text, submit.parameters, values)
    return f"\\set r random(1, 9000000000000000000)\n{_line(text)};\n"


def _script() -> str:
    """One claim, whose rows become the arrays of one settlement."""
    statements = Statements("postgres", "public")
    claim, settle = statements.get("claim"), statements.get("settle")
    text = _with_values(
        claim.text,
        claim.parameters,
        {
            "queues": "array['default']",
            "worker_id": "'worker_pgbench_' || :client_id::text",
            "lease_ms": "30000",
            "limit": str(BATCH),
        },
    )
    head, update = text.rsplit("\nupdate ", 1)
    update = update.rsplit("returning", 1)[0]
    claimed = (
        f"{head}, claimed as (update {update} returning t.id, t.attempt) "
        "select coalesce(array_agg(c.id), '{}') as ids, coalesce(array_agg(c.attempt), '{}') as attempts, "
        "array_fill('complete'::text, array[count(*)::int]) as outcomes, "
        "array_fill('null'::text, array[count(*)::int]) as bodies, "
        "array_fill(0, array[count(*)::int]) as delays from claimed c"
    )
    settled = _with_values(
        settle.text,
        settle.parameters,
        {
            "worker_id": "'worker_pgbench_' || :client_id::text",
            "ids": ":ids",
            "attempts": ":attempts",
            "outcomes": ":outcomes",
            "bodies": ":bodies",
            "delays_ms": ":delays",
        },
    )
    return f"{_line(claimed)} \\gset\n{_line(settled)};\n"


def _with_values(text: str, names: tuple[str | tuple[str, ...], ...], values: dict[str, str]) -> str:
    for number, name in reversed(list(enumerate(names, start=1))):
        text = text.replace(f"${number}", f"({values[str(name)]})")
    return text


def _line(text: str) -> str:
    return " ".join(text.split())
