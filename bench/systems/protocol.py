"""What all systems share whose tables are those of protocol 1: they are filled by one insert, and asked in one way."""

from __future__ import annotations

from dataclasses import dataclass

from bench import databases
from bench.systems.base import System


@dataclass(frozen=True, kw_only=True)
class ProtocolSystem(System):
    channel: str = "cairnq_queued"
    left: str = "select exists (select from cairnq_tasks where status = 'queued' or status = 'running')"
    held: str = "select count(*) from cairnq_tasks where status = 'running'"
    failed: str = "select count(*) from cairnq_tasks where status in ('failed', 'canceled')"

    def fill(self, dsn: str, count: int, size: int) -> None:
        databases.fill(dsn, count, name="work", size=size)
