"""From options to an answer: configuration, a client for one piece of work, and the exit code of each way to fail."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

from cairnq.client import CairnQ
from cairnq.pure.errors import (
    AlreadyExists,
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    InvalidArgument,
    InvalidDsn,
    InvalidPath,
    PermissionDenied,
    ProtocolVersionMismatch,
    QueueFull,
    SchemaMismatch,
    SerializationError,
    TaskTimeout,
)
from cairnq.store.base import TaskStore
from cairnq_supervisor.commands.answer import Answer, Refusal, complain, say
from cairnq_supervisor.config import Configuration, Flags, describe, forget_secrets, load
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.settings import ConfigurationError, Settings
from cairnq_supervisor.roles.stores import open_store

Work = Callable[[CairnQ], Awaitable[Answer]]

_CODES: tuple[tuple[type[CairnQError], int], ...] = (
    # The first that fits: some are kinds of one another.
    (InvalidDsn, Exit.CONFIG),
    (InvalidPath, Exit.CONFIG),
    (InvalidArgument, Exit.USAGE),
    (SerializationError, Exit.USAGE),
    (AlreadyExists, Exit.FAILED),
    (QueueFull, Exit.TEMPFAIL),
    (TaskTimeout, Exit.TEMPFAIL),
    (DatabaseUnavailable, Exit.TEMPFAIL),
    (DatabaseReadOnly, Exit.TEMPFAIL),
    (SchemaMismatch, Exit.PROTOCOL),
    (ProtocolVersionMismatch, Exit.PROTOCOL),
    (ConnectError, Exit.CONFIG),
)

INTERRUPTED = 128 + 2


def exit_code(error: CairnQError, database: str = "") -> int:
    """`database`: the one that it is about. A standby may be promoted; a file stays as its owner left it."""
    if isinstance(error, DatabaseReadOnly) and dsn.is_sqlite(database):
        return Exit.CONFIG
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.SOFTWARE)


def with_client(options: argparse.Namespace, work: Work) -> int:
    """Run `work` on a client of the configured database; returns the exit code."""

    async def connected() -> Answer:
        settings = configured(options).settings
        _check_file(settings)
        with of_database(settings):
            async with CairnQ(make_store(settings, migrate=False)) as client:
                return await work(client)

    return answered(options, lambda: asyncio.run(connected()))


@contextlib.contextmanager
def of_database(settings: Settings) -> Iterator[None]:
    """What goes wrong here is about this database: the sentence and the exit code go with its kind."""
    try:
        yield
    except CairnQError as error:
        lacks = isinstance(error, PermissionDenied) and not dsn.is_sqlite(settings.database)
        advice = "; cairnq roles prints what to grant" if lacks else ""
        raise Refusal(exit_code(error, settings.database), f"{error}{advice}") from error


def answered(options: argparse.Namespace, make: Callable[[], Answer]) -> int:
    """Make the answer and print it. Every failure that has a name is one sentence and its exit code."""
    return answered_in_turn(options, (ask() for ask in [make]))


def answered_in_turn(options: argparse.Namespace, answers: Iterable[Answer]) -> int:
    """Print one after another; the exit code of the last. It ends where the reader has left, too."""
    code: int = Exit.OK
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for answer in answers:
            code = answer.code
            say(answer, as_json=options.json)
            sys.stdout.flush()
    except Refusal as refusal:
        complain(str(refusal))
        return refusal.code
    except ConfigurationError as error:
        complain(describe(error.faults))
        return Exit.CONFIG
    except CairnQError as error:
        complain(str(error))
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted. Python would complain when it flushes at exit.
        _write_nowhere()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _write_nowhere()
        complain(f"cannot write the answer: {error.strerror}")
        return Exit.FAILED
    return code


def _write_nowhere() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def configured(options: argparse.Namespace, *, needs_app: bool = False) -> Configuration:
    """What the file, the environment and the flags say. Raises `ConfigurationError` with every fault."""
    flags = Flags(config=options.config, database=options.database, schema=options.schema)
    configuration = load(flags, os.environ, needs_app=needs_app)
    forget_secrets()
    return configuration


def _check_file(settings: Settings) -> None:
    """Most often nobody has said which database is meant, and the default is not there."""
    path = dsn.file_of(settings.database)
    if path is not None and not Path(path).exists():
        advice = "set CAIRNQ_DSN, name a configuration with -c, or start `cairnq run`, which makes it"
        raise Refusal(Exit.CONFIG, f"there is no database {path}; {advice}")


def make_store(settings: Settings, *, migrate: bool) -> TaskStore:
    """For a short life: one connection, and a second one only where work goes on beside it."""
    return open_store(settings, connections=(0, 2), migrate=migrate)
