"""Single submits with the wake-up trigger beside without it, one listener: in slices that take turns.

A machine's speed drifts by more than what is measured here; slices of a second, side by side, drift together.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from bench import databases
from bench.figures import Figure
from bench.listener import listening
from bench.server import pgbench
from cairnq import CairnQ
from cairnq.db.statements import Statements
from tests.support.cluster import Cluster

CLIENTS = (1, 16)
MUST = 0.8
NONE, OURS, UNGATED, STATEMENT = "none", "ours", "ungated", "by statement"

_UNGATED = """
create function ungated() returns trigger language plpgsql as $$
begin perform pg_notify('cairnq_queued', new.queue); return null; end $$;
create trigger other_notify after insert or update of status on cairnq_tasks
    for each row when (new.status <> 'running') execute function ungated();
"""
_BY_STATEMENT = """
create function by_statement() returns trigger language plpgsql as $$
declare queue text;
begin
    for queue in select distinct n.queue from inserted n where n.status = 'queued' loop
        if pg_try_advisory_xact_lock(
            hashtext(queue), ((extract(epoch from clock_timestamp()) * 20)::bigint %% 2147483647)::integer
        ) then
            perform pg_notify('cairnq_queued', queue);
        end if;
    end loop;
    return null;
end $$;
create trigger other_notify after insert on cairnq_tasks
    referencing new table as inserted for each statement execute function by_statement();
"""
_OTHER = {UNGATED: _UNGATED, STATEMENT: _BY_STATEMENT}

Rate = Callable[[], float]


def measure(server: Cluster, *, quick: bool) -> Iterator[Figure]:
    dsns = {variant: _database(server, variant) for variant in (NONE, OURS, UNGATED, STATEMENT)}
    rounds = 5 if quick else 15
    for clients in CLIENTS:
        raw = {variant: _pgbench(server, dsn, clients) for variant, dsn in dsns.items()}
        yield from _figures(f"the statement by pgbench, {clients} clients", dsns, raw, rounds)
    for clients in CLIENTS:
        through = {variant: _client(dsns[variant], clients) for variant in (NONE, OURS)}
        yield from _figures(f"CairnQ.submit, {clients} at a time", dsns, through, rounds)


def _database(server: Cluster, variant: str) -> str:
    dsn = databases.ours(server)
    with psycopg.connect(dsn, autocommit=True) as connection:
        if variant != OURS:
            connection.execute("alter table cairnq_tasks disable trigger cairnq_tasks_notify")
        if variant in _OTHER:
            connection.execute(_OTHER[variant].replace("%%", "%").encode())
    return dsn


def _figures(what: str, dsns: Mapping[str, str], rates: Mapping[str, Rate], rounds: int) -> Iterator[Figure]:
    with _listeners([dsns[variant] for variant in rates]):
        slices = _take_turns(rates, rounds)
    none = statistics.median(slices[NONE])
    for variant in rates:
        if variant != NONE:
            ratio = statistics.median(with_ / without for with_, without in zip(slices[variant], slices[NONE], strict=True))
            detail = f"{statistics.median(slices[variant]):,.0f} a second beside {none:,.0f}, {rounds} pairs of slices"
            name = f"submits with the trigger ({variant}) beside none: {what}"
            yield Figure(name, ratio, "x", detail, target=MUST if variant == OURS else None, better="higher")


def _take_turns(rates: Mapping[str, Rate], rounds: int) -> dict[str, list[float]]:
    slices: dict[str, list[float]] = {variant: [] for variant in rates}
    for number in range(rounds):
        order = list(rates) if number % 2 == 0 else list(reversed(rates))
        for variant in order:
            slices[variant].append(rates[variant]())
    return slices


@contextmanager
def _listeners(dsns: Sequence[str]) -> Iterator[None]:
    if not dsns:
        yield
        return
    with listening(dsns[0]), _listeners(dsns[1:]):
        yield


def _pgbench(server: Cluster, dsn: str, clients: int) -> Rate:
    text = Statements("postgres", "public").get("submit_one").text
    values = {
        "id": "'task_' || lpad(:r::bigint::text, 26, '0')",
        "name": "'noop'",
        "queue": "'default'",
        "payload": f"""'{{"text": "{databases.PAYLOAD_TEXT}"}}'""",
        "metadata": "'{}'",
        **{"max_attempts": "3", "priority": "0", "parent_id": "null", "root_id": "null"},
        **{"correlation_id": "null", "delay_ms": "0"},
    }
    names = Statements("postgres", "public").get("submit_one").parameters
    for number, name in reversed(list(enumerate(names, start=1))):
        text = text.replace(f"${number}", f"({values[str(name)]})")
    script = "\\set r random(1, 9000000000000000000)\n" + " ".join(text.split()) + ";\n"
    return lambda: pgbench(server, dsn, script, clients=clients, seconds=1)


def _client(dsn: str, clients: int) -> Rate:
    return lambda: asyncio.run(_submit_for_a_second(dsn, clients))


async def _submit_for_a_second(dsn: str, clients: int) -> float:
    payload = {"text": databases.PAYLOAD_TEXT}
    async with CairnQ.postgres(dsn, min_size=clients, max_size=clients) as client:
        await asyncio.gather(*(client.submit("noop", payload) for _ in range(4 * clients)))  # connected and prepared
        start = time.perf_counter()

        async def submit_on() -> int:
            count = 0
            while time.perf_counter() - start < 1:
                await client.submit("noop", payload)
                count += 1
            return count

        counts = await asyncio.gather(*(submit_on() for _ in range(clients)))
        return sum(counts) / (time.perf_counter() - start)
