"""The application: `crawl` finds text files, `digest` hashes one and chains to `summarise`; two others misbehave."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cairnq

PACE_S = 0.4
"""What a file takes at least, so that there is something to look at."""

TEXT = frozenset({".md", ".py", ".sql", ".toml"})

registry = cairnq.Registry()


@registry.task
async def crawl(ctx: cairnq.TaskContext, payload: dict[str, Any]) -> dict[str, int]:
    """One `digest` for each file. The keys make a second attempt find what the first has submitted."""
    paths = await asyncio.to_thread(text_files, Path(payload["folder"]), payload["most"])
    for number, path in enumerate(paths, 1):
        await ctx.submit("digest", str(path), queue="files", key=f"{ctx.task_id}:{path}", conflict="reuse-succeeded")
        if number % 25 == 0:
            await ctx.progress(number / len(paths), f"{number} of {len(paths)} files")
    return {"files": len(paths)}


@registry.task
async def digest(ctx: cairnq.TaskContext, path: str) -> dict[str, Any]:
    """Reads on a thread, so that the others of this process go on."""
    content = await asyncio.to_thread(Path(path).read_bytes)
    await asyncio.sleep(PACE_S)
    await ctx.submit(
        "summarise", path, queue="summaries", key=f"{ctx.task_id}:summary", conflict="reuse-succeeded", priority=1
    )
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "lines": content.count(b"\n")}


@registry.task
def summarise(ctx: Any, path: str) -> dict[str, Any]:
    """A plain function: it runs on a thread, and may block and compute."""
    words = re.findall(r"[a-z_]{5,}", Path(path).read_text(encoding="utf-8", errors="replace").lower())
    time.sleep(PACE_S / 4)
    return {"words": len(words), "about": [word for word, _ in Counter(words).most_common(3)]}


@registry.task
async def unreliable(ctx: cairnq.TaskContext, number: int) -> str:
    """Works at the second attempt, as many things do."""
    await asyncio.sleep(PACE_S)
    if ctx.attempt == 1:
        raise ConnectionResetError(f"the far end hung up on {number}")
    return "answered"


@registry.task
async def deadly(ctx: cairnq.TaskContext, payload: None) -> str:
    """Takes its whole process with it at the first attempt, as the out-of-memory killer would."""
    await asyncio.sleep(PACE_S)
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def text_files(folder: Path, most: int) -> list[Path]:
    """The first text files below `folder`, by name, without hidden folders."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        found += [Path(parent, name) for name in sorted(names) if Path(name).suffix in TEXT]
        if len(found) >= most:
            break
    return found[:most]
