"""How a test reaches its database, whichever kind it is: stores, clients and workers over one address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cairnq import CairnQ, Worker


def is_file(dsn: str) -> bool:
    """Whether this address is the path of an SQLite file."""
    return "://" not in dsn


@dataclass(frozen=True, slots=True)
class Route:
    """An address (DSN or path), and what a store must be told beside it."""

    dsn: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def store(self, **options: Any) -> Any:
        """A store that is not connected yet. `Any`, for the suite asks of all stores what `TaskStore` promises."""
        from cairnq import PostgresStore, SqliteStore

        kind = SqliteStore if is_file(self.dsn) else PostgresStore
        return kind(self.dsn, **{**self.options, **options})

    def client(self, **options: Any) -> CairnQ:
        from cairnq import CairnQ

        make = CairnQ.sqlite if is_file(self.dsn) else CairnQ.postgres
        return make(self.dsn, **{**self.options, **options})

    def worker(self, **options: Any) -> Worker:
        from cairnq import Worker

        make = Worker.sqlite if is_file(self.dsn) else Worker.postgres
        return make(self.dsn, **{**self.options, **options})
