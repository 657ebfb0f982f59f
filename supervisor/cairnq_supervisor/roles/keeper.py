"""The keeper: beats for all workers of the host, settles dead ones, recovers expired leases, listens. No user code."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from cairnq.pure.clock import boottime
from cairnq.run.leases import LeaseTable
from cairnq.run.outage import Outage
from cairnq.store.base import Installation, TaskStore
from cairnq_supervisor.pure import dsn, waking
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.keeper_messages import Beat, Lend, LendBell, Listening, Ping, Policy, Pong, Settle, TakeBack
from cairnq_supervisor.pure.messages import Drain, Ready
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.roles.arrivals import Arrivals
from cairnq_supervisor.roles.beating import Beating, Lent
from cairnq_supervisor.roles.bells import Bells
from cairnq_supervisor.roles.caretaker import Caretaker
from cairnq_supervisor.roles.clockwatch import ClockWatch
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import GOODBYE, Link, guarded
from cairnq_supervisor.roles.lookout import Lookout
from cairnq_supervisor.roles.sampling import Sampling
from cairnq_supervisor.roles.settling import Duties
from cairnq_supervisor.roles.stores import open_store
from cairnq_supervisor.roles.title import keep_title
from cairnq_supervisor.system import memory
from cairnq_supervisor.system.channel import Channel, Received

QUEUED_CHANNEL = "cairnq_queued"


@dataclass(frozen=True, slots=True)
class KeeperPlan:
    """What the keeper is made of."""

    settings: Settings
    installation: Installation


def run_keeper(plan: KeeperPlan, channel: Channel) -> int:
    """The exit code of the child."""
    return asyncio.run(_Keeper(plan).live(channel))


class _Keeper:
    def __init__(self, plan: KeeperPlan) -> None:
        self._plan = plan
        self._tables: dict[str, Lent] = {}
        self._bells = Bells(self._tables)
        self._leaving = asyncio.Event()
        self._hears = False
        self._told_watching = False
        self._closing: set[asyncio.Task[None]] = set()
        self._queues = [queue.name for queue in plan.settings.queues]
        self._retention = dict(plan.settings.retention)

    async def live(self, channel: Channel) -> int:
        self._link = link = Link(channel, self._obey)
        self._arrivals = Arrivals(link, self._tell_watching)
        outage = Outage(link.emit, boottime)
        connection = Connection(lambda: keepers_store(self._plan.settings, self._plan.installation), outage)
        self._beating = Beating(connection, link, self._tables)
        lease = self._plan.settings.shortest_lease
        self._lookout = Lookout(
            connection,
            link,
            self._bells,
            self._queues,
            lease=lease,
            may_recover=self._may_recover,
            on_sight=self._tell_watching,
        )
        self._sampling = Sampling(
            connection, link, self._queues, patience=lease / 3, is_idle=lambda: self._lookout.is_idle
        )
        self._duties = Duties(connection, link, self._tables, on_suspects=self._sampling.look_soon)
        if dsn.is_sqlite(self._plan.settings.database):
            self._beating.clockwatch = ClockWatch(link, lease=lease, on_step=self._beating.repeat)
        link.open()
        return await guarded("keeper", link, self._live(connection, link))

    async def _live(self, connection: Connection, link: Link) -> int:
        link.send(Ready())
        try:
            await self._work(link)
            await link.flush(GOODBYE)
        finally:
            await connection.close(patience=GOODBYE)
        return Exit.OK

    async def _work(self, link: Link) -> None:
        """Until told to leave or orphaned. What is in hand is finished, nothing new begins."""
        ear = keepers_store(self._plan.settings, self._plan.installation)
        stop_listening = await ear.listen(
            [QUEUED_CHANNEL],
            lambda _channel, queue: self._lookout.heard(queue),
            self._heed,
            probe=self._probe,
        )
        beating = asyncio.ensure_future(self._beating.run())
        watch = self._beating.clockwatch
        endless = [
            asyncio.ensure_future(work)
            for work in (
                *([watch.run()] if watch is not None else []),
                self._lookout.run(),
                self._sampling.run(),
                self._caretaker(link).run(),
                keep_title(lambda: f"cairnq: keeper {self._leases} leases"),
            )
        ]
        ends = [asyncio.ensure_future(self._leaving.wait()), asyncio.ensure_future(link.orphaned.wait())]
        done, _ = await asyncio.wait({*ends, beating, *endless}, return_when=asyncio.FIRST_COMPLETED)
        for task in (beating, *endless):
            if task in done:
                task.result()  # they never return: this raises the bug that ended one
        if link.orphaned.is_set():
            link.emit("keeper.orphaned", pid=os.getpid())
        for task in endless:
            task.cancel()
        self._beating.stop()
        await beating
        await self._duties.stop()
        await stop_listening()
        await asyncio.wait(endless)

    def _heed(self, hears: bool) -> None:
        self._hears = hears
        self._tell_watching()

    def _tell_watching(self) -> None:
        """Workers rest while notifications arrive, somebody looks for what none tells of, *and* all can be woken."""
        watching = self._hears and self._lookout.sees and self._arrivals.is_complete
        if watching != self._told_watching:
            self._told_watching = watching
            self._link.send(Listening(watching))

    async def _probe(self, channel: str) -> None:
        """The self-test's other half, over a connection for the moment: twice a minute is no reason to keep a third."""
        store = keepers_store(self._plan.settings, self._plan.installation, min_size=0)
        try:
            await store.notify(channel)
        finally:
            closing = asyncio.ensure_future(store.close())  # where nothing answers that takes seconds
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    @property
    def _leases(self) -> int:
        """Of living workers: beats rest when nobody holds any, so the last one says little."""
        return sum(lent.table.held for worker_id, lent in self._tables.items() if not self._duties.owes(worker_id))

    def _caretaker(self, link: Link) -> Caretaker:
        settings, installation = self._plan.settings, self._plan.installation
        return Caretaker(lambda: keepers_store(settings, installation, min_size=0), link, self._retention)

    def _may_recover(self) -> bool:
        """Not for a while after the clock by which leases end was set, and not while what runs here goes unrenewed.

        That would run out again and again here, until it is out of attempts. Another host's keeper recovers it.
        """
        living = (lent.table for worker_id, lent in self._tables.items() if not self._duties.owes(worker_id))
        if any(waking.waits_for_a_beat(table, boottime()) for table in living):
            return False
        return self._beating.clockwatch is None or self._beating.clockwatch.may_recover()

    def _adopt(self, policy: Policy) -> None:
        self._queues[:] = policy.queues
        self._retention.clear()
        self._retention.update(policy.retention)
        self._lookout.adapt(policy.lease)
        self._sampling.patience = policy.lease / 3
        if self._beating.clockwatch is not None:
            self._beating.clockwatch.adapt(policy.lease)

    def _obey(self, received: Received) -> None:
        self._bells.supervisor_spoke()
        match received.message:
            case Lend() | LendBell() | TakeBack():
                self._take(received)
            case Beat() as order:
                self._beating.order(order)
            case Settle() as duty:
                self._bells.take_down(duty.worker_id)
                self._duties.begin(duty)
                self._arrivals.forget(duty.worker_id)
            case Policy() as policy:
                self._adopt(policy)
            case Ping():
                self._link.send(Pong())
            case Drain():
                self._leaving.set()

    def _take(self, received: Received) -> None:
        """Or give back: a worker's table, and its bell."""
        match received.message:
            case Lend(worker_id=worker_id, capacity=capacity, lease=lease):
                if received.fd is not None:
                    self._tables[worker_id] = Lent(_attach(received.fd, capacity), lease)
                self._arrivals.table(worker_id, came=received.fd is not None)
            case LendBell(worker_id=worker_id, queue=queue):
                if received.fd is not None:
                    self._bells.hang(worker_id, queue, received.fd)
                self._arrivals.bell(worker_id, came=received.fd is not None)
            case TakeBack(worker_id=worker_id):
                self._bells.take_down(worker_id)
                self._tables.pop(worker_id, None)
                self._arrivals.forget(worker_id)


def _attach(fd: int, capacity: int) -> LeaseTable:
    """The descriptor is not needed once the memory is mapped."""
    try:
        return LeaseTable(memory.Mapping(fd).view, capacity)
    finally:
        os.close(fd)


def keepers_store(settings: Settings, installation: Installation, *, min_size: int = 1) -> TaskStore:
    """One connection, the direct one where there is a choice: the keeper must not wait for a pooler's turn."""
    return open_store(settings, connections=(min_size, 1), installation=installation, direct=True)
