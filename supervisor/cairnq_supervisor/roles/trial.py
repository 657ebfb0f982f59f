"""A worker for a moment: forked and booted as the supervisor's are, it says how much memory it has, and ends."""

from __future__ import annotations

import gc
import os
import select
import struct
import sys
from dataclasses import dataclass

from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.roles.application import ApplicationError, load_registry
from cairnq_supervisor.roles.loops import runner
from cairnq_supervisor.roles.randomness import part_random_states
from cairnq_supervisor.system.descriptors import Descriptors
from cairnq_supervisor.system.processes import Process, own_bytes, resident_bytes
from cairnq_supervisor.system.spawn import SpawnError, spawn

_FIGURES = struct.Struct("qq")


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes in RAM: of a worker that has booted, how much of it is its own, and of the process that forked it."""

    resident: int
    own: int
    parent: int


def try_worker(settings: Settings) -> Footprint | None:
    """None where it does not come up, or the system does not say. Call it where the supervisor would fork: with the
    application imported if it is preloaded, and not yet if it is not.
    """
    ours, theirs = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the child would write once more what the import has printed
    gc.collect()
    gc.freeze()
    try:
        process = spawn(lambda: _measure(settings, theirs), title="cairnq: check", descriptors=Descriptors())
    except SpawnError:
        return None
    else:
        figures = _read(ours, process)
    finally:
        gc.unfreeze()
        os.close(ours)
        os.close(theirs)
    parent = resident_bytes(os.getpid())
    if len(figures) != _FIGURES.size or parent is None:
        return None
    resident, own = _FIGURES.unpack(figures)
    return Footprint(resident, own, parent)


def _read(pipe: int, process: Process) -> bytes:
    """What it wrote before its end. Not until the pipe's end: programs that the application started may hold that."""
    select.select([process.pidfd], [], [])
    process.kill_group()
    process.reap()
    return os.read(pipe, _FIGURES.size) if select.select([pipe], [], [], 0)[0] else b""


def _measure(settings: Settings, pipe: int) -> int:
    part_random_states()
    return runner().run(_look(settings, pipe))


async def _look(settings: Settings, pipe: int) -> int:
    if not settings.preload:
        try:
            load_registry(settings.app)
        except ApplicationError:
            return 0  # whoever imports it next says so
    resident, own = resident_bytes(os.getpid()), own_bytes(os.getpid())
    if resident is not None and own is not None:
        os.write(pipe, _FIGURES.pack(resident, own))
    return 0
