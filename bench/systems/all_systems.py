"""The systems, in the order in which they are shown."""

from __future__ import annotations

from bench.systems.graphile import GRAPHILE
from bench.systems.ours import OURS
from bench.systems.pgqueuer import PGQUEUER
from bench.systems.procrastinate import PROCRASTINATE
from bench.systems.pypi_cairnq import PYPI_CAIRNQ

__all__ = ["ALL", "GRAPHILE", "OURS", "PEERS", "PGQUEUER", "PROCRASTINATE", "PYPI_CAIRNQ"]

PEERS = (PYPI_CAIRNQ, PROCRASTINATE, PGQUEUER, GRAPHILE)
ALL = (OURS, *PEERS)
