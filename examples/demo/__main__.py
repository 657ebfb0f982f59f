"""`make demo`: a fleet in a temporary folder, a few hundred tasks, a look at them, and what happened.

The exit code is 0 if every task succeeded and the fleet drained in order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fleet import Fleet, running
from screen import Screen, View, news_of, screen
from server import REPOSITORY, private_postgres

from cairnq import CairnQ, Task

HERE = Path(__file__).parent
FILES = 150
UNRELIABLE = 20
DEADLY_DELAYS_MS = (2_000, 5_000)
LIMIT_S = 50.0
LOOK_S = 0.2


class Stuck(Exception):
    """It did not come to its end; the message says where it stood."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with _folder() as folder, _database(options.database, folder) as database:
        try:
            return asyncio.run(_demonstrate(folder, database))
        except (KeyboardInterrupt, asyncio.CancelledError):
            print("\ninterrupted; the fleet has drained", file=sys.stderr)
            return 130
        except Stuck as stuck:
            print(f"demo: {stuck}; the log of `cairnq run`:", file=sys.stderr)
            print((folder / "cairnq.log").read_text(), file=sys.stderr)
            return 1


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """What `cairnq init` would have made: a configuration, and the application beside it."""
    with tempfile.TemporaryDirectory(prefix="cairnq-demo-") as name:
        for file in ("cairnq.toml", "tasks.py"):
            shutil.copy(HERE / file, name)
        yield Path(name)


@contextlib.contextmanager
def _database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'cairnq.db'}"
        return
    print("starting a private PostgreSQL ...", flush=True)
    with private_postgres() as url:
        yield url


async def _demonstrate(folder: Path, database: str) -> int:
    _cancel_on(signal.SIGTERM)
    where = "its own cairnq.db" if database.startswith("sqlite:") else database
    print(f"$ cd {folder} && cairnq run   # on {where}", flush=True)
    async with CairnQ.at(database) as client, running(folder, database) as fleet:
        began = time.monotonic()
        crawl = await _submit(client)
        with screen() as shown:
            await _look_until_done(client, fleet, shown, crawl)
        took = time.monotonic() - began
        code = await fleet.stop()
        tasks = await client.list(limit=1000)
    _tell(tasks, fleet, took)
    print(f"SIGTERM: the fleet drained, exit code {code}")
    return code or any(not task.succeeded for task in tasks)


async def _submit(client: CairnQ) -> Task:
    crawl = await client.submit("crawl", {"folder": str(REPOSITORY), "most": FILES}, queue="files", priority=2)
    items = [{"name": "unreliable", "payload": number, "queue": "files"} for number in range(UNRELIABLE)]
    items += [
        {"name": "deadly", "queue": "files", "delay_ms": delay_ms, "priority": 1} for delay_ms in DEADLY_DELAYS_MS
    ]
    await client.submit_many(items)
    return crawl


async def _look_until_done(client: CairnQ, fleet: Fleet, shown: Screen, crawl: Task) -> None:
    began, is_done = time.monotonic(), False
    while not is_done:
        await asyncio.sleep(LOOK_S)
        found = await client.get(crawl.id)
        assert found is not None
        stats, status = await client.stats(), await fleet.status()
        is_done = found.is_terminal and not any(
            counts.get("queued") or counts.get("running") for counts in stats.values()
        )
        view = View(
            elapsed_s=time.monotonic() - began,
            stats=stats,
            workers=status.get("workers", []),
            note=f"crawl: {found.message or found.status}",
            news=[sentence for event in fleet.events if (sentence := news_of(event))],
        )
        shown.show(view, last=is_done)
        if fleet.is_over:
            raise Stuck("`cairnq run` has ended by itself")
        if view.elapsed_s > LIMIT_S:
            raise Stuck(f"not done after {LIMIT_S:g} s: {dict(stats)}")


def _tell(tasks: list[Task], fleet: Fleet, took: float) -> None:
    succeeded = sum(task.succeeded for task in tasks)
    again = sum(task.attempt > 1 for task in tasks)
    held = fleet.count("worker.settled", "failed") + fleet.count("worker.settled", "released")
    lines = sum(task.result["lines"] for task in tasks if task.name == "digest" and task.succeeded)
    words = sum(task.result["words"] for task in tasks if task.name == "summarise" and task.succeeded)
    print()
    print(f"{succeeded} of {len(tasks)} tasks succeeded in {took:.1f} s, {len(tasks) / took:.0f} a second")
    print(f"  {fleet.count('task.failed')} failed by an exception, and were tried again after a pause")
    print(f"  {held} were in the hands of {fleet.count('worker.died')} worker(s) that SIGKILL ended; none was lost")
    print(f"  {again} took more than one attempt: the death of a worker costs the tasks beside the deadly one none")
    print(f"{FILES} files hashed and summarised: {lines:,} lines, {words:,} words of five letters or more")


def _cancel_on(number: signal.Signals) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(number, task.cancel)


if __name__ == "__main__":
    sys.exit(main())
