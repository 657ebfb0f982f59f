"""A clock inside one database that tests move: PostgreSQL's own clock functions, shadowed through the search path."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

SCHEMA = "test_clock"

_SHADOWS = f"""
create schema {SCHEMA};
create table {SCHEMA}.shift (by_ms bigint not null);
insert into {SCHEMA}.shift values (0);

create function {SCHEMA}.clock_timestamp() returns timestamptz language sql volatile as
    'select pg_catalog.clock_timestamp() + (select by_ms from {SCHEMA}.shift) * interval ''1 ms''';
create function {SCHEMA}.now() returns timestamptz language sql stable as
    'select pg_catalog.now() + (select by_ms from {SCHEMA}.shift) * interval ''1 ms''';
create function {SCHEMA}.statement_timestamp() returns timestamptz language sql stable as
    'select pg_catalog.statement_timestamp() + (select by_ms from {SCHEMA}.shift) * interval ''1 ms''';
create function {SCHEMA}.transaction_timestamp() returns timestamptz language sql stable as
    'select pg_catalog.transaction_timestamp() + (select by_ms from {SCHEMA}.shift) * interval ''1 ms''';
grant usage on schema {SCHEMA} to public;
grant select on {SCHEMA}.shift to public;
"""


class ClockOfDatabase:
    """Moves the time of every connection that is opened after this was made."""

    def __init__(self, dsn: str, *, schema: str = "public") -> None:
        """`schema` is where cairnq lives in that database."""
        self.dsn = dsn
        name = conninfo_to_dict(dsn)["dbname"]
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute(_SHADOWS)
        # The clock must not come first, or current_schema() would be its; pg_catalog is named, or it would come first.
        self._connection.execute(f'alter database "{name}" set search_path = "{schema}", {SCHEMA}, pg_catalog')

    def advance(self, ms: int) -> None:
        """Later statements see a time `ms` milliseconds later; negative steps back."""
        self._connection.execute(f"update {SCHEMA}.shift set by_ms = by_ms + {int(ms)}")

    def close(self) -> None:
        self._connection.close()
