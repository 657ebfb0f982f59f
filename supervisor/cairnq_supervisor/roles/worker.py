"""A worker child: an engine over the inherited lease table, told over the channel when to begin, look and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from cairnq.pure.clock import boottime
from cairnq.pure.models import Held
from cairnq.run.engine import Engine
from cairnq.run.leases import LeaseTable
from cairnq.run.registry import Registry
from cairnq.store.base import TaskStore
from cairnq_supervisor.pure.evidence import OVERRUN_GRACE
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.messages import (
    Admit,
    AskBack,
    BootFailed,
    BytesFreed,
    Drain,
    Drained,
    Grant,
    LeasesChanged,
    Message,
    Overrun,
    Quiesce,
    Ready,
    Resume,
    Uses,
    Watched,
)
from cairnq_supervisor.pure.quantities import format_size
from cairnq_supervisor.roles.application import ApplicationError, amounts_used
from cairnq_supervisor.roles.boot import boot
from cairnq_supervisor.roles.link import GOODBYE, Link, guarded
from cairnq_supervisor.roles.loops import runner
from cairnq_supervisor.roles.payloads import SharedBudget
from cairnq_supervisor.roles.plan import WorkerPlan, engine_options
from cairnq_supervisor.roles.randomness import part_random_states
from cairnq_supervisor.roles.stores import open_store
from cairnq_supervisor.roles.tallying import Tallying
from cairnq_supervisor.roles.title import keep_title
from cairnq_supervisor.roles.units import Units
from cairnq_supervisor.roles.watched import WatchedTable
from cairnq_supervisor.system.channel import Channel, Received

_ORPHANS_REST = 1.0
"""Seconds before the end of trust in which an orphan cancels and gives back what still runs."""

_ORPHANS_GOODBYE = 0.1
"""Seconds for what is left on an orphan's loop: nobody kills it, and its leases are about to end."""


def run_worker(plan: WorkerPlan, channel: Channel) -> int:
    """The exit code of the child."""
    plan.stacks.offer()
    part_random_states()
    # Not asyncio.run, which waits for whatever the handlers left: one that swallows its cancellation, a blocked thread.
    return runner().run(_Worker(plan).live(channel))


class _Worker:
    """One life: boot, wait to be admitted, run, drain, leave."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
        self._engine: Engine | None = None
        self._budget: SharedBudget | None = None
        self._admitted = asyncio.Event()
        self._dismissed = asyncio.Event()
        self._quiesced = False
        self._units: Units | None = None
        self._early: list[Message] = []
        """Said in the same breath as the admission, before there is an engine."""
        self._drains: list[asyncio.Future[list[Held]]] = []

    async def live(self, channel: Channel) -> int:
        link = Link(channel, self._obey)
        link.open()
        code = await guarded("worker", link, self._live(link))
        await _cancel_the_rest(_ORPHANS_GOODBYE if link.orphaned.is_set() else GOODBYE)
        return code

    async def _live(self, link: Link) -> int:
        try:
            registry = boot(self._plan)
        except ApplicationError as error:
            link.send(BootFailed(Exit.CONFIG, str(error)))
            await link.flush(GOODBYE)
            return Exit.CONFIG
        store = open_store(self._plan.settings, connections=(1, 10), installation=self._plan.installation)
        link.send(Uses(amounts_used(registry, self._plan.settings)))
        link.send(Ready())
        try:
            unended = await self._serve(registry, store, link)
            link.send(Drained(unended))
            await link.flush(GOODBYE)
            if unended:
                await link.orphaned.wait()  # the supervisor kills us: these calls end with their process alone
        finally:
            await store.close()
        # No death in the eyes of anybody, but the supervisor has somebody look for what may still be this worker's.
        return Exit.TEMPFAIL if self._engine is not None and self._engine.is_in_doubt else Exit.OK

    async def _serve(self, registry: Registry, store: TaskStore, link: Link) -> int:
        """Run until told to leave, or orphaned; returns the number of calls that could not be ended."""
        await _first_of(self._admitted.wait(), self._dismissed.wait(), link.orphaned.wait())
        if not self._admitted.is_set():
            return 0
        plan = self._plan
        table = self._watched(link)
        self._budget = budget = self._shared_budget(link)
        tallying = Tallying(link.send)
        self._engine = engine = Engine(
            store,
            registry,
            [plan.queue.name],
            engine_options(plan.settings, plan.queue),
            table=table,
            worker_id=plan.worker_id,
            emit=self._emitting(link),
            observer=tallying,
            budget=budget,
        )
        self._units = self._own_units(engine, registry, table, link)
        asyncio.get_running_loop().add_reader(plan.bell.fileno(), self._rung, engine, table)
        for message in self._early:
            self._hear_at_work(engine, message)
        if self._quiesced:
            engine.quiesce()
        if self._dismissed.is_set():
            return 0
        beside = [
            asyncio.ensure_future(self._leave_when_orphaned(engine, table, link)),
            asyncio.ensure_future(keep_title(lambda: self._title(table))),
        ]
        await engine.run()
        for task in beside:
            task.cancel()
        tallying.tell()
        if not self._drains:
            raise RuntimeError("the engine stopped unasked")
        return len(await self._drains[-1])

    def _own_units(self, engine: Engine, registry: Registry, table: LeaseTable, link: Link) -> Units:
        """None to begin with: the supervisor hands them out."""
        for resource in amounts_used(registry, self._plan.settings):
            engine.set_resource(resource, 0)

        def show(units: int) -> None:
            table.units = units

        return Units(
            self._plan.unit_locks,
            say=link.send,
            set_ceiling=engine.set_resource,
            in_use=engine.resource_in_use,
            show=show,
        )

    def _title(self, table: LeaseTable) -> str:
        calls = f"{table.in_flight_calls}/{self._plan.queue.concurrency} calls"
        return f"{self._plan.title} {calls} {format_size(table.in_flight_bytes)}"

    def _emitting(self, link: Link) -> Callable[..., None]:
        """Events go to the supervisor. A call that outran max_run gets a little time, and then is told of too."""
        loop = asyncio.get_running_loop()

        def emit(name: str, /, **fields: Any) -> None:
            link.emit(name, **fields)
            if name == "task.timed_out":
                loop.call_soon_threadsafe(loop.call_later, OVERRUN_GRACE, self._look_for_overrun, link)

        return emit

    def _look_for_overrun(self, link: Link) -> None:
        if self._engine is not None and self._engine.overrun:
            link.send(Overrun())

    def _watched(self, link: Link) -> WatchedTable:
        plan = self._plan
        return WatchedTable(
            plan.memory,
            plan.capacity,
            lease=plan.queue.lease,
            concurrency=plan.queue.concurrency,
            say=link.send,
            clock=boottime,
        )

    def _shared_budget(self, link: Link) -> SharedBudget:
        plan = self._plan
        return SharedBudget(
            plan.ledger,
            plan.place,
            of_queue=plan.queue.max_in_flight_bytes,
            of_host=plan.settings.max_in_flight_bytes,
            say=link.send,
        )

    async def _leave_when_orphaned(self, engine: Engine, table: LeaseTable, link: Link) -> None:
        """Claim no more; what runs may go on for as long as its lease is trusted, for nobody renews it now."""
        await link.orphaned.wait()
        held = table.entries()
        link.emit("worker.orphaned", worker_id=self._plan.worker_id, held=len(held))
        trusted = max((entry.trusted_until for entry in held), default=0.0)
        self._drain(engine, max(boottime(), trusted - _ORPHANS_REST))

    def _drain(self, engine: Engine, deadline: float) -> None:
        """A later order with a nearer deadline hastens the drain that is under way."""
        self._drains.append(asyncio.ensure_future(engine.drain(deadline)))

    def _obey(self, received: Received) -> None:
        engine = self._engine
        match received.message:
            case Admit():
                self._admitted.set()
            case Drain(deadline=deadline):
                self._dismissed.set()
                if engine is not None:
                    self._drain(engine, deadline)
            case Quiesce():
                self._quiesced = True
                if engine is not None:
                    engine.quiesce()
            case Resume():
                self._quiesced = False
                if engine is not None:
                    engine.resume()
            case message if engine is None:
                self._early.append(message)
            case message:
                self._hear_at_work(engine, message)

    def _rung(self, engine: Engine, table: WatchedTable) -> None:
        self._plan.bell.hear()
        table.woken()
        engine.wake()

    def _hear_at_work(self, engine: Engine, message: Message) -> None:
        assert self._units is not None
        assert self._budget is not None
        match message:
            case LeasesChanged():
                engine.leases_changed()
            case Watched(watched=watched):
                engine.set_polling(not watched)
                engine.wake()  # for what came before anybody watched
            case BytesFreed():
                self._budget.told()
                engine.bytes_freed()
            case Grant(resource=resource, unit=unit):
                self._units.granted(resource, unit)
            case AskBack(resource=resource, unit=unit):
                self._units.asked_back(resource, unit)


async def _cancel_the_rest(patience: float) -> None:
    """Whatever else runs on this loop gets so many seconds to clean up. The process ends with or without it."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=patience)


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
