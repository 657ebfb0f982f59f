"""Where the supervisor meets the world outside its tree: its clients, its scrapers, its service manager."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from cairnq_supervisor.system.control import ControlSocket
from cairnq_supervisor.system.notify import Notifier


@dataclass(frozen=True, slots=True)
class Outside:
    """`control` and `http` listen already; None: there is none."""

    control: ControlSocket | None
    http: socket.socket | None
    manager: Notifier
