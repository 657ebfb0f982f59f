"""What the service manager is told: systemd's notification protocol, one datagram at a time."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping

from cairnq_supervisor.pure.printable import printable


class Notifier:
    """Tells the manager that started this process, if one did. Never blocks, never fails: nothing depends on it.

    `watchdog` is the number of seconds within which the manager wants to hear from us, None where it does not.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Takes the variables out of the environment: children speak for nobody."""
        address = environment.pop("NOTIFY_SOCKET", "")
        watchdog, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        ours = pid in ("", str(os.getpid()))
        self.watchdog = int(watchdog) / 1e6 if self._address and watchdog.isdigit() and ours else None

    def tell(self, **fields: str | int) -> None:
        """`tell(READY=1, STATUS="2 queues, 4 workers")`. A newline in a value would begin another field."""
        if not self._address:
            return
        lines = [f"{name}={printable(str(value))}" for name, value in fields.items()]
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(errors="replace"), self._address)
