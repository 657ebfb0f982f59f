"""`cairnq run` as a test sees it: the real command line, its event stream, a pidfd for every child it starts."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cairnq_supervisor.pure.dsn import of_file
from tests.support.routes import is_file

APP = Path(__file__).parent / "app"
PATIENCE = 60.0
"""Seconds that a test waits for an event before it shows what it heard instead."""

Fields = dict[str, Any]


class Run:
    """One supervisor. Made by `Runs.start`."""

    def __init__(self, process: asyncio.subprocess.Process, config: Path, log: Path) -> None:
        self.process = process
        self.config = config
        self.log = log
        self.heard: list[Fields] = []
        self.pidfds: dict[int, int] = {}
        self._over = False
        self._told: set[int] = set()
        self._news = asyncio.Condition()

    @property
    def pid(self) -> int:
        return self.process.pid

    async def event(self, name: str, **fields: Any) -> Fields:
        """The first event of this name with these fields that no earlier call returned."""
        try:
            async with asyncio.timeout(PATIENCE), self._news:
                while True:
                    for index, event in enumerate(self.heard):
                        if index not in self._told and event["event"] == name and event | fields == event:
                            self._told.add(index)
                            return event
                    if self._over:
                        raise AssertionError(f"no {name} {fields} before the end; heard:\n{self.transcript()}")
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"no {name} {fields}; heard:\n{self.transcript()}") from None

    async def events(self, name: str, count: int, **fields: Any) -> list[Fields]:
        return [await self.event(name, **fields) for _ in range(count)]

    def count(self, name: str, **fields: Any) -> int:
        """How many there were so far."""
        return sum(event["event"] == name and event | fields == event for event in self.heard)

    async def ready(self) -> None:
        await self.event("supervisor.running")

    def send(self, number: signal.Signals) -> None:
        """Not by `Process.send_signal`: that looks for an end, and may take the exit code from asyncio (255 then)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """A signal to one of its children, by pidfd."""
        signal.pidfd_send_signal(self.pidfds[pid], number)

    async def exit_code(self) -> int:
        """Waits for the end."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"it did not end; heard:\n{self.transcript()}") from None

    async def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.send(signal.SIGTERM)
        return await self.exit_code()

    async def child_gone(self, pid: int) -> None:
        """Until this child has ended, whoever reaps it."""
        gone = asyncio.get_running_loop().create_future()
        loop, pidfd = asyncio.get_running_loop(), self.pidfds[pid]
        loop.add_reader(pidfd, lambda: gone.done() or gone.set_result(None))
        try:
            async with asyncio.timeout(PATIENCE):
                await gone
        except TimeoutError:
            raise AssertionError(f"process {pid} lives on; heard:\n{self.transcript()}") from None
        finally:
            loop.remove_reader(pidfd)

    def living(self) -> list[int]:
        """Children that still run."""
        poll = select.poll()
        for pidfd in self.pidfds.values():
            poll.register(pidfd, select.POLLIN)
        ended = {fd for fd, _ in poll.poll(0)}
        return [pid for pid, pidfd in self.pidfds.items() if pidfd not in ended]

    def transcript(self) -> str:
        return "\n".join([*(json.dumps(event) for event in self.heard), "--- stderr", self.log.read_text()])

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """A pid becomes a pidfd the moment it is heard of, before it can be anybody else's."""
        async for line in reader:
            event = json.loads(line)
            if event["event"] in ("worker.started", "keeper.started", "gateway.started"):
                with contextlib.suppress(ProcessLookupError):
                    self.pidfds[event["pid"]] = os.pidfd_open(event["pid"])
            async with self._news:
                self.heard.append(event)
                self._news.notify_all()
        async with self._news:
            self._over = True
            self._news.notify_all()

    def close(self) -> None:
        for pidfd in self.pidfds.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)


class Runs:
    """Starts supervisors in a folder of the test, and sees that nothing of them is left."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder = folder
        self._dsn = of_file(dsn) if is_file(dsn) else dsn
        self._number = itertools.count()
        self._runs: list[tuple[Run, asyncio.Task[None]]] = []

    async def start(
        self,
        config: str | Path = "",
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        dsn: str | None = None,
    ) -> Run:
        """`cairnq run` with this configuration (its text, or a file), and the events of it."""
        file, number = config, next(self._number)
        if isinstance(file, str):
            file = self._folder / f"cairnq-{number}.toml"
            file.write_text(config)
        reader_fd, writer_fd = os.pipe()
        log = self._folder / f"stderr-{number}.txt"
        command = ["-m", "cairnq_supervisor", "run", "-c", str(file), "--events-fd", str(writer_fd), *arguments]
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(writer_fd,),
                env={**os.environ, "PYTHONPATH": str(APP), "CAIRNQ_DSN": dsn or self._dsn, **(environment or {})},
            )
        os.close(writer_fd)
        run = Run(process, file, log)
        reader = asyncio.StreamReader(limit=1 << 22)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reader_fd, "rb")
        )
        self._runs.append((run, asyncio.ensure_future(run.listen(reader))))
        return run

    async def close(self) -> None:
        """Ends what a failed test left. A stream that does not end, or a child that lives on, is a failure."""
        try:
            for run, listening in self._runs:
                if run.process.returncode is None:
                    run.process.kill()
                await run.process.wait()
                for pid in list(run.pidfds):
                    await run.child_gone(pid)
                async with asyncio.timeout(PATIENCE):
                    await listening
        finally:
            for run, listening in self._runs:
                listening.cancel()
                run.close()


@dataclass(frozen=True)
class Arrival:
    """A handler that has started and waits: what runs it, and the line that lets it go on."""

    pid: int
    task_id: str
    attempt: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def let_go(self, answer: str = "done") -> None:
        self.writer.write(f"{answer}\n".encode())

    async def cut_off(self) -> None:
        """Until the handler's end of the connection is gone."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionResetError):
                await self.reader.read()


class Gate:
    """Where gated handlers wait: `path` is their payload."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        self._connections: list[asyncio.StreamWriter] = []

    async def arrival(self) -> Arrival:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._arrivals.get()
        except TimeoutError:
            raise AssertionError("no handler arrived at the gate") from None

    async def arrivals(self, count: int) -> list[Arrival]:
        return [await self.arrival() for _ in range(count)]

    @property
    def waiting(self) -> int:
        """Arrivals that nobody has asked for yet."""
        return self._arrivals.qsize()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Gate]:
        server = await asyncio.start_unix_server(self._serve, self.path, backlog=1000)
        try:
            yield self
        finally:
            server.close()
            for writer in self._connections:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.append(writer)
        words = (await reader.readline()).decode().split()
        if words:
            self._arrivals.put_nowait(Arrival(int(words[0]), words[1], int(words[2]), reader, writer))


async def said_by(run: Run, *arguments: str, dsn: str = "") -> str:
    """What another command says with this supervisor's configuration, to both streams."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "cairnq_supervisor", *arguments, "-c", str(run.config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(APP), "CAIRNQ_DSN": dsn},
    )
    out, _ = await process.communicate()
    return out.decode()


async def until(condition: Callable[[], bool]) -> None:
    """For what the kernel knows and tells nobody: looks again until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - that is what this is for
            await asyncio.sleep(0.05)  # sleep: see above


def descriptors(pid: int) -> list[str]:
    """What the open descriptors of a process are."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(entry.readlink()))
    return sorted(found)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
