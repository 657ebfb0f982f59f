"""The real supervisor over model children: time passes where the test says so, and nothing happens by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast
from unittest import mock

from cairnq.store.base import Installation
from cairnq_supervisor.loop.outside import Outside
from cairnq_supervisor.loop.reloading import Renewal
from cairnq_supervisor.loop.supervisor import Supervisor
from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.lifecycle import FleetState
from cairnq_supervisor.pure.messages import Holding, Ready, Uses
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.system.journal import Journal
from cairnq_supervisor.system.notify import Notifier
from tests.support.children import ModelChild, World

WORKING = (FleetState.STARTING, FleetState.RUNNING)


class Ear:
    """A journal that keeps what it hears."""

    latest = None
    own_descriptors = ()

    def __init__(self) -> None:
        self.chronicle = Chronicle()
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, name: str, /, **fields: Any) -> None:
        self.events.append((name, fields))

    def when_congested(self, callback: Callable[[Any], None]) -> None:
        """It never is."""

    def heard(self, name: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.events if event == name]


class Stage:
    """`is_settled`: the supervisor has read all there was, and every deadline that has come was acted on."""

    def __init__(self, settings: Settings) -> None:
        self.now = 1000.0
        self.journal = Ear()
        self.born_at: dict[int, float] = {}
        self.forked_late: list[ModelChild] = []
        """Workers that were forked after the fleet was told to leave."""
        self.held_at_death: set[str] = set()
        """Workers that died with a lease in their table."""
        self.is_settled = True
        self._tasks = itertools.count()
        self._patches = ExitStack()
        self.world = self._patches.enter_context(World(self._forked))
        self._patches.enter_context(mock.patch("setproctitle.setproctitle"))
        self.supervisor = Supervisor(
            settings,
            Installation("main", 1),
            None,
            cast("Journal", self.journal),
            Outside(None, None, Notifier({})),
            Renewal(lambda: settings, lambda _channel: 0, frozenset()),
            clock=lambda: self.now,
        )
        self.fleet = self.supervisor._fleet

    def close(self) -> None:
        self.supervisor._reactor.close()
        self._patches.close()

    @property
    def is_working(self) -> bool:
        return self.supervisor._state in WORKING

    def turn(self) -> None:
        """Everything that is there to be read, and every deadline that has come."""
        for _ in range(4):
            self.supervisor._reactor.call_at(self.now, lambda: None)
            self.supervisor._reactor.turn()
            for child in self.world.unreaped:
                child.listen()
        self.is_settled = True

    def reach(self, *, late: bool) -> None:
        """What happened reaches the supervisor at once, or together with what happens next."""
        self.is_settled = False
        if not late:
            self.turn()

    def become_ready(self, child: ModelChild) -> None:
        if child.can_act and not child.is_ready:
            child.is_ready = True
            child.say(*([Uses({})] if child.table is not None else []), Ready())
            self.is_settled = False

    def take_tasks(self, most: int) -> None:
        """One each, of those that claim."""
        for child in itertools.islice((child for child in self.world.workers() if child.claims), most):
            assert child.table is not None
            slot = child.table.hold(f"task_{next(self._tasks)}", 1, lease_s=6.0, sent=self.now)
            child.table.start(slot, self.now)
            child.table.in_flight_calls += 1
            child.say(Holding())
        self.turn()

    def finish_all(self, child: ModelChild) -> None:
        if child.table is not None:
            for entry in child.table.entries():
                child.table.free(entry.slot)
            child.table.in_flight_calls = 0

    def end(self, child: ModelChild, **ending: int) -> None:
        if child.worker_id is not None and child.table is not None and child.table.entries():
            self.held_at_death.add(child.worker_id)
        child.end(**ending)
        self.is_settled = False

    def let_the_killed_die(self) -> None:
        for child in self.world.unreaped:
            if child.killed and child.ending is None:
                self.end(child, signal=9)

    def let_the_keeper_work(self) -> None:
        for keeper in self.world.keepers():
            keeper.answer()
        self.is_settled = False

    def leave(self) -> None:
        """Everybody ends, so that nothing is left open."""
        self.supervisor.hasten("the end")
        while self.world.unreaped:
            self.turn()
            for child in self.world.unreaped:
                self.end(child, code=0)
            self.now += 1.0
            self.turn()

    def _forked(self, child: ModelChild) -> None:
        self.born_at[child.pid] = self.now
        if child.worker_id is not None and not self.is_working:
            self.forked_late.append(child)
