"""`cairnq scale`, `pause`, `resume`, `drain` and `reload`: what may be changed about a running supervisor."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from cairnq_supervisor.commands.shape import Commands, command, whole
from cairnq_supervisor.pure.keys import MAX_PROCESSES
from cairnq_supervisor.pure.requests import Drain, Pause, Reload, Request, Resume, Scale

Says = Callable[[dict[str, Any]], str]


def add(commands: Commands) -> None:
    _add_scale(commands)
    _add_pause(commands)
    _add_resume(commands)
    _add_plain(
        commands,
        "drain",
        Drain(),
        "Let the supervisor drain and exit, as SIGTERM does.",
        lambda _: "draining",
    )
    _add_plain(
        commands,
        "reload",
        Reload(),
        "Read the configuration and the application again and replace the workers, as SIGHUP does.",
        lambda _: "reloading; the supervisor's log says how it went",
    )


def _add_scale(commands: Commands) -> None:
    act = _asking(
        lambda options: Scale(options.queue, options.processes),
        lambda answer: f"{answer['queue']} is to have {answer['processes']} worker process(es)",
    )
    parser = command(
        commands,
        "scale",
        act,
        does="Run this many worker processes of a queue, until the supervisor ends or is reloaded.",
        example="  cairnq scale mail 4\n",
    )
    parser.add_argument("queue", metavar="QUEUE")
    parser.add_argument("processes", metavar="N", type=whole(0, MAX_PROCESSES))
    _which(parser)


def _add_pause(commands: Commands) -> None:
    act = _asking(lambda options: Pause(options.queue), lambda answer: f"paused: {', '.join(answer['queues'])}")
    parser = command(
        commands,
        "pause",
        act,
        does="Claim no more tasks of a queue, or of any. What runs goes on.",
        example="  cairnq pause mail\n  cairnq pause\n",
    )
    parser.add_argument("queue", nargs="?", metavar="QUEUE")
    _which(parser)


def _add_resume(commands: Commands) -> None:
    act = _asking(lambda options: Resume(options.queue), lambda answer: f"resumed: {', '.join(answer['queues'])}")
    parser = command(
        commands,
        "resume",
        act,
        does="Claim tasks of a paused queue again, or of all.",
        example="  cairnq resume mail\n",
    )
    parser.add_argument("queue", nargs="?", metavar="QUEUE")
    _which(parser)


def _add_plain(commands: Commands, name: str, request: Request, does: str, says: Says) -> None:
    parser = command(commands, name, _asking(lambda _: request, says), does=does, example=f"  cairnq {name}\n")
    _which(parser)


def _which(parser: argparse.ArgumentParser) -> None:
    from cairnq_supervisor.commands.calling import socket_options

    socket_options(parser)


def _asking(request: Callable[[argparse.Namespace], Request], says: Says) -> Callable[[argparse.Namespace], int]:
    def act(options: argparse.Namespace) -> int:
        from cairnq_supervisor.commands.answer import Answer
        from cairnq_supervisor.commands.calling import ask
        from cairnq_supervisor.commands.serving import answered

        def done() -> Answer:
            answer = ask(options, request(options))
            return Answer(answer, [says(answer)])

        return answered(options, done)

    return act
