"""`cairnq run` up to its first fork: configuration, application, preflight; then the supervisor takes over."""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import os
import socket
import sys
import threading
from collections.abc import Callable

from cairnq.pure.errors import (
    CairnQError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    ProtocolVersionMismatch,
    SchemaMismatch,
)
from cairnq.run.registry import Registry
from cairnq.store.base import Installation
from cairnq_supervisor.config import Configuration, Flags, describe, forget_secrets, load
from cairnq_supervisor.loop.outside import Outside
from cairnq_supervisor.loop.reloading import Renewal
from cairnq_supervisor.loop.supervisor import Supervisor
from cairnq_supervisor.pure import address, dsn, judging, quantities
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Verdict
from cairnq_supervisor.pure.judging import connection_budget
from cairnq_supervisor.pure.printable import printable_lines
from cairnq_supervisor.pure.settings import ConfigurationError, QueueSettings, Settings
from cairnq_supervisor.roles.application import (
    ApplicationError,
    application_faults,
    application_modules,
    load_registry,
    put_first_on_path,
)
from cairnq_supervisor.roles.preflight import preflight
from cairnq_supervisor.roles.scout import run_scout
from cairnq_supervisor.roles.survey import survey
from cairnq_supervisor.system import signals
from cairnq_supervisor.system.control import ControlSocket, Occupied
from cairnq_supervisor.system.http import listen
from cairnq_supervisor.system.journal import Journal
from cairnq_supervisor.system.notify import Notifier
from cairnq_supervisor.system.spawn import thread_count
from cairnq_supervisor.system.title import show_title


class Refused(Exception):
    """The start is refused with this exit code; the message is for a person."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def run(options: argparse.Namespace) -> int:
    """The exit code. Called with ending signals answered at once, for nothing is forked yet."""
    try:
        flags = Flags(options.config, options.app, options.database, options.log, tuple(options.queues))
        events_fd = _usable_descriptor(options.events_fd)
        environment = dict(os.environ)
        configuration = _configured(flags)
    except Refused as refusal:
        sys.stderr.write(printable_lines(f"cairnq: {refusal}") + "\n")
        return refusal.code
    journal = Journal(log=configuration.settings.log, events_fd=events_fd)
    try:
        return _serve(configuration, journal, lambda: load(flags, environment).settings)
    except Refused as refusal:
        journal.emit("supervisor.refused", code=int(refusal.code), reason=str(refusal))
        return refusal.code


def _serve(configuration: Configuration, journal: Journal, reread: Callable[[], Settings]) -> int:
    settings = configuration.settings
    show_title("cairnq: supervisor")
    _announce(settings, journal)
    _warn_of_short_stop(settings, journal)
    http = _http_socket(configuration)
    loaded_before = frozenset(sys.modules)
    registry = _preloaded(configuration, journal)
    own_modules = application_modules(loaded_before)
    installation = _checked(settings, journal)
    _report_connections(settings, journal)
    _warn_of_threads(settings, journal)
    # Children share what is not written to; the collector's marks would be writes.
    gc.collect()
    gc.freeze()
    signals.block()
    # Last, for what it leaves in a folder is taken away by a supervisor that ends, and not by a start that is refused.
    outside = Outside(_control_socket(configuration, journal), http, Notifier(os.environ))
    renewal = Renewal(reread, lambda channel: run_scout(reread, own_modules, channel), own_modules)
    return Supervisor(settings, installation, registry, journal, outside, renewal).run()


def _configured(flags: Flags) -> Configuration:
    try:
        configuration = load(flags, os.environ)
    except ConfigurationError as error:
        raise Refused(Exit.CONFIG, describe(error.faults)) from error
    forget_secrets()
    put_first_on_path(configuration.folder)
    return configuration


def _usable_descriptor(fd: int | None) -> int | None:
    """Checked before anything else is opened, which might take the number."""
    if fd is None:
        return None
    try:
        os.set_inheritable(fd, False)
    except OSError as error:
        raise Refused(Exit.USAGE, f"--events-fd {fd}: {error.strerror}; open it in the caller") from error
    return fd


def _http_socket(configuration: Configuration) -> socket.socket | None:
    """Opened once, for every gateway that there will be: an address that is taken is a fault of the configuration."""
    where = configuration.settings.http
    if where is None:
        return None
    try:
        return listen(where)
    except OSError as error:
        hint = "; `cairnq status` tells whether this supervisor runs already" if error.errno == errno.EADDRINUSE else ""
        raise Refused(Exit.CONFIG, f"{configuration.origin}: http cannot listen on {where}: {error}{hint}") from error


def _control_socket(configuration: Configuration, journal: Journal) -> ControlSocket | None:
    """None where no socket can be made: then there is no status, but that is no reason not to work."""
    try:
        path = address.to_serve(configuration.path, os.environ)
        return ControlSocket(path, address.alias(configuration.path, configuration.given, os.environ))
    except (Occupied, address.TooLong) as error:
        raise Refused(Exit.CONFIG, str(error)) from error
    except OSError as error:
        journal.emit("control.unavailable", reason=str(error))
        return None


def _preloaded(configuration: Configuration, journal: Journal) -> Registry | None:
    """The application, imported once for all children; None where each child is to import it."""
    settings = configuration.settings
    if not settings.preload:
        return None
    try:
        registry = load_registry(settings.app)
    except ApplicationError as error:
        raise Refused(Exit.CONFIG, f"{configuration.origin}: {error}") from error
    faults = application_faults(registry, settings, configuration.origin)
    if faults:
        raise Refused(Exit.CONFIG, describe(faults))
    journal.emit(
        "application.loaded", app=settings.app, count=len(registry.handlers), handlers=sorted(registry.handlers)
    )
    return registry


def _checked(settings: Settings, journal: Journal) -> Installation:
    try:
        installation = preflight(settings, journal.emit)
    except DatabaseReadOnly as error:
        # A standby may be promoted; a file stays as its owner left it.
        code = Exit.CONFIG if dsn.is_sqlite(settings.database) else Exit.TEMPFAIL
        raise Refused(code, str(error)) from error
    except DatabaseUnavailable as error:
        raise Refused(Exit.TEMPFAIL, str(error)) from error
    except (SchemaMismatch, ProtocolVersionMismatch) as error:
        raise Refused(Exit.PROTOCOL, str(error)) from error
    except CairnQError as error:
        raise Refused(Exit.CONFIG, str(error)) from error
    journal.emit("database.checked", schema=installation.schema, protocol_version=installation.protocol_version)
    return installation


def _report_connections(settings: Settings, journal: Journal) -> None:
    """Whether this host's connections fit beside the others'. SQLite has none to count."""
    if dsn.is_sqlite(settings.database):
        return
    try:
        found = asyncio.run(survey(settings))
    except CairnQError as error:
        journal.emit("database.unsurveyed", reason=str(error))
        return
    if found.pooled:
        return  # its own limits hold
    budget = connection_budget(
        workers=sum(queue.most_processes for queue in settings.queues),
        most=found.most_connections,
        reserved=found.reserved_connections,
        used=found.open_connections,
    )
    name = "database.connections" if budget.verdict is Verdict.OK else "database.connections-short"
    journal.emit(name, says=budget.says, advice=budget.advice)


def _announce(settings: Settings, journal: Journal) -> None:
    queues = ", ".join(f"{queue.name}={_span(queue)}:{queue.concurrency}" for queue in settings.queues)
    journal.emit(
        "supervisor.starting",
        pid=os.getpid(),
        app=settings.app,
        queues=queues,
        workers=sum(queue.processes for queue in settings.queues),
        database=dsn.shown(settings.database),
    )


def _span(queue: QueueSettings) -> str:
    return str(queue.processes) if queue.max_processes is None else f"{queue.processes}-{queue.max_processes}"


def _warn_of_short_stop(settings: Settings, journal: Journal) -> None:
    """Whoever kills us before the drain is over makes every deploy cost attempts. `doctor` says so too."""
    try:
        known = quantities.duration(os.environ.get(judging.STOP_TIMEOUT, ""))
    except ValueError:
        return
    finding = judging.stop_timeout(unit=judging.STOP_TIMEOUT, stop_s=known, drain_s=settings.drain_timeout)
    if finding.verdict is Verdict.FAULT:
        journal.emit("supervisor.stop-short", reason=f"{finding.says}; {finding.advice}")


def _warn_of_threads(settings: Settings, journal: Journal) -> None:
    """A fork copies the calling thread alone: what the others held stays locked in the children for ever."""
    count = thread_count()
    if count > 1:
        named = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        likely = f"started by the import of {settings.app}: {', '.join(named) or 'a native library, such as OpenBLAS'}"
        journal.emit("supervisor.threads", count=count, likely=likely)
