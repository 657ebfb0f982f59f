"""`cairnq migrate`: bring the tables up to date, as the first start would."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import Commands, command, database_options

if TYPE_CHECKING:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.pure.settings import Settings


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "migrate",
        _act,
        does="Make or migrate the tables. Harmless when there is nothing to do, and when two run at once.",
        example="  CAIRNQ_DSN=postgresql://owner@db.example/shop cairnq migrate --schema cairnq\n",
    )
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    import asyncio

    from cairnq_supervisor.commands.serving import answered

    return answered(options, lambda: asyncio.run(_migrate(options)))


async def _migrate(options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.serving import configured, make_store, of_database

    settings = configured(options).settings
    with of_database(settings):
        before = await _applied(settings)
        store = make_store(settings, migrate=True)
        try:
            installation = await store.connect()
        finally:
            await store.close()
        applied = [name for name in await _applied(settings) if name not in before]
    data = {
        "schema": installation.schema,
        "protocol_version": installation.protocol_version,
        "applied": applied,
    }
    what = f"applied {', '.join(applied)}" if applied else "nothing to do"
    return Answer(data, [f"schema {installation.schema} speaks protocol {installation.protocol_version}: {what}"])


async def _applied(settings: Settings) -> tuple[str, ...]:
    """Our migrations that the database has."""
    from cairnq_supervisor.pure import dsn
    from cairnq_supervisor.roles.file_survey import survey_file
    from cairnq_supervisor.roles.survey import survey

    path = dsn.file_of(settings.database)
    return (await survey(settings)).ours if path is None else (await survey_file(path)).ours
