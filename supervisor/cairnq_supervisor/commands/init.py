"""`cairnq init`: a configuration and an application to begin with."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import Commands, command

if TYPE_CHECKING:
    from cairnq_supervisor.commands.answer import Answer


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "init",
        _act,
        does="Write a commented cairnq.toml and a minimal tasks.py, which run as they are. Nothing is overwritten.",
        example="  cairnq init shop && cd shop && cairnq run\n",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: here")


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import answered

    return answered(options, lambda: _write(options.folder))


def _write(folder: Path) -> Answer:
    from cairnq_supervisor.commands.answer import Answer, Refusal
    from cairnq_supervisor.pure import starter
    from cairnq_supervisor.pure.exits import Exit

    files = {folder / "cairnq.toml": starter.CONFIGURATION, folder / "tasks.py": starter.APPLICATION}
    if there := [str(path) for path in files if path.exists()]:
        raise Refusal(Exit.FAILED, f"{' and '.join(there)} is there already; nothing was written")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Refusal(Exit.FAILED, f"cannot write {error.filename}: {error.strerror}") from error
    written = [str(path) for path in files]
    return Answer({"written": written}, [*written, f"now: {_enter(folder)}cairnq run"])


def _enter(folder: Path) -> str:
    return "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
