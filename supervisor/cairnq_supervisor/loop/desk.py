"""Answers what clients of the control socket ask: the report, and the few things that may be changed while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cairnq_supervisor.loop.fleet import Fleet
from cairnq_supervisor.pure.requests import (
    BadRequest,
    Drain,
    Pause,
    Reload,
    Request,
    Resume,
    Scale,
    Status,
)
from cairnq_supervisor.pure.settings import QueueSettings


class Desk:
    """`report`, `drain` and `reload` are the supervisor's."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        report: Callable[[], Mapping[str, Any]],
        is_leaving: Callable[[], bool],
        drain: Callable[[], None],
        reload: Callable[[], None],
    ) -> None:
        self._fleet = fleet
        self._report = report
        self._is_leaving = is_leaving
        self._drain = drain
        self._reload = reload

    def answer(self, request: Request) -> Mapping[str, Any]:
        """Raises `BadRequest`."""
        if not isinstance(request, Status | Drain) and self._is_leaving():
            raise BadRequest("the supervisor is draining; nothing can be changed any more")
        match request:
            case Status():
                return self._report()
            case Scale(queue=name, processes=processes):
                return self._scale(name, processes)
            case Pause(queue=name):
                return self._pause(name, paused=True)
            case Resume(queue=name):
                return self._pause(name, paused=False)
            case Drain():
                self._drain()
                return {"draining": True}
            case Reload():
                self._reload()
                return {"reloading": True}
            case _:
                raise BadRequest(f"{request.command} is not served")

    def _scale(self, name: str, processes: int) -> Mapping[str, Any]:
        (queue,) = self._queues(name)
        self._fleet.sizer.leave_alone(name)
        self._fleet.roster.scale(queue, processes)
        return {"queue": name, "processes": processes}

    def _pause(self, name: str | None, *, paused: bool) -> Mapping[str, Any]:
        names = [queue.name for queue in self._queues(name)]
        for each in names:
            self._fleet.roster.pause(each, paused=paused)
        return {"queues": names, "paused": paused}

    def _queues(self, name: str | None) -> list[QueueSettings]:
        """The one of this name, or all."""
        queues = self._fleet.roster.queues
        found = [queue for queue in queues if name in (None, queue.name)]
        if not found:
            raise BadRequest(f"there is no queue {name!r} here; there are: {', '.join(q.name for q in queues)}")
        return found
