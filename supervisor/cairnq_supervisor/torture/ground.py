"""Where a run takes place: tables of its own in the given database, which nobody else's tasks share, and their end."""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from cairnq.client import CairnQ
from cairnq.pure.errors import ConnectError
from cairnq_supervisor.torture.evidence import Change, Deed, Evidence, Note, Row, Run
from cairnq_supervisor.torture.proxy import Proxy
from cairnq_supervisor.torture.schedule import Ability


@cache
def statement(name: str) -> str:
    """The text of an SQL file of ours, such as `rows`, or `postgres/install`."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


class Ground(abc.ABC):
    """One run's own tables. Made by `prepared`."""

    abilities: Collection[Ability] = frozenset()
    hosts: int = 1
    proxies: Sequence[Proxy] = ()
    """One for each host, where there are any."""

    dialect: str
    where: str
    """For people: what is made, and what `--keep` leaves."""

    effects: str
    """The table that handlers write into, as they must name it."""

    settings: Mapping[str, str]
    """Keys of the fleet's configuration, as TOML."""

    @asynccontextmanager
    async def prepared(self, *, keep: bool) -> AsyncIterator[Ground]:
        """Make the tables; remove them at the end. Raises the subclass of `ConnectError` that says why not."""
        async with self._reached():
            reached = True
            try:
                try:
                    async with self.client(None) as client:
                        await client.connect()
                except ConnectError:
                    reached = False  # nothing was made, and nobody would hear of its removal
                    raise
                await self._run_script(statement(f"{self.dialect}/install"))
                yield self
            finally:
                if reached and not keep:
                    await self._remove()

    @abc.abstractmethod
    def database(self, host: int | None) -> str:
        """What a host of the fleet connects to; None: the clients, past every fault of the network."""

    @abc.abstractmethod
    def client(self, host: int | None) -> CairnQ:
        """A client on the way of this host."""

    @abc.abstractmethod
    async def lock(self, seconds: float) -> bool:
        """Hold locks that the fleet's statements wait for, or pass by. Whether there was anything to lock."""

    async def end_sessions(self, target: float) -> bool:  # noqa: ARG002 - for whoever has some
        """End sessions of the fleets: one of them, or all. Whether there were any."""
        return False

    async def unfinished(self) -> int:
        [(count,)] = await self._query(statement("unfinished"))
        return int(count)

    async def gather(self, runs: Iterable[Run], notes: Iterable[Note]) -> Evidence:
        """Bring what was noted elsewhere into the side tables, and read everything back from there."""
        await self._insert(statement(f"{self.dialect}/add_run"), [_values(run) for run in runs])
        await self._insert(statement(f"{self.dialect}/add_note"), [_values(note) for note in notes])
        return await self.evidence()

    async def evidence(self) -> Evidence:
        """What the tables say."""
        rows = [Row(*row[:-3], *map(self._decoded, row[-3:])) for row in await self._query(statement("rows"))]
        return Evidence(
            rows={row.id: row for row in rows},
            changes=[Change(*row) for row in await self._query(statement("changes"))],
            runs=[Run(*row) for row in await self._query(statement("runs"))],
            notes=[Note(Deed(deed), *rest) for deed, *rest in await self._query(statement("notes"))],
            effects=[(task_id, run_id) for task_id, run_id in await self._query(statement("effects"))],
            keys=dict(await self._query(statement("keys"))),
        )

    @abc.abstractmethod
    def _reached(self) -> AbstractAsyncContextManager[None]:
        """Whatever must stand for as long as the ground is used."""

    @abc.abstractmethod
    async def _run_script(self, text: str) -> None: ...

    @abc.abstractmethod
    async def _query(self, text: str) -> list[tuple[Any, ...]]: ...

    @abc.abstractmethod
    async def _insert(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None: ...

    @abc.abstractmethod
    async def _remove(self) -> None: ...

    def _decoded(self, value: Any) -> Any:
        """A JSON column as its driver gave it."""
        return value


def _values(record: Run | Note) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)
