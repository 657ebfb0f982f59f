"""Talks to a running supervisor over its control socket: finds it, asks once, takes one answer."""

from __future__ import annotations

import argparse
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cairnq_supervisor.commands.answer import Refusal
from cairnq_supervisor.pure import address
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.requests import BadAnswer, Request, encode, understood

_PATIENCE = 10.0
"""Seconds for an answer."""

_LONGEST = 16 << 20
"""Bytes of an answer, which no supervisor needs."""


def socket_options(parser: argparse.ArgumentParser) -> None:
    """Which supervisor is meant."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c",
        "--config",
        type=Path,
        metavar="FILE",
        help="of the supervisor; default: cairnq.toml, or pyproject.toml, here",
    )
    which.add_argument(
        "--socket", type=Path, metavar="PATH", help="its control socket, if it is not where it should be"
    )


def ask(options: argparse.Namespace, request: Request) -> dict[str, Any]:
    """The supervisor's answer. Raises `Refusal` when none answers, or it says no."""
    connection = _connect(_places(options), options)
    with connection:
        try:
            connection.sendall(encode(request))
            answer = _read(connection)
        except OSError as error:
            raise Refusal(Exit.UNAVAILABLE, f"the supervisor does not answer: {error}") from error
    if not answer:
        raise Refusal(Exit.UNAVAILABLE, "the supervisor closed the connection without an answer")
    try:
        document = understood(answer)
    except BadAnswer as error:
        raise Refusal(Exit.UNAVAILABLE, str(error)) from error
    if "error" in document:
        raise Refusal(Exit.USAGE, str(document["error"]))
    return document


def _places(options: argparse.Namespace) -> Sequence[Path]:
    if options.socket is not None:
        return [options.socket]
    # The loader of configurations: not wanted where --socket says all.
    from cairnq_supervisor.config import configuration_path, given_path

    return address.to_call(configuration_path(options.config), os.environ, given_path(options.config))


def _connect(places: Sequence[Path], options: argparse.Namespace) -> socket.socket:
    for place in places:
        try:
            connection = _reached(place)
        except PermissionError as error:
            raise Refusal(Exit.UNAVAILABLE, f"{place} belongs to another user: {error.strerror}") from error
        except BlockingIOError as error:
            told = f"the supervisor at {place} accepts nobody; {_PATIENCE:.0f} s were waited"
            raise Refusal(Exit.UNAVAILABLE, told) from error
        if connection is not None:
            return connection
    raise Refusal(Exit.UNAVAILABLE, _nobody(places, options))


def _reached(place: Path) -> socket.socket | None:
    """None: nobody listens there. Raises `PermissionError`, or `BlockingIOError` where its line stays full."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Python's own time-out makes the socket non-blocking, and such a one does not wait for room in the line.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_PATIENCE), 0))
    try:
        connection.connect(str(place))
    except (PermissionError, BlockingIOError):
        connection.close()
        raise
    except OSError:
        connection.close()
        return None
    connection.settimeout(_PATIENCE)
    return connection


def _nobody(places: Sequence[Path], options: argparse.Namespace) -> str:
    """Why none may have answered, and which others would."""
    looked = ", ".join(str(place) for place in places)
    others = ", ".join(str(place) for place in _others(places))
    hint = f"; others answer at {others}: name one with --socket" if others else ""
    if options.socket is None and options.config is None and places[-1].name == address.name_of(Path.cwd()):
        return f"there is no configuration here whose supervisor could be meant: name one with -c{hint}"
    if options.config is not None and not options.config.exists():
        return f"there is no {options.config}, and no supervisor of it answers (looked for {looked}){hint}"
    return f"no supervisor answers (looked for {looked}); is `cairnq run` running?{hint}"


def _others(places: Sequence[Path]) -> Iterator[Path]:
    """Supervisors of other configurations that this user may talk to, in the folders that were looked at."""
    found = {each for place in places for each in place.parent.glob("cairnq-*.sock") if not each.is_symlink()}
    for place in sorted(found - set(places)):
        try:
            connection = _reached(place)
        except (PermissionError, BlockingIOError):
            continue
        if connection is not None:
            connection.close()
            yield place


def _read(connection: socket.socket) -> bytes:
    answer = bytearray()
    while not answer.endswith(b"\n") and len(answer) < _LONGEST and (piece := connection.recv(65_536)):
        answer += piece
    return bytes(answer)
