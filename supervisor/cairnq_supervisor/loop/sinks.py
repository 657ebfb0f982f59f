"""Lets a sink that a slow reader keeps waiting go on as soon as the reader reads."""

from __future__ import annotations

from collections.abc import Callable

from cairnq_supervisor.loop.reactor import WRITE, Reactor
from cairnq_supervisor.system.sink import LineSink


def flush_when_writable(reactor: Reactor) -> Callable[[LineSink], None]:
    """What to call with a congested sink."""

    def watch(sink: LineSink) -> None:
        def flush(_events: int) -> None:
            sink.flush()
            if not sink.congested:
                reactor.forget(sink.fd)

        reactor.watch(sink.fd, flush, WRITE)

    return watch
