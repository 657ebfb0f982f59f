"""One run from beginning to end: ground, fleets, clients and faults; then quiet, then the audit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cairnq.pure.clock import boottime
from cairnq_supervisor.torture import blackbox
from cairnq_supervisor.torture.audit import audit
from cairnq_supervisor.torture.clients import Customer, Ledger, shopping
from cairnq_supervisor.torture.configuration import environment, libfaketime, lying_clock, toml
from cairnq_supervisor.torture.evidence import Evidence
from cairnq_supervisor.torture.fleet import Host
from cairnq_supervisor.torture.ground import Ground
from cairnq_supervisor.torture.injecting import CLOCK_FILE, Injector
from cairnq_supervisor.torture.report import Report
from cairnq_supervisor.torture.schedule import LEASE_S, Ability, schedule

BOOT_PATIENCE_S = 60.0
DRAIN_PATIENCE_S = 30.0
_LOOK_S = 0.25
_CLIENTS = 3


class DidNotStart(Exception):
    """The fleet was not ready in time, with no fault done to it; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`seconds` of faults; then `patience` seconds for what is left, twice that while tasks end.

    `listen_database`: as configured.
    """

    seed: int
    seconds: float
    patience: float
    keep: bool
    restart: Sequence[str]
    listen_database: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    phase: str
    left_s: float
    faults: int
    submitted: int


Tell = Callable[[Progress], None]


def abilities(restart: Sequence[str]) -> frozenset[Ability]:
    """What can be done on this machine; the ground adds its own."""
    clock = {Ability.CLOCK} if libfaketime() is not None else set()
    return frozenset(clock | ({Ability.RESTART} if restart else set()))


async def torture(ground: Ground, plan: Plan, tell: Tell) -> Report:
    """Raises `DidNotStart`, and what the database says if it is not there to begin with.

    The folder of logs and configurations stays if it is to be kept, or if something was wrong.
    """
    folder, failed = Path(tempfile.mkdtemp(prefix="cairnq-torture-")), False
    try:
        async with ground.prepared(keep=plan.keep):
            report = await _Session(ground, plan, folder, tell).run()
        failed = not report.passed
        return report
    finally:
        if not plan.keep and not failed:
            shutil.rmtree(folder)


class _Session:
    """What the phases of one run share."""

    def __init__(self, ground: Ground, plan: Plan, folder: Path, tell: Tell) -> None:
        self._ground = ground
        self._plan = plan
        self._folder = folder
        self._tell = tell
        self._ledger = Ledger()
        self._wrongs: list[str] = []
        self._hosts = [self._host(number) for number in range(ground.hosts)]

    async def run(self) -> Report:
        async with contextlib.AsyncExitStack() as stack:
            for host in self._hosts:
                await stack.enter_async_context(host.alive())
            await self._until_running()
            # One client shares the network of a host and the fate of its sessions; the others are elsewhere.
            ways = [0, *[None] * (_CLIENTS - 1)]
            clients = [await stack.enter_async_context(self._ground.client(way)) for way in ways]
            customers = [Customer(client, self._ledger) for client in clients]
            injector = Injector(
                self._ground, self._hosts, self._folder, flood=customers[-1].flood, restart=self._plan.restart
            )
            await self._hurt(customers, injector)
            await self._until_finished(injector)
            await self._drained()
            evidence = await self._ground.gather(blackbox.read(self._folder), self._ledger.notes)
        return self._report(injector, evidence)

    def _host(self, number: int) -> Host:
        ground, folder = self._ground, self._folder
        clock = folder / CLOCK_FILE.format(number)
        clock.write_text("+0\n", encoding="utf-8")
        variables = environment(
            os.environ,
            database=ground.database(number),
            listen_database=self._plan.listen_database,
            folder=folder,
            effects=ground.effects,
        )
        library = libfaketime() if Ability.CLOCK in ground.abilities else None
        host = Host(number, folder, {**variables, **(lying_clock(library, clock) if library is not None else {})})
        host.config.write_text(toml(ground.settings), encoding="utf-8")
        return host

    async def _until_running(self) -> None:
        for host in self._hosts:
            if not await host.is_running(BOOT_PATIENCE_S):
                end = "\n".join(host.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
                raise DidNotStart(f"the fleet did not start, before any fault was done to it:\n{end}")

    async def _hurt(self, customers: Sequence[Customer], injector: Injector) -> None:
        until = boottime() + self._plan.seconds
        faults = schedule(self._plan.seed, self._plan.seconds, self._ground.abilities)
        async with self._telling("faults", until, injector), shopping(customers, self._plan.seed):
            await injector.work_through(faults, until)
        injector.heal()

    async def _until_finished(self, injector: Injector) -> None:
        """What was not finished by then is for the audit to say.

        As long again while tasks end: where many have killed their workers these come back ever more slowly.
        """
        until = latest = boottime() + 2 * self._plan.patience
        fewest = sys.maxsize
        async with self._telling("finishing", latest, injector):
            while (left := await self._ground.unfinished()) and boottime() < until:
                if left < fewest:
                    fewest, until = left, min(latest, boottime() + self._plan.patience)
                await asyncio.sleep(_LOOK_S)

    async def _drained(self) -> None:
        """With no fault about, a drain is complete, and leaves no process behind."""
        codes = await asyncio.gather(*(host.drain(DRAIN_PATIENCE_S) for host in self._hosts))
        for host, code in zip(self._hosts, codes, strict=True):
            if code != 0:
                ended = "did not end" if code is None else f"ended with {code}"
                self._wrongs.append(f"host {host.number}: its last drain {ended}")
        until = boottime() + 2 * LEASE_S
        while any(host.living() for host in self._hosts) and boottime() < until:  # noqa: ASYNC110 - as above
            await asyncio.sleep(_LOOK_S)
        self._wrongs += [
            f"host {host.number}: {member.role} {member.pid} lives on"
            for host in self._hosts
            for member in host.living()
        ]

    @contextlib.asynccontextmanager
    async def _telling(self, phase: str, until: float, injector: Injector) -> AsyncIterator[None]:
        async def tell() -> None:
            while True:
                left = max(0.0, until - boottime())
                self._tell(Progress(phase, left, injector.injected.total(), self._ledger.submitted))
                await asyncio.sleep(1.0)

        telling = asyncio.create_task(tell())
        try:
            yield
        finally:
            telling.cancel()

    def _report(self, injector: Injector, evidence: Evidence) -> Report:
        exits: Counter[int] = Counter()
        for host in self._hosts:
            exits += host.exits
            self._wrongs += host.wrongs
        return Report(
            seed=self._plan.seed,
            seconds=self._plan.seconds,
            hosts=len(self._hosts),
            injected={str(kind): count for kind, count in injector.injected.items()},
            missed={str(kind): count for kind, count in injector.missed.items()},
            refused=dict(self._ledger.refused),
            exits=exits,
            evidence=evidence,
            breaches=audit(evidence),
            wrongs=[*self._wrongs, *injector.wrongs, *self._ledger.wrongs],
            folder=self._folder,
        )
