"""A large database for each server, and the proof that a test which names a statement has run it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cairnq.db.statements import Statements
from tests.sql import backlog as backlogs
from tests.sql.backlog import Backlog
from tests.sql.plans import Connection, Prepared, connect
from tests.support.cluster import Cluster

Prepare = Callable[..., Prepared]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "statement(*names): the test runs these statement files of sql/postgres")


@pytest.fixture(autouse=True)
def run_what_is_named(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that claims to cover a statement must have asked for its text."""
    asked: set[str] = set()
    get = Statements.get

    def remember(self: Statements, name: str, *rest: Any) -> Any:
        asked.add(name)
        return get(self, name, *rest)

    monkeypatch.setattr(Statements, "get", remember)
    yield
    named = {name for mark in request.node.iter_markers("statement") for name in mark.args}
    assert named <= asked, f"the test is marked with {sorted(named - asked)} and did not run it"


@pytest.fixture(scope="session")
def backlog(server: Cluster) -> Backlog:
    """A quarter of a million tasks, under statistics of two kinds. Read it, or roll back."""
    return backlogs.build(server)


@pytest.fixture(scope="session")
def joined(server: Cluster, backlog: Backlog) -> str:
    """A database with the same tasks and statistics of an idle hour, but made by another SDK: it has more indexes."""
    return backlogs.join(server, backlog.idle)


@pytest.fixture(params=["fresh", "idle", "none"])
def statistics(request: pytest.FixtureRequest) -> str:
    """What the planner knows: the table as it is, as it was while nothing was running, or nothing at all."""
    return str(request.param)


@pytest.fixture(params=["ours", "custom", "generic"])
def planning(request: pytest.FixtureRequest) -> str:
    """How a connection plans: with our settings, or with the server's own and plans of the one or the other kind."""
    return str(request.param)


@pytest.fixture
def connection(backlog: Backlog, statistics: str, planning: str) -> Iterator[Connection]:
    """To the large table."""
    with connect(backlog.dsn(statistics), planning) as connection:
        yield connection


@pytest.fixture
def prepare(connection: Connection) -> Prepare:
    """`prepare(statement, conditions, literals)` on the large table."""
    return functools.partial(Prepared, connection)
