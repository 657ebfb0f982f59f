"""The work of `cairnq check`: configuration, application and database, as the first start would meet them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import sys
from collections.abc import Iterator

from cairnq.pure.errors import CairnQError, MigrationsPending
from cairnq_supervisor.commands.answer import Answer, Refusal
from cairnq_supervisor.commands.calling import ask
from cairnq_supervisor.commands.reporting import configuration_faults, reached_file, report
from cairnq_supervisor.commands.serving import configured, exit_code, make_store
from cairnq_supervisor.config import Configuration
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Finding, Verdict, fault, ok, skipped
from cairnq_supervisor.pure.judging import connection_budget, memory_budget, pooler
from cairnq_supervisor.pure.requests import Status
from cairnq_supervisor.pure.settings import ConfigurationError, Settings
from cairnq_supervisor.roles.application import (
    ApplicationError,
    application_faults,
    load_registry,
    put_first_on_path,
    registry_for,
)
from cairnq_supervisor.roles.boot import size_fault
from cairnq_supervisor.roles.file_survey import survey_file
from cairnq_supervisor.roles.survey import Survey, survey
from cairnq_supervisor.roles.trial import Footprint, try_worker
from cairnq_supervisor.system.granted_memory import memory_grant
from cairnq_supervisor.system.http import listen

_FOR_RETENTION = ("insert on cairnq_meta", "update on cairnq_meta")
"""Without it nobody needs the duty's row."""


def check(options: argparse.Namespace) -> Answer:
    """A finding for each thing looked at. Changes nothing."""
    try:
        configuration = configured(options, needs_app=True)
    except ConfigurationError as error:
        return report(configuration_faults(error))
    found = [*_application(configuration), *_address(options, configuration.settings)]
    return report([*found, *asyncio.run(_database(configuration.settings))])


def _application(configuration: Configuration) -> Iterator[Finding]:
    """The import, which handlers each queue's workers would run, and the memory that they would take."""
    settings = configuration.settings
    yield ok("configuration", f"{configuration.origin}, {len(settings.queues)} queue(s)")
    put_first_on_path(configuration.folder)
    _load_what_the_supervisor_loads()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no part of the answer
            footprint = None if settings.preload else try_worker(settings)
            registry = load_registry(settings.app)
    except ApplicationError as error:
        says, _, traceback = str(error).partition("\n")
        yield fault("application", says, code=Exit.CONFIG, more=traceback)
        return
    yield ok("application", f"{settings.app} imports, {len(registry.handlers)} handler(s)")
    faults = application_faults(registry, settings, configuration.origin)
    yield from (fault("application", str(each), code=Exit.CONFIG) for each in faults)
    for queue in settings.queues if not faults else ():
        names = ", ".join(sorted(registry_for(registry, queue).handlers))
        yield ok("queue", f"{queue.name}: {queue.processes} process(es) of {queue.concurrency}, runs {names}")
    yield from _memory(settings, try_worker(settings) if settings.preload else footprint)


def _load_what_the_supervisor_loads() -> None:
    """Its children share it, and have it in their size."""
    import cairnq_supervisor.run  # noqa: F401 - not at the top, for `check` is all that needs it


def _memory(settings: Settings, footprint: Footprint | None) -> Iterator[Finding]:
    if footprint is None:
        yield skipped("memory", "the size of a worker could not be measured")
        return
    grant = memory_grant()
    yield memory_budget(
        workers=sum(queue.most_processes for queue in settings.queues),
        booted=footprint.resident,
        own=footprint.own,
        supervisor=footprint.parent,
        granted=None if grant is None else grant.limit,
    )
    for queue in settings.queues:
        if reason := size_fault(queue, footprint.resident):
            yield fault("memory", reason, "raise it: the application itself needs that much", code=Exit.CONFIG)


def _address(options: argparse.Namespace, settings: Settings) -> Iterator[Finding]:
    """Whether the gateway could listen. The supervisor that is about to be replaced may be who does."""
    where = settings.http
    if where is None:
        return
    try:
        listen(where).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE and (pid := _holder(options, where.port)) is not None:
            yield ok("http", f"{where} is in use while the supervisor of this configuration runs (pid {pid})")
        else:
            yield fault("http", f"cannot listen on {where}: {error}", "free it, or choose another", code=Exit.CONFIG)
    else:
        yield ok("http", f"{where} is free")


def _holder(options: argparse.Namespace, port: int) -> int | None:
    """The supervisor of this configuration, if it is who has the port: it hands it over."""
    try:
        status = ask(argparse.Namespace(config=options.config, socket=None), Status())
    except Refusal:
        return None
    return int(status["supervisor"]["pid"]) if (status.get("gateway") or {}).get("port") == port else None


async def _database(settings: Settings) -> list[Finding]:
    path = dsn.file_of(settings.database)
    try:
        if path is not None:
            return [reached_file(await survey_file(path)), await _schema(settings)]
        found = await survey(settings)
    except CairnQError as error:
        return [fault("database", str(error), code=exit_code(error, settings.database))]
    around = pooler(pooled=found.pooled, goes_around=settings.listen_database is not None)
    if around.verdict is Verdict.FAULT:
        return [_reached(found), around, skipped("schema", "not looked at through a pooler"), *_rights(settings, found)]
    return [_reached(found), around, await _schema(settings), *_rights(settings, found), _connections(settings, found)]


def _reached(found: Survey) -> Finding:
    version = f"{found.version // 10_000}.{found.version % 10_000}"
    return ok("database", f"{found.database!r} as {found.role!r}, PostgreSQL {version}")


async def _schema(settings: Settings) -> Finding:
    """What the first start would find, by the check that it makes itself."""
    store = make_store(settings, migrate=False)
    try:
        installation = await store.connect()
    except MigrationsPending as pending:
        if settings.migrate:
            return ok("schema", "the first start makes or migrates the tables")
        return fault("schema", str(pending), "run cairnq migrate", code=exit_code(pending, settings.database))
    except CairnQError as error:
        return fault("schema", str(error), code=exit_code(error, settings.database))
    finally:
        await store.close()
    return ok("schema", f"{installation.schema!r} is current, protocol {installation.protocol_version}")


def _rights(settings: Settings, found: Survey) -> Iterator[Finding]:
    rights, role = found.rights, found.role
    if rights.use is None and not rights.create_schema:
        yield fault("rights", f"{role!r} may not create schema {found.schema!r}", "create it for it", code=Exit.CONFIG)
    elif rights.use is False:
        advice = f'grant usage on schema "{found.schema}" to "{role}"'
        yield fault("rights", f"{role!r} may not use schema {found.schema!r}", advice, code=Exit.CONFIG)
    elif rights.owns is None and rights.create is False:
        says = f"{role!r} may not create tables in schema {found.schema!r}"
        yield fault("rights", says, "run cairnq migrate as a role that may", code=Exit.CONFIG)
    elif missing := [right for right in rights.missing if settings.retention or right not in _FOR_RETENTION]:
        advice = "see cairnq roles --worker, and give default privileges for tables to come"
        yield fault("rights", f"{role!r} lacks {', '.join(missing)}", advice, code=Exit.CONFIG)
    elif rights.owns is False and settings.migrate:
        yield ok("rights", f"{role!r} may do all but migrate; set migrate = false, and migrate as the owner")
    else:
        yield ok("rights", f"{role!r} may do all that is needed")


def _connections(settings: Settings, found: Survey) -> Finding:
    if found.pooled:
        return skipped("connections", "a pooler stands before the database: its own limits hold")
    return connection_budget(
        workers=sum(queue.most_processes for queue in settings.queues),
        most=found.most_connections,
        reserved=found.reserved_connections,
        used=found.open_connections,
    )
