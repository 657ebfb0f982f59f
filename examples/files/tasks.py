"""Three kinds of task: `walk` finds the files of a folder, `inspect` looks at one, `report` sums up what was found."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import cairnq

registry = cairnq.Registry()


@registry.task
async def walk(ctx: cairnq.TaskContext, folder: str) -> dict[str, Any]:
    """One `inspect` for each file, and a `report` over all of them.

    The keys make a second attempt find the tasks of the first instead of submitting them again.
    """
    paths = await asyncio.to_thread(find, Path(folder))
    inspections = []
    for path in paths:
        key = f"{ctx.task_id}:{path}"
        task = await ctx.submit("inspect", str(path), queue="files", key=key, conflict="reuse-succeeded")
        inspections.append(task.id)
    payload = {"folder": folder, "inspections": inspections}
    key = f"{ctx.task_id}:report"
    report = await ctx.submit("report", payload, queue="reports", key=key, conflict="reuse-succeeded")
    return {"files": len(inspections), "report": report.id}


@registry.task
def inspect(ctx: cairnq.BlockingContext, path: str) -> dict[str, Any]:
    """A plain function: it runs on a thread, so reading a big file blocks nobody."""
    content = Path(path).read_bytes()
    return {
        "path": path,
        "kind": Path(path).suffix or "(none)",
        "bytes": len(content),
        "lines": content.count(b"\n"),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


@registry.task
async def report(ctx: cairnq.TaskContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Waits for the inspections, then adds them up."""
    found = []
    for done, task_id in enumerate(payload["inspections"], 1):
        found.append((await ctx.wait(task_id)).result)
        if done % 100 == 0:
            await ctx.progress(done / len(payload["inspections"]), f"{done} files")
    return summary(payload["folder"], found)


def find(folder: Path) -> list[Path]:
    """The regular files below `folder`, without hidden folders and caches."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        found += [Path(parent, name) for name in sorted(files)]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def summary(folder: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Totals, lines by kind of file, and groups of files with the same content."""
    same = defaultdict(list)
    lines: Counter[str] = Counter()
    for file in found:
        lines[file["kind"]] += file["lines"]
        if file["bytes"]:
            same[file["sha256"]].append(file["path"])
    return {
        "folder": folder,
        "files": len(found),
        "bytes": sum(file["bytes"] for file in found),
        "lines_by_kind": dict(lines.most_common()),
        "duplicates": [paths for paths in same.values() if len(paths) > 1],
    }
