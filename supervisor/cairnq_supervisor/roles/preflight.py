"""The one check before the fork: schema, migrations, protocol version. Its connection ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.errors import DatabaseReadOnly, DatabaseUnavailable
from cairnq.store.base import Installation
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.roles.stores import open_store

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0


def preflight(settings: Settings, emit: Callable[..., object], clock: Clock = boottime) -> Installation:
    """What the connect-time checks found. A database that does not answer is asked again for `connect_timeout`.

    Raises the subclass of `ConnectError` that says why not.
    """
    return asyncio.run(_until_answered(settings, emit, clock))


async def _until_answered(settings: Settings, emit: Callable[..., object], clock: Clock) -> Installation:
    deadline, pause = clock() + settings.connect_timeout, _FIRST_PAUSE
    while True:
        try:
            return await _check(settings, patience=max(1.0, deadline - clock()))
        except (DatabaseUnavailable, DatabaseReadOnly) as error:
            is_final = isinstance(error, DatabaseReadOnly) and dsn.is_sqlite(settings.database)
            if is_final or clock() + pause > deadline:
                raise
            if pause == _FIRST_PAUSE:
                emit("database.awaited", reason=str(error), timeout_s=settings.connect_timeout)
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


async def _check(settings: Settings, *, patience: float) -> Installation:
    store = open_store(settings, connections=(1, 1), migrate=settings.migrate)
    try:
        async with asyncio.timeout(patience):
            return await store.connect()
    except TimeoutError as error:
        raise DatabaseUnavailable(f"the database did not answer within {patience:.0f} s") from error
    finally:
        await store.close()
