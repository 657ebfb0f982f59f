"""The most that handlers which sleep allow: an event loop with nothing but so many of their sleeps at a time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

from bench.programs import common


async def main(spec: dict[str, Any]) -> None:
    """Prints how many sleeps a second came to their end."""
    left = iter(range(spec["count"]))
    start = time.monotonic()
    await asyncio.gather(*(_slot(left) for _ in range(spec["concurrency"])))
    print(json.dumps({"rate": spec["count"] / (time.monotonic() - start)}), flush=True)


async def _slot(left: Iterator[int]) -> None:
    for _ in left:
        await asyncio.sleep(common.SLEEP_S)


if __name__ == "__main__":
    common.run(main(common.given()))
