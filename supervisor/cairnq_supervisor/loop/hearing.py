"""What each signal means, and which ones are the same one heard twice."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, Protocol

from cairnq.pure.clock import Clock
from cairnq_supervisor.pure.policy import REPEAT_WINDOW, is_repeat
from cairnq_supervisor.system.signals import SignalPipe


class Orders(Protocol):
    """What a signal may ask for. Those that answer say whether there was anything to be done."""

    def drain(self, cause: str) -> None: ...
    def hasten(self, cause: str) -> None: ...
    def quiesce(self) -> None: ...
    def resume(self) -> None: ...
    def reload(self) -> bool: ...
    def scale(self, step: int) -> bool: ...
    def show_everything(self) -> None: ...
    def reap_adopted(self) -> None: ...


class Hearing:
    """`heard` takes signals in the order in which they came."""

    def __init__(self, orders: Orders, emit: Callable[..., Any], clock: Clock) -> None:
        self._orders = orders
        self._emit = emit
        self._clock = clock
        self._first_end: float | None = None
        self._quiesced = False

    def listen(self, pipe: SignalPipe) -> None:
        for number in pipe.read():
            self.heard(number)

    def heard(self, number: signal.Signals) -> None:
        match number:
            case signal.SIGTERM | signal.SIGINT | signal.SIGQUIT:
                self._told_to_end(number)
            case signal.SIGTSTP:
                self._quiesced = True
                self._orders.quiesce()
            case signal.SIGCONT:
                # Also sent along with a signal that a stopped process would not hear.
                if self._quiesced:
                    self._quiesced = False
                    self._orders.resume()
            case signal.SIGUSR1:
                self._orders.show_everything()
            case signal.SIGCHLD:
                self._orders.reap_adopted()
            case _:
                self._may_be_ignored(number)

    def _may_be_ignored(self, number: signal.Signals) -> None:
        match number:
            case signal.SIGHUP:
                done = self._orders.reload()
            case signal.SIGTTIN:
                done = self._orders.scale(1)
            case signal.SIGTTOU:
                done = self._orders.scale(-1)
            case _:
                done = False
        if not done:
            self._ignore(number, "nothing to be done on it now")

    def _told_to_end(self, number: signal.Signals) -> None:
        """The first one drains; Ctrl-C once more after a while, or QUIT at any time, ends it at once."""
        now, first = self._clock(), self._first_end
        if first is None:
            self._first_end = now
        if number is signal.SIGQUIT:
            self._orders.hasten(number.name)
        elif first is None:
            self._orders.drain(number.name)
        elif is_repeat(now=now, first_at=first):
            self._ignore(number, f"heard within {REPEAT_WINDOW:g} s before")
        elif number is signal.SIGINT:
            self._orders.hasten(number.name)
        else:
            self._ignore(number, "already draining")

    def _ignore(self, number: signal.Signals, reason: str) -> None:
        self._emit("signal.ignored", signal=number.name, reason=reason)
