"""Events as lines: a sentence for people, JSON for programs. The one place where an event becomes text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from cairnq_supervisor.pure.printable import CONTINUED, clip, json_line, printable


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event: when (epoch seconds), what, and its facts."""

    at: float
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        return _LEVELS.get(self.name, Level.INFO)


_LEVELS = {
    "supervisor.fault": Level.ERROR,
    "keeper.fault": Level.ERROR,
    "supervisor.threads": Level.WARNING,
    "supervisor.gave-up": Level.ERROR,
    "drain.incomplete": Level.ERROR,
    "supervisor.refused": Level.ERROR,
    "worker.died": Level.ERROR,
    "worker.killed": Level.WARNING,
    "worker.boot-failed": Level.ERROR,
    "worker.spawn-failed": Level.ERROR,
    "keeper.spawn-failed": Level.ERROR,
    "worker.flapping": Level.WARNING,
    "worker.blocked": Level.WARNING,
    "worker.orphaned": Level.WARNING,
    "worker.crashed": Level.ERROR,
    "keeper.died": Level.ERROR,
    "keeper.killed": Level.WARNING,
    "keeper.boot-failed": Level.ERROR,
    "keeper.crashed": Level.ERROR,
    "keeper.orphaned": Level.WARNING,
    "upkeep.failed": Level.WARNING,
    "supervisor.stop-short": Level.WARNING,
    "gateway.died": Level.ERROR,
    "gateway.killed": Level.WARNING,
    "gateway.crashed": Level.ERROR,
    "database.connections-short": Level.WARNING,
    "database.unsurveyed": Level.WARNING,
    "database.failed": Level.WARNING,
    "database.failed-too": Level.DEBUG,
    "database.recovered-too": Level.DEBUG,
    "statement.failed": Level.DEBUG,
    "task.failed": Level.WARNING,
    "task.timed_out": Level.WARNING,
    "task.oversized": Level.WARNING,
    "threads.exhausted": Level.WARNING,
    "keeper.listen-lost": Level.WARNING,
    "lease.lost": Level.WARNING,
    "control.unavailable": Level.WARNING,
    "clock.stepped": Level.WARNING,
    "reload.failed": Level.ERROR,
    "worker.replacement-failed": Level.ERROR,
    "lease.beat": Level.DEBUG,
    "lease.beat-failed": Level.DEBUG,
    "worker.forgotten": Level.DEBUG,
    "events.dropped": Level.WARNING,
}

_SENTENCES = {
    "supervisor.starting": "starting {app} with {workers} worker(s): {queues}",
    "application.loaded": "{app} has {count} handler(s)",
    "database.checked": "schema {schema}, protocol {protocol_version}",
    "database.connections": "connections: {says}",
    "database.connections-short": "connections: {says}; {advice}",
    "database.unsurveyed": "nothing is known of its limits: {reason}",
    "database.awaited": "{reason}; asking again for {timeout_s:g} s",
    "supervisor.running": "running: every worker is ready",
    "supervisor.quiesced": "claims nothing, until SIGCONT; what runs goes on",
    "supervisor.resumed": "claims again",
    "supervisor.refused": "{reason}",
    "supervisor.gave-up": "no worker can start; exit code {code}",
    "supervisor.stopped": "stopped, exit code {code}",
    "supervisor.threads": "{count} operating system threads before the fork ({likely}); a fork copies none of them",
    "worker.started": "worker {queue}/{slot} started (pid {pid})",
    "worker.ready": "worker {queue}/{slot} is ready (pid {pid})",
    "worker.exited": "worker {queue}/{slot} left (pid {pid})",
    "worker.died": "worker {queue}/{slot} died: {cause} (pid {pid}); next one in {respawn_in_s:g} s",
    "worker.killed": "worker {queue}/{slot} killed: {reason} (pid {pid})",
    "worker.boot-failed": "worker {queue}/{slot} could not start: {reason}",
    "worker.spawn-failed": "worker {queue}/{slot} could not be forked: {reason}; again in {respawn_in_s:g} s",
    "keeper.spawn-failed": "keeper could not be forked: {reason}; again in {respawn_in_s:g} s",
    "worker.blocked": "worker {queue}/{slot}: its loop has not turned for {blocked_s} s, in {handler} (pid {pid})",
    "worker.stacks": "worker {queue}/{slot} (pid {pid})",
    "worker.flapping": "worker {queue}/{slot} dies again and again: {deaths} times without a healthy while between",
    "worker.replacing": "worker {queue}/{slot} gets a successor: {reason} (pid {pid})",
    "worker.replacement-failed": "worker {queue}/{slot} stays: {reason}",
    "reload.started": "reading the configuration and the application again",
    "reload.finished": "every worker is of generation {generation}",
    "reload.failed": "the old workers stay: {reason}",
    "queue.quarantined": "{queue}: {suspects} task(s) saw two workers die, and run alone in {processes} process(es)",
    "queue.scaled": "{queue} is to have {processes} process(es)",
    "control.unavailable": "no control socket, so no `cairnq status`: {reason}",
    "worker.settled": (
        "worker {queue}/{slot}: of its tasks {requeued} queued again, {failed} failed, {released} given back"
        " ({suspects} suspects)"
    ),
    "keeper.started": "keeper started (pid {pid})",
    "keeper.ready": "keeper is ready (pid {pid})",
    "keeper.exited": "keeper left (pid {pid})",
    "keeper.died": "keeper died: {cause} (pid {pid}); next one in {respawn_in_s:g} s",
    "keeper.killed": "keeper killed: {reason} (pid {pid})",
    "gateway.started": "gateway started (pid {pid})",
    "gateway.ready": "gateway is ready (pid {pid})",
    "gateway.listening": "health and metrics on http://{host}:{port}",
    "gateway.exited": "gateway left (pid {pid})",
    "gateway.died": "gateway died: {cause} (pid {pid}); next one in {respawn_in_s:g} s",
    "gateway.killed": "gateway killed: {reason} (pid {pid})",
    "supervisor.stop-short": "a stop will cost attempts: {reason}",
    "retention.swept": "finished tasks deleted: {succeeded} succeeded, {failed} failed, {canceled} canceled",
    "database.vacuumed": "dead rows of the tasks' table removed",
    "upkeep.failed": "retention and vacuum do not work: {error}",
    "drain.started": "draining because of {cause}: at most {timeout_s:g} s",
    "drain.incomplete": "the database did not take everything back; leases will expire: {unsettled}",
    "drain.hastened": "draining at once because of {cause}",
    "keeper.listening": "notifications arrive (pid {pid})",
    "keeper.listen-lost": "no notifications arrive, or no look is answered (pid {pid}); workers poll",
    "database.failed": "the database does not serve a {operation}: {error}",
    "database.recovered": "the database serves again, after {after_s} s",
    "task.failed": "{name} {task_id} failed in attempt {attempt}: {raised}",
    "task.timed_out": "{name} {task_id} outran max_run in attempt {attempt}",
    "task.oversized": "{name} {task_id} runs alone: its {bytes} bytes are over max_in_flight_bytes ({limit_bytes})",
    "threads.exhausted": "plain handlers wait, for the system has no thread left: {reason}",
    "lease.lost": "the lease of {task_id}, attempt {attempt}, is lost",
    "clock.stepped": "the wall clock was set by {by_s} s: what runs is renewed, nothing is recovered for {quiet_s:g} s",
    "lease.recovered": "{count} task(s) with an expired lease queued again",
    "signal.ignored": "{signal} ignored: {reason}",
}
_BELOW = ("traceback", "stack")
"""Fields of many lines, shown below the event's own."""

_REASON = "reason"
"""Of this one the first line stands in the sentence, and the others below."""

_LONGEST = 16_000
"""Columns of a line: what a stranger may have written is bounded nowhere else."""


class _Lenient(dict[str, Any]):
    """A sentence is never worth an exception."""

    def __missing__(self, key: str) -> str:
        return f"<no {key}>"


def as_text(occurrence: Occurrence) -> str:
    """For a terminal: its line, and below it, indented, what has many lines. No final newline."""
    return "\n".join([as_line(occurrence), *(CONTINUED + _bounded(line) for line in _below(occurrence))])


def as_line(occurrence: Occurrence) -> str:
    """Time of day in UTC, level, event, and its sentence or facts: one line, whatever is in them."""
    clock = datetime.fromtimestamp(occurrence.at, UTC).strftime("%H:%M:%S.%f")[:-3]
    return _bounded(f"{clock} {occurrence.level:<7} {occurrence.name:<20} {_says(occurrence)}".rstrip())


def as_json(occurrence: Occurrence) -> str:
    """One line for a program, without its newline. `time` is RFC 3339 in UTC."""
    time = datetime.fromtimestamp(occurrence.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    document = {"time": time, "level": occurrence.level, "event": occurrence.name, **occurrence.fields}
    return json_line(document)


def _says(occurrence: Occurrence) -> str:
    sentence, fields = _SENTENCES.get(occurrence.name), dict(occurrence.fields)
    if isinstance(fields.get(_REASON), str):
        fields[_REASON] = fields[_REASON].partition("\n")[0]
    if sentence is not None:
        try:
            return sentence.format_map(_Lenient(fields))
        except (TypeError, ValueError):  # a fact of another kind than the sentence expects: then the facts alone
            pass
    return " ".join(f"{name}={_fact(value)}" for name, value in fields.items() if name not in _BELOW)


def _below(occurrence: Occurrence) -> list[str]:
    reason = occurrence.fields.get(_REASON)
    lines = reason.split("\n")[1:] if isinstance(reason, str) else []
    for name in _BELOW:
        if name in occurrence.fields:
            lines += str(occurrence.fields[name]).rstrip().split("\n")
    return lines


def _bounded(line: str) -> str:
    return clip(printable(line), _LONGEST)


def _fact(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return json.dumps(text, ensure_ascii=False) if text == "" or " " in text or "\n" in text else text
