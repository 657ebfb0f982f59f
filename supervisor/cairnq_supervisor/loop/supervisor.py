"""The supervisor after its start: it hears signals, and leads the fleet from its first fork to its last exit."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

from cairnq.pure.clock import Clock, boottime
from cairnq.run.registry import Registry
from cairnq.store.base import Installation
from cairnq_supervisor.loop.control import Control
from cairnq_supervisor.loop.desk import Desk
from cairnq_supervisor.loop.farewell import Farewell
from cairnq_supervisor.loop.fleet import Fleet
from cairnq_supervisor.loop.front import Front
from cairnq_supervisor.loop.hearing import Hearing
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.liaison import Liaison
from cairnq_supervisor.loop.outages import Outages
from cairnq_supervisor.loop.outside import Outside
from cairnq_supervisor.loop.reactor import Reactor
from cairnq_supervisor.loop.reloading import Moved, Reloads, Renewal
from cairnq_supervisor.loop.resources import forget_units
from cairnq_supervisor.loop.showing import Showing
from cairnq_supervisor.loop.sinks import flush_when_writable
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.lifecycle import FLEET_TABLE, FleetAction, FleetEvent, FleetState
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.roles.application import queues_with_resources
from cairnq_supervisor.system.adoption import adopt_orphans, reap_adopted
from cairnq_supervisor.system.descriptors import Descriptors
from cairnq_supervisor.system.journal import Journal
from cairnq_supervisor.system.oom import OomKills
from cairnq_supervisor.system.signals import SignalPipe

_FAREWELL = 1.0
"""Seconds for the keeper to finish the statement in hand, and the gateway its answers."""

_WORKING = frozenset({FleetState.STARTING, FleetState.RUNNING})


class Supervisor:
    """Made with signals blocked, after the preflight. `run` returns the exit code."""

    def __init__(
        self,
        settings: Settings,
        installation: Installation,
        registry: Registry | None,
        journal: Journal,
        outside: Outside,
        renewal: Renewal,
        clock: Clock = boottime,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._clock = clock
        self._reactor = Reactor(clock, self._fault)
        self._descriptors = Descriptors()
        self._listener = outside.control
        self._house = House(
            settings=settings,
            installation=installation,
            registry=registry,
            reactor=self._reactor,
            descriptors=self._descriptors,
            emit=journal.emit,
            outages=Outages(journal.emit, clock),
            clock=clock,
            oom_kills=OomKills(),
            unit_locks=(outside.control.path.parent, outside.control.path.stem) if outside.control else None,
            resource_queues=frozenset(queues_with_resources(registry, settings.queues) if registry is not None else ()),
        )
        self._renewal = renewal
        self._reloads = Reloads(self, renewal, lambda: self._front.listeners)
        self._renewing = False
        self._fleet = Fleet(self._house, self._review_soon)
        self._farewell = Farewell(self._house, self._fleet)
        self._liaison = Liaison(outside.manager, self._house, self._fleet)
        self._state = FleetState.STARTING
        self._showing = Showing(
            self._fleet,
            journal,
            house=lambda: self._house,
            state=lambda: self._state,
            gateway=lambda: self._front.shown,
        )
        self._front = Front(self._house, outside.http, self._showing.document, self._review_soon)
        self._code = Exit.OK
        self._cause = ""
        self._review_due = False

    def run(self) -> int:
        pipe = SignalPipe()
        self._descriptors.add(self._reactor.fileno(), *pipe.descriptors, *self._journal.own_descriptors)
        self._journal.when_congested(flush_when_writable(self._reactor))
        hearing = Hearing(self, self._journal.emit, self._clock)
        self._reactor.watch(pipe, lambda _events: hearing.listen(pipe))
        adopt_orphans()
        control = self._open_control()
        self._fleet.start()
        self._front.start()
        self._liaison.start()
        self._reactor.run()
        if control is not None:
            control.close()
        forget_units(self._house.unit_locks)
        self._journal.emit("supervisor.stopped", code=int(self._code))
        pipe.close()
        self._reactor.close()
        return self._code

    # Requests.

    def _open_control(self) -> Control | None:
        if self._listener is None:
            return None
        desk = Desk(
            self._fleet,
            report=self._showing.report,
            is_leaving=lambda: self._state not in _WORKING,
            drain=lambda: self.drain("a request"),
            reload=lambda: self._reloads.begin(self._house),
        )
        return Control(self._listener, self._reactor, self._descriptors, desk.answer)

    # Reloads.

    def reload_began(self) -> None:
        self._journal.emit("reload.started")
        self._liaison.reloading()

    def reload_failed(self, reason: str) -> None:
        self._journal.emit("reload.failed", reason=reason)
        self._liaison.ready()

    def reload_accepted(self, settings: Settings, resource_queues: Sequence[str], moved: Moved | None) -> None:
        """Workers of the new generation import the application themselves, so that new code really runs."""
        if self._state not in _WORKING:
            return
        self._settings = settings
        self._house = replace(
            self._house,
            settings=settings,
            registry=None,
            resource_queues=frozenset(resource_queues),
            stale_modules=self._renewal.application_modules,
        )
        if moved is not None:
            self._front.move(self._house, moved.listener)
        self._renewing = True
        self._fleet.renew(self._house)
        self._review_soon()

    def _renewed(self) -> None:
        """Or given up: the roster leaves those where they are whose successors cannot start."""
        self._renewing = False
        self._fleet.renewed()
        if outdated := self._fleet.roster.outdated:
            self.reload_failed(f"those of {', '.join(outdated)}, for a successor does not become ready")
            return
        self._journal.emit("reload.finished", generation=self._fleet.roster.generation)
        self._liaison.ready()

    # Orders, by signal or by request.

    def drain(self, cause: str) -> None:
        self._cause = cause
        self._advance(FleetEvent.DRAIN)

    def hasten(self, cause: str) -> None:
        self._cause = cause
        self._advance(FleetEvent.HASTEN)

    def quiesce(self) -> None:
        self._advance(FleetEvent.QUIESCE)

    def resume(self) -> None:
        self._advance(FleetEvent.RESUME)

    def reload(self) -> bool:
        if self._state not in _WORKING or self._reloads.scouting:
            return False
        self._reloads.begin(self._house)
        return True

    def scale(self, step: int) -> bool:
        if self._state not in _WORKING:
            return False
        self._fleet.roster.scale_all(step)
        return True

    def show_everything(self) -> None:
        self._journal.emit("supervisor.status", **self._showing.report())
        for worker in self._fleet.workers:
            self._fleet.warden.show_stacks(worker, "worker.stacks")

    def reap_adopted(self) -> None:
        reap_adopted(self._house.pids)

    # The life of the fleet.

    def _advance(self, event: FleetEvent) -> None:
        step = FLEET_TABLE[self._state, event]
        self._state = step.state
        for action in step.actions:
            self._act(action)
        if step.actions:
            self._review_soon()

    def _act(self, action: FleetAction) -> None:
        emit, fleet, now = self._journal.emit, self._fleet, self._clock()
        match action:
            case FleetAction.ANNOUNCE:
                emit("supervisor.running", workers=len(fleet.workers))
                self._liaison.ready()
            case FleetAction.QUIESCE:
                emit("supervisor.quiesced")
                fleet.roster.quiesce()
            case FleetAction.RESUME:
                emit("supervisor.resumed")
                fleet.roster.resume()
            case FleetAction.DRAIN:
                emit("drain.started", cause=self._cause, timeout_s=self._settings.drain_timeout)
                self._liaison.stopping(self._settings.drain_timeout)
                self._reloads.stop()
                self._renewing = False
                fleet.roster.drain(now + self._settings.drain_timeout)
            case FleetAction.HASTEN:
                emit("drain.hastened", cause=self._cause)
                fleet.roster.drain(now)
            case FleetAction.GIVE_UP:
                self._give_up()
            case FleetAction.DISMISS_KEEPER:
                fleet.keeper.drain(now + _FAREWELL)
                self._front.drain(now + _FAREWELL)
            case FleetAction.STOP:
                self._reactor.stop()

    def _give_up(self) -> None:
        self._code = Exit(self._fleet.refusal or Exit.UNAVAILABLE)
        self._cause = "no worker can start"
        self._journal.emit("supervisor.gave-up", code=int(self._code))
        self._fleet.roster.give_up()

    def _review_soon(self) -> None:
        """Once in this turn, after whatever is going on has been finished."""
        if not self._review_due:
            self._review_due = True
            self._reactor.call_at(self._clock(), self._review)

    def _review(self) -> None:
        self._review_due = False
        fleet = self._fleet
        fleet.roster.tidy()
        self._front.tidy()
        self._showing.title()
        if self._renewing and not fleet.roster.replacing:
            self._renewed()
        match self._state:
            case FleetState.STARTING if fleet.hopeless or fleet.refusal is not None:
                self._advance(FleetEvent.HOPELESS)
            case FleetState.STARTING if fleet.all_ready:
                self._advance(FleetEvent.ALL_READY)
            case FleetState.DRAINING if self._all_settled():
                self._advance(FleetEvent.WORKERS_GONE)
            case FleetState.CLOSING if not fleet.keeper.live and not self._front.live:
                self._advance(FleetEvent.KEEPER_GONE)

    def _all_settled(self) -> bool:
        now = self._clock()
        if self._farewell.is_over(now):
            if self._farewell.incomplete:
                self._code = self._code or Exit.SOFTWARE
            return True
        if (next_look := self._farewell.next_look(now)) is not None:
            self._reactor.call_at(next_look, self._review_soon)
        return False

    # Borders.

    def _fault(self, error: BaseException) -> None:
        """A bug in one callback does not take the fleet down with it."""
        self._journal.emit("supervisor.fault", error=repr(error), traceback="".join(traceback.format_exception(error)))
