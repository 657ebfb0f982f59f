"""Makes the faults of a schedule happen: each kind is a few lines of signals, proxies, locks or clocks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from cairnq.pure.clock import boottime
from cairnq_supervisor.torture.fleet import Host, hit
from cairnq_supervisor.torture.ground import Ground
from cairnq_supervisor.torture.schedule import Fault, Kind

CLOCK_FILE = "clock-{}"
_SHIFTS_S = (-3600, -7, -1, 1, 7, 3600)
_RESTART_PATIENCE_S = 60.0
_APART_S = 0.2
"""Seconds between the looks of all faults that have found nobody, so that a fleet that is back does not meet them all
at once."""

_ENDS = frozenset({Kind.SUPERVISOR_KILL, Kind.SUPERVISOR_DRAIN, Kind.SUPERVISOR_QUIT})
"""What does not wait: a fleet that is down is not to be ended again as soon as it is back."""

Blow: TypeAlias = Callable[[Fault, Host], Awaitable[bool]]
"""Makes a fault happen to a host, and end; False where there was nobody to hurt. Says when it has `_struck`."""


class Injector:
    """Works through a schedule. `injected` counts what happened, `missed` what found nobody to hurt."""

    def __init__(
        self,
        ground: Ground,
        hosts: Sequence[Host],
        folder: Path,
        *,
        flood: Callable[[float], Awaitable[None]],
        restart: Sequence[str],
    ) -> None:
        """`flood(target)` submits many tasks at once. `restart`: the command that restarts the server."""
        self._ground = ground
        self._hosts = hosts
        self._folder = folder
        self._flood = flood
        self._restart = restart
        self.injected: Counter[Kind] = Counter()
        self.missed: Counter[Kind] = Counter()
        self.wrongs: list[str] = []
        self._struck_ones: set[Fault] = set()
        self._next_look = 0.0
        self._blows: Mapping[Kind, Blow] = {
            Kind.WORKER_KILL: partial(self._hit, "worker", signal.SIGKILL),
            Kind.WORKER_STOP: partial(self._hit, "worker", signal.SIGSTOP),
            Kind.WORKER_TERM: partial(self._hit, "worker", signal.SIGTERM),
            Kind.KEEPER_KILL: partial(self._hit, "keeper", signal.SIGKILL),
            Kind.KEEPER_STOP: partial(self._hit, "keeper", signal.SIGSTOP),
            Kind.SUPERVISOR_KILL: partial(self._signal, signal.SIGKILL, None),
            Kind.SUPERVISOR_STOP: partial(self._signal, signal.SIGSTOP, signal.SIGCONT),
            Kind.SUPERVISOR_DRAIN: partial(self._signal, signal.SIGTERM, None),
            Kind.SUPERVISOR_QUIT: partial(self._signal, signal.SIGQUIT, None),
            Kind.SUPERVISOR_RELOAD: partial(self._signal, signal.SIGHUP, None),
            Kind.SUPERVISOR_SCALE: partial(self._signal, signal.SIGTTIN, signal.SIGTTOU),
            Kind.SUPERVISOR_QUIESCE: partial(self._signal, signal.SIGTSTP, signal.SIGCONT),
            Kind.HOST_FREEZE: self._freeze,
            Kind.NETWORK_CUT: self._network,
            Kind.NETWORK_REFUSE: self._network,
            Kind.NETWORK_DELAY: self._network,
            Kind.NETWORK_SWALLOW: self._network,
            Kind.SESSIONS_END: self._end_sessions,
            Kind.ROWS_LOCK: self._lock,
            Kind.FILE_LOCK: self._lock,
            Kind.CLOCK_SHIFT: self._shift_clock,
            Kind.SERVER_RESTART: self._restart_server,
            Kind.FLOOD: self._flood_queues,
        }

    async def work_through(self, faults: Sequence[Fault], until: float) -> None:
        """Each at its time, or as soon as there is somebody to hurt. What lasts ends at `until` (boottime seconds)."""
        begun = boottime()
        async with asyncio.TaskGroup() as happening:
            for fault in faults:
                await asyncio.sleep(max(0.0, begun + fault.at - boottime()))
                happening.create_task(self._inject(fault, until))

    def heal(self) -> None:
        """No fault goes on."""
        for proxy in self._ground.proxies:
            proxy.heal()
        for host in self._hosts:
            host.signal_all(signal.SIGCONT)
            self._set_clock(host, 0)

    async def _inject(self, fault: Fault, until: float) -> None:
        first = int(fault.host * len(self._hosts))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, until - boottime())):
                await self._somewhere(fault, [*self._hosts[first:], *self._hosts[:first]])
        if fault not in self._struck_ones:
            self.missed[fault.kind] += 1

    async def _somewhere(self, fault: Fault, hosts: Sequence[Host]) -> None:
        """At the first of these, or where there is somebody to hurt; and if that is nowhere, later."""
        while True:
            for host in hosts:
                if await self._blows[fault.kind](fault, host):
                    return
            if fault.kind in _ENDS:
                return
            self._next_look = max(self._next_look, boottime()) + _APART_S
            await asyncio.sleep(self._next_look - boottime())

    def _struck(self, fault: Fault) -> None:
        self._struck_ones.add(fault)
        self.injected[fault.kind] += 1

    async def _hit(self, role: str, number: signal.Signals, fault: Fault, host: Host) -> bool:
        there = host.living(role)
        if not there:
            return False
        member = there[int(fault.target * len(there))]
        hit(member, number)
        self._struck(fault)
        if number is signal.SIGSTOP:
            try:
                await asyncio.sleep(fault.lasting)
            finally:
                # It may have ended and been forgotten; its pidfd with it.
                if member.pid in host.members and member in host.living():
                    hit(member, signal.SIGCONT)
        return True

    async def _signal(self, number: signal.Signals, undone_by: signal.Signals | None, fault: Fault, host: Host) -> bool:
        if not host.send(number):
            return False
        self._struck(fault)
        if undone_by is not None:
            try:
                await asyncio.sleep(fault.lasting)
            finally:
                host.send(undone_by)
        return True

    async def _freeze(self, fault: Fault, host: Host) -> bool:
        if not host.signal_all(signal.SIGSTOP):
            return False
        self._struck(fault)
        try:
            await asyncio.sleep(fault.lasting)
        finally:
            host.signal_all(signal.SIGCONT)
        return True

    async def _network(self, fault: Fault, host: Host) -> bool:
        proxy = self._ground.proxies[host.number]
        self._struck(fault)
        match fault.kind:
            case Kind.NETWORK_CUT:
                proxy.cut()
            case Kind.NETWORK_REFUSE:
                proxy.refuse(fault.lasting)
            case Kind.NETWORK_DELAY:
                proxy.delay(fault.lasting)
            case _:
                await proxy.swallow(fault.lasting)
        return True

    async def _end_sessions(self, fault: Fault, host: Host) -> bool:  # noqa: ARG002 - of every host's
        return await self._found(fault, self._ground.end_sessions(fault.target))

    async def _lock(self, fault: Fault, host: Host) -> bool:  # noqa: ARG002 - a lock stands before every host
        return await self._found(fault, self._ground.lock(fault.lasting))

    async def _found(self, fault: Fault, blow: Awaitable[bool]) -> bool:
        """A blow that the ground deals; it counts when it is over."""
        found = await blow
        if found:
            self._struck(fault)
        return found

    async def _shift_clock(self, fault: Fault, host: Host) -> bool:
        self._set_clock(host, _SHIFTS_S[int(fault.target * len(_SHIFTS_S))])
        self._struck(fault)
        return True

    async def _restart_server(self, fault: Fault, host: Host) -> bool:  # noqa: ARG002 - it is everybody's
        self._struck(fault)
        process = await asyncio.create_subprocess_exec(
            *self._restart,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_RESTART_PATIENCE_S):
                ended = f"ended with {code}" if (code := await process.wait()) != 0 else ""
        except TimeoutError:
            ended = f"did not end within {_RESTART_PATIENCE_S:g} s"
        if ended:
            self.wrongs.append(f"the command {' '.join(self._restart)!r} {ended}")
        return True

    async def _flood_queues(self, fault: Fault, host: Host) -> bool:  # noqa: ARG002 - from nowhere in particular
        self._struck(fault)
        await self._flood(fault.target)
        return True

    def _set_clock(self, host: Host, shift_s: int) -> None:
        (self._folder / CLOCK_FILE.format(host.number)).write_text(f"{shift_s:+}\n", encoding="utf-8")
