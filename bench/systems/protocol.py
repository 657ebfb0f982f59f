"""What all systems share whose tables are those of protocol 1: they are filled by one insert, and asked in one way."""

from __future__ import annotations

from bench import databases
from bench.systems.base import System

LEFT = "select exists (select from cairnq_tasks where status = 'queued' or status = 'running')"
HELD = "select count(*) from cairnq_tasks where status = 'running'"
FAILED = "select count(*) from cairnq_tasks where status in ('failed', 'canceled')"
CHANNEL = "cairnq_queued"


class ProtocolSystem(System):
    def fill(self, dsn: str, count: int, size: int) -> None:
        databases.fill(dsn, count, name="work", size=size)
