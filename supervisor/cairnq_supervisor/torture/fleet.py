"""One host of the fleet: a real `cairnq run`, started again whenever it ends, and every process of it by pidfd."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairnq_supervisor.pure.exits import Exit

Event = dict[str, Any]

FAULTS = frozenset({"supervisor.fault", "keeper.fault", "worker.crashed", "keeper.crashed", "gateway.crashed"})
"""Events that no fault from outside excuses: they tell of errors in the program."""

CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""How no process dies that is killed from outside."""

_LOOK_S = 0.05
_LAST_WORDS_S = 2.0
_STARTS = {"worker.started": "worker", "keeper.started": "keeper"}
_UNCATCHABLE = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT})
_PR_SET_PDEATHSIG = 1
_EXCUSED = frozenset({Exit.OK, Exit.SOFTWARE, Exit.UNAVAILABLE, Exit.TEMPFAIL, -signal.SIGKILL})
"""How a supervisor may end while faults happen: drained, or not in time, or it could not begin."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Member:
    """One child of a supervisor."""

    role: str
    pid: int
    pidfd: int


@dataclass(slots=True)
class Host:
    """Its configuration, log and events are in `folder`."""

    number: int
    folder: Path
    environment: Mapping[str, str]
    members: dict[int, Member] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    wrongs: list[str] = field(default_factory=list)
    """What no fault from outside excuses."""

    exits: Counter[int] = field(default_factory=Counter)
    process: asyncio.subprocess.Process | None = None
    _pidfd: int | None = None
    """Of `process` while it runs. Its own methods are not for signals: they look whether it has ended, and may take its
    exit code from asyncio, which then says 255."""

    _hearings: list[asyncio.Task[None]] = field(default_factory=list)
    _begun: bool = False
    _closing: bool = False
    _decided: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it can run at all."""

    @property
    def config(self) -> Path:
        return self.folder / f"host-{self.number}.toml"

    @property
    def log(self) -> Path:
        return self.folder / f"host-{self.number}.log"

    @contextlib.asynccontextmanager
    async def alive(self) -> AsyncIterator[Host]:
        """Keep a supervisor running. At the end nothing of it is left, whatever happened."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield self
        finally:
            self._closing = True
            self._end_all()
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await self._heard_to_the_end()

    async def is_running(self, seconds: float) -> bool:
        """Whether it comes to say in time that every worker is ready, before anything goes wrong."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._decided.wait()
        return self.events["supervisor.running"] > 0 and not self.wrongs

    def send(self, number: signal.Signals) -> bool:
        """A signal to the supervisor, if there is one that can take it: not before its first line of code."""
        if self._pidfd is None or not (self._begun or number in _UNCATCHABLE):
            return False
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:  # it has just ended
            return False
        return True

    def living(self, role: str | None = None) -> list[Member]:
        """Children that run, and orphans that have not left yet."""
        for member in list(self.members.values()):
            if select.select([member.pidfd], [], [], 0)[0]:
                del self.members[member.pid]
                os.close(member.pidfd)
        return [member for member in self.members.values() if role in (None, member.role)]

    def signal_all(self, number: signal.Signals) -> bool:
        """To every process of this host."""
        found = self.send(number)
        for member in self.living():
            hit(member, number)
        return found

    async def drain(self, seconds: float) -> int | None:
        """SIGTERM for good, and the exit code; None where it did not end."""
        self._closing = True
        try:
            async with asyncio.timeout(seconds):
                while not self._begun:  # noqa: ASYNC110 - it has just been started again
                    await asyncio.sleep(_LOOK_S)
                self.send(signal.SIGTERM)
                return await self.process.wait() if self.process is not None else None
        except TimeoutError:
            return None

    async def _keep(self) -> None:
        while not self._closing:
            await self._once()

    async def _once(self) -> None:
        reader_fd, writer_fd = os.pipe()
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "cairnq_supervisor", "run", "-c", str(self.config), "--log", "text"),
                *("--events-fd", str(writer_fd)),
                stdin=asyncio.subprocess.DEVNULL,
                stderr=log,
                stdout=log,
                pass_fds=(writer_fd,),
                env=dict(self.environment),
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        os.close(writer_fd)
        self.process, self._begun = process, False
        with contextlib.suppress(ProcessLookupError):  # it has ended at once
            self._pidfd = os.pidfd_open(process.pid)
        self._hearings.append(asyncio.create_task(self._hear(reader_fd, process)))
        try:
            code = await process.wait()
        finally:
            self._decided.set()
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None
        self.exits[code] += 1
        if code not in _EXCUSED:
            self.wrongs.append(f"host {self.number}: its supervisor ended with {code}")

    async def _heard_to_the_end(self) -> None:
        """What they said last is not to be missed; raises what went wrong in listening."""
        if self._hearings:
            await asyncio.wait(self._hearings, timeout=_LAST_WORDS_S)
        for hearing in self._hearings:
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hearing

    async def _hear(self, events_fd: int, process: asyncio.subprocess.Process) -> None:
        """A supervisor and its children. Orphans speak on while the next one begins beside them."""
        reader = asyncio.StreamReader(limit=1 << 22)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(events_fd, "rb")
        )
        with contextlib.closing(transport):
            async for line in reader:
                if not line.endswith(b"\n"):
                    break  # killed in the middle of a word
                self._take(json.loads(line), process)

    def _take(self, event: Event, process: asyncio.subprocess.Process) -> None:
        name = event["event"]
        self._begun = self._begun or process is self.process
        self.events[name] += 1
        if role := _STARTS.get(name):
            self._meet(role, event["pid"], process.pid)
        if name in FAULTS or event.get("signal") in CRASHES:
            self.wrongs.append(f"host {self.number}: {json.dumps(event)}")
        if name == "supervisor.running" or self.wrongs:
            self._decided.set()

    def _meet(self, role: str, pid: int, supervisor: int) -> None:
        """A pid becomes a pidfd the moment it is heard of; by its parent it is known to be the one that is meant."""
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        if _parent(pid) != supervisor or pid in self.members:
            os.close(pidfd)
            return
        self.members[pid] = Member(role, pid, pidfd)

    def _end_all(self) -> None:
        """Orphans would leave by themselves, but not before their leases are nearly over."""
        self.send(signal.SIGKILL)
        for member in self.living():
            hit(member, signal.SIGKILL)
            os.close(member.pidfd)
        self.members.clear()


def hit(member: Member, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
        signal.pidfd_send_signal(member.pidfd, number)


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _die_with_parent() -> None:
    """Should the harness be killed, its fleets drain: they must not work on for nobody.

    Runs between fork and exec: one system call, and nothing that takes a lock.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
