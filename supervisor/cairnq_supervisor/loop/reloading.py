"""A reload: a scout looks at everything anew in a child; only what it found good reaches the fleet."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cairnq_supervisor.loop.child import Child, Errand
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.pure.keys import Address
from cairnq_supervisor.pure.messages import Message, Scouted
from cairnq_supervisor.pure.requests import BadRequest
from cairnq_supervisor.pure.settings import ConfigurationError, Settings
from cairnq_supervisor.system.channel import Channel
from cairnq_supervisor.system.http import listen
from cairnq_supervisor.system.processes import Ending
from cairnq_supervisor.system.spawn import SpawnError

FIXED = ("database", "listen_database", "schema")
"""Settings that were decided at the start. Another database is another supervisor."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """How to read everything again: `reread` the configuration here, `scout` all of it in a child."""

    reread: Callable[[], Settings]
    scout: Callable[[Channel], int]
    application_modules: frozenset[str]
    """What a preloaded application left in this process: later workers import it anew."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The gateway is to be elsewhere. `listener`: where; None: nowhere."""

    listener: socket.socket | None


class Owner(Protocol):
    """Whose reload it is."""

    def reload_began(self) -> None: ...
    def reload_accepted(self, settings: Settings, resource_queues: Sequence[str], moved: Moved | None) -> None: ...
    def reload_failed(self, reason: str) -> None: ...


class Reloads:
    """One at a time. The owner is told once how each began and what its scout found."""

    def __init__(self, owner: Owner, renewal: Renewal, listeners: Callable[[], Sequence[socket.socket]]) -> None:
        """`listeners()`: the sockets of the gateway that there is."""
        self._owner = owner
        self._renewal = renewal
        self._listeners = listeners
        self._scout: Child | None = None
        self._settings: Settings | None = None
        self._report: Scouted | None = None

    @property
    def scouting(self) -> bool:
        return self._scout is not None

    def begin(self, house: House) -> None:
        """Raises `BadRequest` while a scout is out."""
        if self._scout is not None:
            raise BadRequest("a reload is under way")
        self._owner.reload_began()
        self._settings, self._report = house.settings, None
        try:
            self._scout = Child.fork(house, self, Errand(self._renewal.scout, "cairnq: reload"))
        except SpawnError as error:
            self._owner.reload_failed(str(error))
            return
        patience = house.settings.boot_timeout + house.settings.connect_timeout
        scout = self._scout
        house.reactor.call_after(patience, lambda: self._recall(scout))

    def stop(self) -> None:
        """Nobody waits for the scout any more."""
        if self._scout is not None:
            self._scout.kill()

    def heard(self, message: Message) -> None:
        if isinstance(message, Scouted):
            self._report = message

    def broke(self, reason: str) -> None:
        """Its exit says the rest."""

    def exited(self, ending: Ending) -> None:
        self._scout = None
        if self._report is None:
            self._owner.reload_failed(f"the new application was not imported in time, or ended the process ({ending})")
        elif self._report.reason is not None:
            self._owner.reload_failed(self._report.reason)
        else:
            self._accept(self._report)

    def _accept(self, report: Scouted) -> None:
        try:
            settings = self._renewal.reread()
        except ConfigurationError as error:
            self._owner.reload_failed(str(error))
            return
        changed = [key for key in FIXED if getattr(settings, key) != getattr(self._settings, key)]
        if changed:
            self._owner.reload_failed(f"{', '.join(changed)} changed, which takes a restart")
            return
        try:
            moved = self._moved(settings.http, report.http_host)
        except OSError as error:
            self._owner.reload_failed(f"http cannot listen on {settings.http}: {error}")
            return
        self._owner.reload_accepted(settings, report.resource_queues, moved)

    def _moved(self, where: Address | None, host: str | None) -> Moved | None:
        """`host`: its numeric form, for a name takes a moment that this loop has not. Raises `OSError`."""
        assert self._settings is not None
        if where == self._settings.http:
            return None
        if where is None:
            return Moved(None)
        if host is None:
            raise OSError(f"{where.host} has no address")
        there = self._listeners()
        if any(each.getsockname()[:2] == (host, where.port) for each in there):
            return None  # only written in another way
        return Moved(listen(Address(host, where.port), beside=there))

    def _recall(self, scout: Child) -> None:
        if self._scout is scout:
            scout.kill()
