"""The work of `cairnq torture`: from its options to a ground and a plan, and from its report to an answer."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cairnq_supervisor.commands.answer import Answer, Block, Refusal
from cairnq_supervisor.commands.serving import configured
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.pure.tabular import Column, Table
from cairnq_supervisor.torture.ground import Ground
from cairnq_supervisor.torture.harness import DidNotStart, Plan, Progress, Tell, abilities, torture
from cairnq_supervisor.torture.report import SHOWN_BREACHES, Report

_CLEAR = "\r\x1b[K"


def run(options: argparse.Namespace) -> Answer:
    """Raises `Refusal`, or what the configuration and the database say."""
    settings = configured(options).settings
    seed = random.randrange(2**32) if options.seed is None else options.seed  # noqa: S311 - to be repeated
    plan = Plan(
        seed=seed,
        seconds=options.seconds,
        patience=options.patience,
        keep=options.keep,
        restart=options.restart,
        listen_database=settings.listen_database,
    )
    ground = _ground(settings, plan)
    for name in ("cairnq", "psycopg"):  # of the clients: what they would warn of is what was asked for
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # At once, for whatever happens from here on is to be repeated by it.
    sys.stderr.write(f"cairnq: torture of seed {seed} in {ground.where}\n")
    try:
        report = asyncio.run(_interruptible(ground, plan))
    except DidNotStart as error:
        raise Refusal(Exit.UNAVAILABLE, str(error)) from error
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    return Answer(report.data(), _shown(report, ground, keep=plan.keep), Exit.OK if report.passed else Exit.FAILED)


def _ground(settings: Settings, plan: Plan) -> Ground:
    able, name = abilities(plan.restart), f"cairnq_torture_{os.urandom(4).hex()}"
    path = dsn.file_of(settings.database)
    if path is None:
        from cairnq_supervisor.torture.ground_postgres import PostgresGround

        return PostgresGround(settings.database, direct=settings.listen_database, name=name, abilities=able)
    from cairnq_supervisor.torture.ground_sqlite import SqliteGround

    if plan.restart:
        raise Refusal(Exit.USAGE, "--restart is for a server, and the database is an SQLite file")
    file = Path(f"{path}.{name}")
    if not os.access(file.parent, os.W_OK):
        raise Refusal(Exit.CONFIG, f"{file.parent} is no folder in which a file can be made; name another --database")
    return SqliteGround(file)


async def _interruptible(ground: Ground, plan: Plan) -> Report:
    """SIGTERM ends it as Ctrl-C does: with nothing left behind."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with _status_line() as tell:
        return await torture(ground, plan, tell)


@contextlib.contextmanager
def _status_line() -> Iterator[Tell]:
    """On a terminal: one line that is written anew each second, and is gone at the end."""
    terminal = sys.stderr.isatty()

    def tell(progress: Progress) -> None:
        if terminal:
            sys.stderr.write(
                f"{_CLEAR}{progress.phase}: {progress.left_s:.0f} s left, {progress.faults} faults, "
                f"{progress.submitted:,} tasks"
            )
            sys.stderr.flush()

    yield tell
    if terminal:
        sys.stderr.write(_CLEAR)


def _shown(report: Report, ground: Ground, *, keep: bool) -> Sequence[Block]:
    statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(report.statuses.items()) if count)
    hosts = "1 host" if report.hosts == 1 else f"{report.hosts} hosts"
    missed = sum(report.missed.values())
    blocks: list[Block] = [
        f"seed {report.seed}: {report.faults} faults in {report.seconds:g} s, {hosts}"
        + (f"; {missed} more found nobody to hurt" if missed else ""),
        Table(
            [Column("fault", whole=True), Column("times", right=True, whole=True)],
            [[kind, str(count)] for kind, count in sorted(report.injected.items())],
        ),
        f"tasks: {statuses}; {len(report.evidence.runs):,} calls, {report.called_again:,} tasks called again",
    ]
    for check, breaches in report.breaches.items():
        blocks.append(f"{'BREACH' if breaches else 'ok':<6}  {check}")
        blocks += [f"        {breach.task_id} {breach.what}" for breach in breaches[:SHOWN_BREACHES]]
        if len(breaches) > SHOWN_BREACHES:
            blocks.append(f"        and {len(breaches) - SHOWN_BREACHES} more")
    blocks.append(f"{'BREACH' if report.wrongs else 'ok':<6}  processes and clients behaved")
    blocks += [f"        {wrong}" for wrong in report.wrongs]
    blocks += [f"kept: {ground.where}"] if keep else []
    blocks += [f"logs: {report.folder}"] if keep or not report.passed else []
    return blocks
