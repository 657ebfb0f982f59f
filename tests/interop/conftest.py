"""One database, two SDKs: ours in this process, the peer's in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cairnq import CairnQ
from tests.support import peers
from tests.support.peers import Peer, PeerProcess


@pytest.fixture(scope="session", params=[peers.PINNED, peers.NEWEST])
def release(request: pytest.FixtureRequest) -> Peer:
    """The other SDK: the oldest release that we share databases with, and the newest."""
    try:
        return peers.install(request.param)
    except peers.PeerUnavailable as error:
        pytest.skip(f"cairnq {request.param} from PyPI: {error}")


@pytest.fixture(params=["made by us", "made by them"])
async def shared(request: pytest.FixtureRequest, release: Peer, database: str, empty_database: str) -> str:
    """The DSN of a database that one of the two has made."""
    if request.param == "made by us":
        return database
    async with peers.running(release, empty_database):
        return empty_database


@pytest.fixture
async def theirs(release: Peer, shared: str) -> AsyncIterator[PeerProcess]:
    """Their client, and a worker once `call("work")` has started it."""
    async with peers.running(release, shared) as process:
        yield process


@pytest.fixture
async def ours(shared: str) -> AsyncIterator[CairnQ]:
    """Our client."""
    async with CairnQ.postgres(shared) as client:
        yield client
