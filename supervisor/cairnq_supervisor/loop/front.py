"""Where the gateway stands: one address at a time. After a move the former gateway leaves when the new one is there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from cairnq_supervisor.loop.gateway_seat import GatewaySeat
from cairnq_supervisor.loop.house import House

_FAREWELL = 1.0
"""Seconds for a gateway to finish its answers."""


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

    def start(self) -> None:
        if self._seat is not None:
            self._seat.start()

    def move(self, house: House, listener: socket.socket | None) -> None:
        """From now on it listens there, or nowhere."""
        former, self._seat = self._seat, self._made(house, listener)
        self.start()
        if former is not None:
            self._leaving.append(former)
            former.drain(house.clock() + _FAREWELL)

    def drain(self, deadline: float) -> None:
        for seat in [*self._leaving, *([self._seat] if self._seat else [])]:
            seat.drain(deadline)

    def tidy(self) -> None:
        """Close the addresses of those that have left."""
        for seat in [seat for seat in self._leaving if not seat.live]:
            self._leaving.remove(seat)
            seat.close()

    def _made(self, house: House, listener: socket.socket | None) -> GatewaySeat | None:
        return None if listener is None else GatewaySeat(house, listener, self._document, self._review)
