"""PyPI's cairnq: the other Python SDK of our protocol, on its own tables."""

from __future__ import annotations

from functools import partial

from bench.systems.base import PROGRAMS, Setting
from bench.systems.installing import python_peer
from bench.systems.protocol import ProtocolSystem

_DEFAULT = Setting("concurrency 10", 1_500, {"concurrency": 10, "pool": 10, "batch": None}, best=False)

PYPI_CAIRNQ = ProtocolSystem(
    name="cairnq (PyPI)",
    install=partial(python_peer, "cairnq", ("cairnq[postgres]", "uvloop"), PROGRAMS / "pypi_cairnq.py"),
    settings=(
        Setting("concurrency 64, pool 20", 2_400, {"concurrency": 64, "pool": 20, "batch": None}),
        _DEFAULT,
        Setting("64 batches of 100, pool 20", 2_300, {"concurrency": 64, "pool": 20, "batch": 100}, best=False),
    ),
    waiting=_DEFAULT,
    bulk=False,
    concurrency_of=lambda number: {"concurrency": number, "pool": 20, "batch": None},
)
