"""The gateway: health, readiness and metrics of this process tree over HTTP. It knows what the supervisor tells it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cairnq.pure.clock import Clock, boottime
from cairnq_supervisor.pure import exposition, metrics
from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.health import reasons_not_ready
from cairnq_supervisor.pure.messages import Ask, Drain, Ready, Told
from cairnq_supervisor.pure.pieces import joined
from cairnq_supervisor.pure.printable import printable
from cairnq_supervisor.pure.tally import Tally
from cairnq_supervisor.roles.link import GOODBYE, Link, guarded
from cairnq_supervisor.system.channel import Channel, Received
from cairnq_supervisor.system.http import HttpServer, Limits, Response

PATIENCE = 2.0
"""Seconds that the supervisor has to answer. Its loop does nothing that takes longer."""

LONGEST_ANSWER = PATIENCE + Limits().answer_timeout
"""Seconds from a request to the end of its answer."""

_FRESH = 0.1
"""Seconds for which an answer serves other requests too: a flood of them asks the supervisor ten times a second."""

_SILENT = Response(HTTPStatus.SERVICE_UNAVAILABLE, f"the supervisor has not answered for {PATIENCE:g} s\n")
_PATHS = "/livez    the supervisor's loop turns\n/readyz   every queue has a ready worker\n/metrics  for Prometheus\n"


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """`listener`: the descriptor of a listening socket, this process's own."""

    listener: int


def run_gateway(plan: GatewayPlan, channel: Channel) -> int:
    """The exit code of the child."""
    return asyncio.run(_Gateway(plan).live(channel))


class Oracle:
    """Asks the supervisor, one question at a time, whoever wants to know."""

    def __init__(self, link: Link, clock: Clock = boottime) -> None:
        self._link = link
        self._clock = clock
        self._number = 0
        self._pending: asyncio.Future[None] | None = None
        self._pieces: list[Mapping[str, Any]] = []
        self._document: Mapping[str, Any] = {}
        self._told_at = float("-inf")

    async def ask(self) -> Mapping[str, Any] | None:
        """What the supervisor says now, or said a moment ago. None: it does not answer."""
        if self._clock() - self._told_at < _FRESH:
            return self._document
        if self._pending is None:
            self._pending = asyncio.get_running_loop().create_future()
            self._number, self._pieces = self._number + 1, []
            self._link.send(Ask(self._number, 0))
        pending, known = self._pending, -1
        while not pending.done() and known < len(self._pieces):  # patience for each piece
            known = len(self._pieces)
            await asyncio.wait({pending}, timeout=PATIENCE)
        return self._document if pending.done() else None

    def told(self, answer: Told) -> None:
        if answer.number != self._number or self._pending is None:
            return
        self._pieces.append(answer.document)
        if answer.more:
            self._link.send(Ask(self._number, len(self._pieces)))
            return
        self._document, self._told_at = joined(self._pieces), self._clock()
        pending, self._pending, self._pieces = self._pending, None, []
        pending.set_result(None)


class _Gateway:
    def __init__(self, plan: GatewayPlan) -> None:
        self._plan = plan
        self._leaving = asyncio.Event()
        self._over = asyncio.Event()
        self._oracle: Oracle | None = None

    async def live(self, channel: Channel) -> int:
        link = Link(channel, self._obey)
        link.open()
        return await guarded("gateway", link, self._live(link))

    async def _live(self, link: Link) -> int:
        self._oracle = oracle = Oracle(link)
        with socket.socket(fileno=self._plan.listener) as listener:
            server = HttpServer(listener, lambda path: respond(path, oracle))
            await server.start()
            host, port = listener.getsockname()[:2]
            link.send(Ready())
            link.emit("gateway.listening", host=host, port=port)
            await _first_of(self._leaving.wait(), link.orphaned.wait())
            server.stop()
        await _first_of(server.finished(), self._over.wait(), link.orphaned.wait())
        await server.close()
        await link.flush(GOODBYE)
        return Exit.OK

    def _obey(self, received: Received) -> None:
        match received.message:
            case Told() as answer if self._oracle is not None:
                self._oracle.told(answer)
            case Drain(deadline=deadline):
                self._leaving.set()
                asyncio.get_running_loop().call_later(max(0.0, deadline - boottime()), self._over.set)


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


async def respond(path: str, oracle: Oracle) -> Response:
    """The page behind a path."""
    if path == "/":
        return Response(HTTPStatus.OK, _PATHS)
    if path not in ("/livez", "/readyz", "/metrics"):
        return Response(HTTPStatus.NOT_FOUND, f"not here; these are:\n{_PATHS}")
    document = await oracle.ask()
    if document is None:
        return _SILENT
    match path:
        case "/livez":
            return Response(HTTPStatus.OK, "ok\n")
        case "/readyz":
            return _readiness(document["status"])
        case _:
            return _metrics(document)


def _readiness(status: Mapping[str, Any]) -> Response:
    reasons = reasons_not_ready(status)
    if not reasons:
        return Response(HTTPStatus.OK, "ready\n")
    return Response(HTTPStatus.SERVICE_UNAVAILABLE, "".join(f"{printable(reason)}\n" for reason in reasons))


def _metrics(document: Mapping[str, Any]) -> Response:
    tallies: dict[str, Tally] = {}
    for queue, names in document["tallies"]:
        tallies.setdefault(queue, Tally()).add(Tally.decoded(names))
    families = metrics.families(document["status"], tallies, Chronicle.decoded(document["chronicle"]))
    return Response(HTTPStatus.OK, exposition.text(families), exposition.CONTENT_TYPE)
