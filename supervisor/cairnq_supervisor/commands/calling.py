"""Talks to a running supervisor over its control socket: finds it, asks once, takes one answer."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
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
    connection = _connect(_places(options), options.config)
    with connection:
        connection.settimeout(_PATIENCE)
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
    from cairnq_supervisor.config import configuration_path

    return address.to_call(configuration_path(options.config), os.environ)


def _connect(places: Sequence[Path], config: Path | None) -> socket.socket:
    for place in places:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(place))
        except PermissionError as error:
            connection.close()
            raise Refusal(Exit.UNAVAILABLE, f"{place} belongs to another user: {error.strerror}") from error
        except OSError:
            connection.close()
        else:
            return connection
    looked = ", ".join(str(place) for place in places)
    if config is not None and not config.exists():
        raise Refusal(Exit.UNAVAILABLE, f"there is no {config}, and no supervisor of it answers (looked for {looked})")
    raise Refusal(Exit.UNAVAILABLE, f"no supervisor answers (looked for {looked}); is `cairnq run` running?")


def _read(connection: socket.socket) -> bytes:
    answer = bytearray()
    while not answer.endswith(b"\n") and len(answer) < _LONGEST and (piece := connection.recv(65_536)):
        answer += piece
    return bytes(answer)
