"""`cairnq status`: what the supervisor of this host is doing."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from cairnq_supervisor.commands.shape import Commands, command
from cairnq_supervisor.pure.requests import Status
from cairnq_supervisor.pure.tabular import Column, Table

if TYPE_CHECKING:
    from cairnq_supervisor.commands.answer import Answer

_WATCH_INTERVAL = 1.0
"""Seconds."""

_CLEAR = "\x1b[H\x1b[2J"


def add(commands: Commands) -> None:
    from cairnq_supervisor.commands.calling import socket_options

    parser = command(
        commands,
        "status",
        _act,
        does="Show what this host's supervisor, its keeper and its workers are doing.",
        example="  cairnq status\n  cairnq status --watch\n  cairnq status --json | jq .queues\n",
    )
    parser.add_argument("--watch", action="store_true", help="show it again every second, until Ctrl-C")
    socket_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.calling import ask
    from cairnq_supervisor.commands.serving import answered

    def look() -> Answer:
        return _shown(ask(options, Status()))

    code = answered(options, look)
    while options.watch and code == 0:
        time.sleep(_WATCH_INTERVAL)
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        code = answered(options, look)
    return code


def _shown(report: dict[str, Any]) -> Answer:
    from cairnq_supervisor.commands.answer import Answer, Record

    supervisor, keeper = report["supervisor"], report["keeper"]
    head = Record(
        [
            ("supervisor", f"{supervisor['state']}, pid {supervisor['pid']}, since {supervisor['started_at']}"),
            ("database", f"{supervisor['database']} (schema {supervisor['schema']})"),
            ("keeper", _keeper(keeper)),
        ]
    )
    return Answer(report, [head, "", _queues(report["queues"]), "", _workers(report["workers"])])


def _keeper(keeper: dict[str, Any]) -> str:
    words = [f"{keeper['state']}, pid {keeper['pid']}, {keeper['leases']} leases"]
    if keeper["last_beat_ms"] is not None:
        words.append(f"last beat {keeper['last_beat_ms'] / 1000:.1f} s ago in {keeper['beat_latency_ms']} ms")
    words.append("listening" if keeper["listening"] else "not listening")
    return ", ".join(words)


def _queues(queues: list[dict[str, Any]]) -> Table:
    columns = [
        Column("queue"),
        *(Column(title, right=True, whole=True) for title in ("ready", "want", "calls")),
        Column(""),
    ]
    rows = [
        [
            queue["name"],
            str(queue["processes"]["ready"]),
            str(queue["processes"]["want"]),
            f"{queue['in_flight']}/{queue['concurrency'] * queue['processes']['want']}",
            "paused" if queue["paused"] else "",
        ]
        for queue in queues
    ]
    return Table(columns, rows)


def _workers(workers: list[dict[str, Any]]) -> Table:
    numbers = ("pid", "calls", "done", "failed", "released", "MiB", "age s", "lag ms")
    columns = [Column("worker"), Column("state"), *(Column(title, right=True, whole=True) for title in numbers)]
    return Table(columns, [_worker(worker) for worker in workers])


def _worker(worker: dict[str, Any]) -> list[str]:
    return [
        f"{worker['queue']}/{worker['slot']}",
        f"{worker['state']}, flapping" if worker["flapping"] else worker["state"],
        str(worker["pid"] or ""),
        f"{worker['in_flight']}/{worker['concurrency']}",
        f"{worker['succeeded']:,}",
        f"{worker['failed']:,}",
        f"{worker['released']:,}",
        f"{worker['rss'] / 2**20:.0f}" if worker["rss"] is not None else "",
        f"{worker['age_s']:.0f}" if worker["age_s"] is not None else "",
        str(worker["loop_lag_ms"]),
    ]
