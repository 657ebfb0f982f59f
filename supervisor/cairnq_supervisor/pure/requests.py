"""What a client may ask over the control socket: one JSON object on one line, answered by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from cairnq_supervisor.pure.keys import MAX_PROCESSES

VERSION = 1
"""Of the requests and their answers, in each answer. Commands and supervisors of one number understand each other."""

MAX_REQUEST = 65_536
"""Bytes of a line."""


class BadRequest(ValueError):
    """It cannot be done as it stands; the message says why."""


class BadAnswer(ValueError):
    """The other end is no supervisor, or one of another version; the message says which."""


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests."""

    command: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Status(Request):
    command: ClassVar[str] = "status"


@dataclass(frozen=True, slots=True)
class Scale(Request):
    """Run this many worker processes of this queue."""

    command: ClassVar[str] = "scale"
    queue: str
    processes: int


@dataclass(frozen=True, slots=True)
class Pause(Request):
    """Claim nothing more of this queue; None: of any."""

    command: ClassVar[str] = "pause"
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Resume(Request):
    command: ClassVar[str] = "resume"
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Drain(Request):
    """As SIGTERM."""

    command: ClassVar[str] = "drain"


@dataclass(frozen=True, slots=True)
class Reload(Request):
    """As SIGHUP."""

    command: ClassVar[str] = "reload"


_COMMANDS: Mapping[str, type[Request]] = {kind.command: kind for kind in (Status, Scale, Pause, Resume, Drain, Reload)}


def answered(document: Mapping[str, Any]) -> bytes:
    return json.dumps({"control": VERSION, **document}).encode() + b"\n"


def understood(line: bytes) -> dict[str, Any]:
    """What `answered` gave. Raises `BadAnswer` for anything else."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("what answers there is no supervisor of cairnq") from error
    if not isinstance(document, dict):
        raise BadAnswer("what answers there is no supervisor of cairnq")
    theirs = document.pop("control", None)
    if theirs != VERSION:
        says = f"the supervisor answers in version {theirs!r} of the control socket, this command knows {VERSION}"
        raise BadAnswer(f"{says}; use the cairnq that it was started with, or start it again with this one")
    return document


def encode(request: Request) -> bytes:
    document = {"command": request.command, **{f.name: getattr(request, f.name) for f in fields(request)}}
    return json.dumps(document).encode() + b"\n"


def parse(line: bytes) -> Request:
    """Raises `BadRequest`."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not JSON: {error}") from error
    command = document.pop("command", None) if isinstance(document, dict) else None
    if not isinstance(command, str) or command not in _COMMANDS:
        raise BadRequest(f"unknown command {command!r}; known: {', '.join(_COMMANDS)}")
    kind = _COMMANDS[command]
    known = {f.name for f in fields(kind)}
    if strange := sorted(document.keys() - known):
        raise BadRequest(f"{command} takes {sorted(known)}, not {strange}")
    _check_queue(command, document)
    if kind is Scale:
        _check_processes(document.get("processes"))
    return kind(**document)


def _check_queue(command: str, document: Mapping[str, Any]) -> None:
    queue = document.get("queue")
    if queue is None and command != "scale":
        return
    if not isinstance(queue, str) or not queue:
        raise BadRequest(f"{command}: queue is {queue!r}; it must be the name of one")


def _check_processes(processes: Any) -> None:
    if isinstance(processes, bool) or not isinstance(processes, int) or not 0 <= processes <= MAX_PROCESSES:
        raise BadRequest(f"scale: processes is {processes!r}; it must be a whole number from 0 to {MAX_PROCESSES}")
