"""A claim beside a deep backlog, and a beat: buffers, never time."""

from __future__ import annotations

from collections.abc import Iterator

from bench import databases
from bench.figures import Figure
from bench.server import connect_as_ours
from bench.session import Session
from tests.sql.plans import Prepared

SHALLOW, DEEP = 1_000, 500_000
LIMIT = 10
CLAIMS = 20
STATEMENTS = (("claim", "any name"), ("claim_named", "one name"))


def measure(session: Session) -> Iterator[Figure]:
    shallow, deep = databases.ours(session.server), databases.ours(session.server)
    databases.fill(shallow, SHALLOW)
    databases.fill(deep, DEEP)
    for statement, what in STATEMENTS[: 1 if session.quick else None]:
        few, many = _buffers(shallow, statement), _buffers(deep, statement)
        detail = f"{many:.0f} buffers for {LIMIT} tasks of {DEEP:,}, {few:.0f} of {SHALLOW:,}, {CLAIMS} claims each"
        yield Figure(f"a claim ({what}) at {DEEP:,} queued beside {SHALLOW:,}", many / few, "x", detail, target=1.5)


def _buffers(dsn: str, statement: str) -> float:
    """The mean over claims that commit, so that later ones meet what earlier ones left behind."""
    wanted = {"queues": ["default"], "worker_id": "worker_bench", "lease_ms": 3_600_000, "limit": LIMIT}
    if statement == "claim_named":
        wanted["names"] = ["noop"]
    with connect_as_ours(dsn) as connection:
        claim = Prepared(connection, statement)
        plans = [claim.explain(keep=True, **wanted) for _ in range(CLAIMS)]
    if any(plan.rows != LIMIT for plan in plans):
        raise RuntimeError(f"{statement} claimed {[plan.rows for plan in plans]} tasks, not {LIMIT} each time")
    return sum(plan.buffers for plan in plans) / CLAIMS
