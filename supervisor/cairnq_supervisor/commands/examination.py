"""The work of `cairnq doctor`: the environment, the host's limits, the database and its notifications."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Iterator
from importlib import metadata

from cairnq.pure.errors import CairnQError
from cairnq_supervisor.commands.answer import Answer
from cairnq_supervisor.commands.reporting import configuration_faults, reached_file, report
from cairnq_supervisor.commands.serving import configured, exit_code, make_store
from cairnq_supervisor.pure import dsn, judging, quantities
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Finding, fault, ok, skipped, warning
from cairnq_supervisor.pure.settings import ConfigurationError, Settings
from cairnq_supervisor.roles.file_survey import FileSurvey, survey_file
from cairnq_supervisor.roles.survey import Survey, survey
from cairnq_supervisor.system import limits

_LISTEN_PATIENCE_S = 5.0
_SAFE_STALENESS = "another SDK has migrated this database; it must speak protocol 1, which is checked at each start"


def examine(options: argparse.Namespace) -> Answer:
    """A finding for each thing looked at. The self-test of LISTEN sends one empty notification."""
    try:
        settings = configured(options).settings
    except ConfigurationError as error:
        return report([*_environment(), *configuration_faults(error)])
    return report([*_environment(), *_host(settings), *asyncio.run(_database(settings))])


def _environment() -> Iterator[Finding]:
    """PyPI's `cairnq` is another SDK with our import name: whichever was installed last has overwritten the other."""
    try:
        other = metadata.version("cairnq")
    except metadata.PackageNotFoundError:
        yield ok("installation", "no other SDK shares this environment")
    else:
        advice = "give one of them a virtual environment of its own, and install the one that stays again"
        yield fault("installation", f"PyPI's cairnq {other} is in this environment and has our import name", advice)


def _host(settings: Settings) -> Iterator[Finding]:
    beside = 2 if settings.http is None else 3  # supervisor, keeper, gateway
    processes = sum(queue.processes for queue in settings.queues) + beside
    most = 2 * sum(queue.most_processes for queue in settings.queues) + beside  # one for suspects beside each
    yield judging.descriptors(processes=most, limit=limits.open_files())
    ceiling = limits.processes()
    used = 0 if ceiling is None else limits.threads_of_this_user()
    yield judging.process_limit(processes=processes, most=most, limit=ceiling, used=used)
    yield from _stop_timeouts(settings)


def _stop_timeouts(settings: Settings) -> Iterator[Finding]:
    known: list[tuple[str, float | None]] = [*limits.stop_timeouts()]
    said = os.environ.get(judging.STOP_TIMEOUT)
    if said:
        try:
            known.append((judging.STOP_TIMEOUT, quantities.duration(said)))
        except ValueError as error:
            yield fault("stop time-out", f"{judging.STOP_TIMEOUT} is {said!r}; it must be {error}")
    for unit, seconds in known:
        yield judging.stop_timeout(unit=unit, stop_s=seconds, drain_s=settings.drain_timeout)
    if not known and not said:
        yield skipped(
            "stop time-out", f"no cairnq unit of systemd is loaded here, and {judging.STOP_TIMEOUT} is not set"
        )


async def _database(settings: Settings) -> list[Finding]:
    path = dsn.file_of(settings.database)
    try:
        if path is not None:
            return await _file(settings, await survey_file(path))
        found = await survey(settings)
        host_ms = time.time() * 1000
        return [
            judging.pooler(pooled=found.pooled, goes_around=settings.listen_database is not None),
            judging.clock(database_ms=found.clock_ms, host_ms=host_ms),
            *_tables(settings, found),
            *(judging.snapshot(kind=each.kind, who=each.who, age_s=each.age_s) for each in found.holders),
            *([await _notifications(settings)] if found.table is not None else []),
        ]
    except CairnQError as error:
        return [fault("database", str(error), code=exit_code(error, settings.database))]


async def _file(settings: Settings, found: FileSurvey) -> list[Finding]:
    findings = [reached_file(found)]
    if not found.ledger:
        says = f"no cairnq in {found.path}"
        return [*findings, fault("tables", says, "start cairnq run, or run cairnq migrate", code=Exit.PROTOCOL)]
    if found.unknown:
        findings.append(warning("migrations", f"unknown here: {', '.join(found.unknown)}", _SAFE_STALENESS))
    return [*findings, await _notifications(settings, "the watch on the file")]


def _tables(settings: Settings, found: Survey) -> Iterator[Finding]:
    table = found.table
    if table is None and found.rights.owns is not None:
        says = f"{found.role!r} may not read the tables in schema {found.schema!r} of {found.database!r}"
        yield fault("rights", says, "see cairnq check for what it lacks, and cairnq roles --worker", code=Exit.CONFIG)
        return
    if table is None:
        says = f"no cairnq in schema {found.schema!r} of {found.database!r}"
        yield fault("tables", says, "run cairnq check, then cairnq migrate", code=Exit.PROTOCOL)
        return
    if found.unknown:
        yield warning("migrations", f"unknown here: {', '.join(found.unknown)}", _SAFE_STALENESS)
    if table.wakes:
        yield ok("trigger", "the wake-up trigger stands and fires")
    else:
        advice = "tasks are found by polling alone; run: alter table cairnq_tasks enable trigger cairnq_tasks_notify"
        yield fault("trigger", "the wake-up trigger cairnq_tasks_notify is missing or disabled", advice)
    yield judging.dead_rows(
        live=table.live, dead=table.dead, vacuumed_ago_s=table.vacuumed_ago_s, autovacuum=table.autovacuum
    )
    yield judging.retention(
        configured=bool(settings.retention), live=table.live, oldest_finished_s=table.oldest_finished_s
    )


async def _notifications(settings: Settings, means: str = "LISTEN") -> Finding:
    """The keeper's own subscription and self-test, once from end to end."""
    store, delivers = make_store(settings, migrate=False), asyncio.Event()
    try:
        await store.connect()
        began = time.monotonic()
        stop = await store.listen(["cairnq_queued"], lambda *_: None, lambda on: delivers.set() if on else None)
        waiting = asyncio.ensure_future(delivers.wait())
        await asyncio.wait({waiting}, timeout=_LISTEN_PATIENCE_S)
        waiting.cancel()
        took_ms = (time.monotonic() - began) * 1000
        await stop()
    except CairnQError as error:
        return fault("notifications", str(error), code=exit_code(error, settings.database))
    finally:
        await store.close()
    if delivers.is_set():
        return ok("notifications", f"{means} delivers (connect and self-test in {took_ms:.0f} ms)")
    if dsn.is_sqlite(settings.database):
        return fault("notifications", f"{means} saw nothing", "workers poll meanwhile; see whether it can be read")
    advice = "workers poll meanwhile; give listen_database a direct URL, past any transaction pooler"
    return fault("notifications", f"{means} delivered nothing within {_LISTEN_PATIENCE_S:g} s", advice)
