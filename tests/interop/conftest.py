"""One database, two SDKs: ours in this process, the peer's in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cairnq import CairnQ
from tests.support import peers
from tests.support.cluster import Cluster
from tests.support.peers import Peer, PeerProcess
from tests.support.routes import Route


@pytest.fixture(scope="session", params=[peers.PINNED, peers.NEWEST])
def release(request: pytest.FixtureRequest) -> Peer:
    """The other SDK: the oldest release that we share databases with, and the newest."""
    try:
        return peers.install(request.param)
    except peers.PeerUnavailable as error:
        pytest.skip(f"cairnq {request.param} from PyPI: {error}")


@pytest.fixture(scope="session")
def their_template(server: Cluster, release: Peer) -> str:
    """A database that they have made, to copy from."""
    name = server.create_database()

    async def connect_once() -> None:
        async with peers.running(release, server.dsn(name)):
            pass

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, connect_once()).result()
    server.freeze_database(name)
    return name


@pytest.fixture(params=["made by us", "made by them"])
def shared(request: pytest.FixtureRequest, server: Cluster, template: str, their_template: str) -> Iterator[str]:
    """The DSN of a database that one of the two has made."""
    name = server.create_database(template if request.param == "made by us" else their_template)
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture
async def theirs(release: Peer, shared: str) -> AsyncIterator[PeerProcess]:
    """Their client, and a worker once `call("work")` has started it."""
    async with peers.running(release, shared) as process:
        yield process


@pytest.fixture
async def ours(shared: str) -> AsyncIterator[CairnQ]:
    """Our client."""
    async with Route(shared).client() as client:
        yield client
