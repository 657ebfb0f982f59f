"""`cairnq run` as a child: its events as they come, its status when asked, its end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from cairnq_supervisor.commands.answer import Refusal
from cairnq_supervisor.commands.calling import ask
from cairnq_supervisor.pure.requests import Status

Event = dict[str, Any]


class Fleet:
    """Started by `running`. Its log is in `folder / "cairnq.log"`."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self._config = folder / "cairnq.toml"
        self._process = process
        self.events: list[Event] = []
        self.log = folder / "cairnq.log"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_over(self) -> bool:
        return self._process.returncode is not None

    def count(self, name: str, field: str | None = None) -> int:
        """How many events of this name there were, or the sum of one field of theirs."""
        return sum(1 if field is None else event[field] for event in self.events if event["event"] == name)

    async def status(self) -> dict[str, Any]:
        """What `cairnq status --json` prints; empty while nobody answers."""
        try:
            return await asyncio.to_thread(ask, argparse.Namespace(socket=None, config=self._config), Status())
        except Refusal:
            return {}

    async def stop(self) -> int:
        """SIGTERM; returns the exit code when everything has drained."""
        if not self.is_over:
            self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()

    async def listen(self, reader: asyncio.StreamReader) -> None:
        async for line in reader:
            self.events.append(json.loads(line))


@contextlib.asynccontextmanager
async def running(folder: Path, database: str) -> AsyncIterator[Fleet]:
    """`cairnq run` on the configuration in `folder`, in a session of its own: Ctrl-C is ours to pass on."""
    reader_fd, writer_fd = os.pipe()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRNQ_")}
    config = str(folder / "cairnq.toml")
    with (folder / "cairnq.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cairnq_supervisor", "run", "-c", config, "--events-fd", str(writer_fd)),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=log,
            pass_fds=(writer_fd,),
            env={**environment, "CAIRNQ_DSN": database},
            start_new_session=True,
        )
    os.close(writer_fd)
    fleet, reader = Fleet(folder, process), asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reader_fd, "rb")
    )
    listening = asyncio.ensure_future(fleet.listen(reader))
    try:
        yield fleet
    finally:
        await fleet.stop()
        await listening
