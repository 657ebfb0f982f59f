"""The gateway's seat. The listening socket is the supervisor's: no client is refused while a gateway is reborn."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from cairnq_supervisor.loop.child import Errand
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.seat import Seat
from cairnq_supervisor.pure.messages import Ask, Message, Told
from cairnq_supervisor.pure.pieces import in_pieces
from cairnq_supervisor.pure.policy import Respawn
from cairnq_supervisor.roles.gateway import GatewayPlan, run_gateway
from cairnq_supervisor.system.processes import Ending


class GatewaySeat(Seat):
    """`document()` is what the gateway is told when it asks. Nobody else depends on this seat."""

    noun = "gateway"

    def __init__(
        self, house: House, listener: socket.socket, document: Callable[[], dict[str, Any]], review: Callable[[], None]
    ) -> None:
        super().__init__(house, Respawn(), review)
        house.descriptors.add(listener.fileno())
        self.listener = listener
        self._document = document
        self._lent: int | None = None
        self._rest: deque[dict[str, Any]] = deque()
        """What the gateway is to ask for yet, as things stood when it asked first."""

    @property
    def identity(self) -> Mapping[str, Any]:
        return {}

    def errand(self) -> Errand:
        """A descriptor of its own: the supervisor's is closed in every child."""
        self._lent = os.dup(self.listener.fileno())
        plan = GatewayPlan(self._lent)
        return Errand(lambda channel: run_gateway(plan, channel), "cairnq: gateway")

    def forked(self) -> None:
        self._take_back()

    def admit(self) -> None:
        """It serves from its first moment."""

    def told(self, message: Message) -> None:
        if isinstance(message, Ask):
            if message.piece == 0:
                self._rest = deque(in_pieces(self._document()))
            if self._rest:
                self.say(Told(message.number, self._rest.popleft(), more=bool(self._rest)))

    def close(self) -> None:
        """No further child is to serve here; the one that leaves has a descriptor of its own."""
        self.house.descriptors.discard(self.listener.fileno())
        self.listener.close()

    def settle(self, ending: Ending | None) -> None:  # noqa: ARG002 - however it ended
        """It held nothing but, where the fork was refused, what it was to be lent."""
        self._take_back()

    def _take_back(self) -> None:
        lent, self._lent = self._lent, None
        if lent is not None:
            os.close(lent)
