"""The other SDK of the protocol, from PyPI, in virtual environments of its own: it has our import name.

The environments are kept in `.peers/` of the repository. The newest release is asked for once a day.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import subprocess
import time
import venv
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("peer.py")
PINNED = "0.10.0"
"""The oldest release that our databases are shared with."""
NEWEST = "newest"
_DAY_S = 86_400
REPLY_TIMEOUT_S = 60.0


class PeerUnavailable(Exception):
    """The package index could not be reached, or does not have it."""


class PeerError(Exception):
    """What a call of the peer raised: `kind` is its exception's class name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Peer:
    """An installed release of the other SDK."""

    python: Path
    version: str


def install(release: str) -> Peer:
    """`release` is a version, or `newest`."""
    home = ROOT / ".peers" / release
    home.parent.mkdir(exist_ok=True)
    with _only_one(home.parent / f"{release}.lock"):
        _bring_up_to_date(home, release)
    python = home / "bin" / "python"
    ask = "from importlib.metadata import version; print(version('cairnq'))"
    said = subprocess.run([python, "-I", "-c", ask], check=True, capture_output=True, text=True)
    return Peer(python, said.stdout.strip())


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two runs of the tests share the environments."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bring_up_to_date(home: Path, release: str) -> None:
    python, stamp = home / "bin" / "python", home / "installed"
    usable = stamp.exists() and python.exists()  # a link to a Python that is gone does not exist
    if usable and (release != NEWEST or time.time() - stamp.stat().st_mtime < _DAY_S):
        return
    if not usable:
        venv.create(home, with_pip=True, symlinks=True, clear=True)
    _pip(python, "cairnq[postgres]" + ("" if release == NEWEST else f"=={release}"), offline_is_fine=usable)
    stamp.touch()


def _pip(python: Path, requirement: str, *, offline_is_fine: bool) -> None:
    command: list[str | Path] = [
        python,
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--retries=1",
        "--timeout=20",
        requirement,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0 and not offline_is_fine:
        raise PeerUnavailable(f"pip could not install {requirement}: {done.stderr.strip().splitlines()[-1]}")


class PeerProcess:
    """A process of the other SDK: a client, and at most one worker, driven call by call."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    async def call(self, do: str, **arguments: Any) -> Any:
        """One call of the peer's API (see peer.py). Raises `PeerError` with what that raised."""
        assert self._process.stdin is not None
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"number": number, "do": do, **arguments}).encode() + b"\n")
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            return await self._replies[number]

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of its worker's handlers, which must be `name`."""
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            event = await self._events.get()
        assert event["event"] == name, event
        return event

    async def kill(self) -> None:
        """SIGKILL: it settles nothing and says no goodbye."""
        self._process.kill()
        await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "event" in message:
                self._events.put_nowait(message)
            elif "error" in message:
                self._replies.pop(message["number"]).set_exception(PeerError(message["error"], message["text"]))
            else:
                self._replies.pop(message["number"]).set_result(message["value"])
        for reply in self._replies.values():
            reply.set_exception(PeerError("Gone", "the peer's process has ended"))

    async def _end(self) -> None:
        """It ends by itself when its stdin does."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader


@asynccontextmanager
async def running(peer: Peer, dsn: str) -> AsyncIterator[PeerProcess]:
    """A peer's process, connected to `dsn`."""
    process = await asyncio.create_subprocess_exec(
        # -I: neither our folder nor PYTHONPATH, or it would import our `cairnq`.
        *(str(peer.python), "-I", str(PROGRAM), dsn),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    peer_process = PeerProcess(process)
    try:
        await peer_process.call("connect")
        yield peer_process
    finally:
        await peer_process._end()
