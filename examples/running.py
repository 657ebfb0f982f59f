"""`cairnq run` for as long as an example needs it, and the address of its database."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def database_of(arguments: argparse.Namespace, folder: Path) -> str:
    return str(arguments.database or f"sqlite:///{folder / 'cairnq.db'}")


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--database", metavar="URL", help="default: a SQLite file in a temporary folder")
    return made


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cairnq-", dir="/tmp") as name:
        yield Path(name)


def environment(database: str, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAIRNQ_")}
    return {**kept, "DATABASE_URL": database, "XDG_RUNTIME_DIR": str(folder)}


@contextmanager
def supervisor(config: Path, database: str, folder: Path) -> Iterator[None]:
    """Ready when the block begins; drained when it is left."""
    command = [sys.executable, "-m", "cairnq_supervisor", "run", "-c", str(config)]
    told = threading.Event()
    said: list[str] = []
    with subprocess.Popen(command, env=environment(database, folder), stderr=subprocess.PIPE, text=True) as process:

        def listen() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if "supervisor.running" in line:
                    told.set()
            told.set()

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            told.wait()
            if any("supervisor.running" in line for line in said):
                yield
        finally:
            process.send_signal(signal.SIGTERM)
            listening.join()
    if process.returncode != 0:
        raise SystemExit("cairnq run ended with {}:\n{}".format(process.returncode, "".join(said)))
