"""What one sees: a table that stays in place on a terminal with `rich`, else a line a second."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fleet import Event

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
except ImportError:  # the extra `rich` is not installed
    Console = None  # type: ignore[assignment,misc]

QUEUES = ("files", "summaries")
_PLAIN_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """`stats`: tasks by queue and status. `workers`: as in `cairnq status --json`. `note`: what the crawl says."""

    elapsed_s: float
    stats: Mapping[str, Mapping[str, int]]
    workers: list[dict[str, Any]]
    note: str
    news: list[str]

    def counts(self, queue: str) -> tuple[int, int, int]:
        """Waiting, running, done."""
        found = self.stats.get(queue, {})
        done = sum(found.get(status, 0) for status in ("succeeded", "failed", "canceled"))
        return found.get("queued", 0), found.get("running", 0), done


class Screen(Protocol):
    def show(self, view: View, *, last: bool = False) -> None: ...


def news_of(event: Event) -> str | None:
    """The sentence for what is worth one: deaths, and what becomes of them."""
    match event["event"]:
        case "worker.died":
            return f"worker {event['queue']}/{event['slot']} (pid {event['pid']}) died: {event['cause']}"
        case "worker.settled":
            total, took_ms = event["requeued"] + event["released"], event["took_ms"]
            return f"its {total} task(s) are queued again, {took_ms} ms after its death"
        case "worker.ready":
            alone = ": suspects run alone" if str(event["slot"]).startswith("s") else ""
            return f"worker {event['queue']}/{event['slot']} is ready (pid {event['pid']}){alone}"
    return None


@contextlib.contextmanager
def screen() -> Iterator[Screen]:
    if Console is not None and sys.stdout.isatty():
        with Live(console=Console(), auto_refresh=False) as live:
            yield _Live(live)
    else:
        yield _Plain()


class _Plain:
    def __init__(self) -> None:
        self._said = 0
        self._next_at = 0.0

    def show(self, view: View, *, last: bool = False) -> None:
        for sentence in view.news[self._said :]:
            print(f"{view.elapsed_s:5.1f} s  {sentence}", flush=True)
        self._said = len(view.news)
        if time.monotonic() < self._next_at and not last:
            return
        self._next_at = time.monotonic() + _PLAIN_INTERVAL_S
        parts = []
        for queue in QUEUES:
            waiting, running, done = view.counts(queue)
            parts.append(f"{queue}: {waiting:>3} waiting {running:>2} running {done:>3} done")
        calls = ", ".join(f"{_name(worker)} {_calls(worker)}" for worker in view.workers)
        print(f"{view.elapsed_s:5.1f} s  {'   '.join(parts)}   {calls}".rstrip(), flush=True)


class _Live:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, view: View, *, last: bool = False) -> None:  # noqa: ARG002 - every view is shown
        news = [f"  [dim]{sentence}[/dim]" for sentence in view.news[-6:]]
        head = f"[bold]{view.elapsed_s:5.1f} s[/bold]  {view.note}"
        self._live.update(Group(head, _queues(view), _workers(view), *news), refresh=True)


def _queues(view: View) -> Table:
    table = Table("queue", "", *(_right(title) for title in ("waiting", "running", "done")), box=None, padding=(0, 2))
    for queue in QUEUES:
        waiting, running, done = view.counts(queue)
        bar = ProgressBar(total=max(1, waiting + running + done), completed=done, width=32)
        table.add_row(queue, bar, str(waiting), str(running), str(done))
    return table


def _workers(view: View) -> Table:
    titles = ("calls", "done", "failed", "MiB", "pid")
    table = Table("worker", "state", *(_right(title) for title in titles), box=None, padding=(0, 2))
    for worker in view.workers:
        size = f"{worker['rss'] >> 20}" if worker["rss"] else ""
        numbers = (_calls(worker), str(worker["succeeded"]), str(worker["failed"]), size, str(worker["pid"] or ""))
        table.add_row(_name(worker), worker["state"], *numbers)
    return table


def _right(title: str) -> Any:
    from rich.table import Column

    return Column(title, justify="right")


def _name(worker: Mapping[str, Any]) -> str:
    return f"{worker['queue']}/{worker['slot']}"


def _calls(worker: Mapping[str, Any]) -> str:
    return f"{worker['in_flight']}/{worker['concurrency']}"
