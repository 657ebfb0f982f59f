"""Where the gateway stands: one address at a time. After a move the former one finishes its answers and leaves."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from cairnq_supervisor.loop.gateway_seat import GatewaySeat
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.roles.gateway import LONGEST_ANSWER


class Front:
    """`listener` None: no gateway. `document()` is what a gateway is told when it asks."""

    def __init__(
        self,
        house: House,
        listener: socket.socket | None,
        document: Callable[[], dict[str, Any]],
        review: Callable[[], None],
    ) -> None:
        self._document = document
        self._review = review
        self._leaving: list[GatewaySeat] = []
        self._seat = self._made(house, listener)

    @property
    def live(self) -> bool:
        return any(seat.live for seat in [*self._leaving, *([self._seat] if self._seat else [])])

    @property
    def listeners(self) -> list[socket.socket]:
        """What is open now: nothing, or one."""
        return [] if self._seat is None else [self._seat.listener]

    @property
    def shown(self) -> dict[str, Any] | None:
        """For the status. None: there is no gateway."""
        if self._seat is None:
            return None
        host, port = self._seat.listener.getsockname()[:2]
        return {"pid": self._seat.pid, "state": self._seat.state, "host": host, "port": port}

    def start(self) -> None:
        if self._seat is not None:
            self._seat.start()

    def move(self, house: House, listener: socket.socket | None) -> None:
        """From now on it listens there, or nowhere."""
        former, self._seat = self._seat, self._made(house, listener)
        self.start()
        if former is not None:
            self._leaving.append(former)
            former.drain(house.clock() + LONGEST_ANSWER)
            former.close()

    def drain(self, deadline: float) -> None:
        for seat in [*self._leaving, *([self._seat] if self._seat else [])]:
            seat.drain(deadline)

    def tidy(self) -> None:
        """Forget those that have left."""
        self._leaving = [seat for seat in self._leaving if seat.live]

    def _made(self, house: House, listener: socket.socket | None) -> GatewaySeat | None:
        return None if listener is None else GatewaySeat(house, listener, self._document, self._review)
