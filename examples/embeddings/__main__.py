"""`python examples/embeddings`: submit what the texts of this repository say, wait, and ask what is near."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from model import the_model  # noqa: E402
from running import database_of, parser, scratch, supervisor  # noqa: E402
from tasks import EMBED, Embedding  # noqa: E402

import cairnq  # noqa: E402

QUESTION = "a worker dies and its tasks are queued again"


def main() -> None:
    arguments = parser(__doc__).parse_args()
    with scratch() as folder:
        database = database_of(arguments, folder)
        asyncio.run(submit(database))  # before the workers start, so that there is something to make batches of
        with supervisor(HERE / "cairnq.toml", database, folder):
            asyncio.run(wait(database))


def texts() -> Iterable[str]:
    for path in sorted((HERE.parents[1] / "docs").rglob("*.md")):
        yield from (part for part in path.read_text().split("\n\n") if len(part) > 100)


async def submit(database: str) -> None:
    async with cairnq.CairnQ.at(database) as client:
        items = [{"name": EMBED, "payload": text, "queue": "embeddings"} for text in texts()]
        print(f"{len(await client.submit_many(items))} texts submitted")


async def wait(database: str) -> None:
    async with cairnq.CairnQ.at(database) as client:
        tasks = await asyncio.gather(*[client.wait(task.id) for task in await client.list(limit=10_000)])
    found = {task.payload: task.result for task in tasks if task.succeeded}
    print(f"{len(found)} embedded; {of_calls(found.values())}")
    [asked] = the_model().embed([QUESTION])
    nearest = max(found, key=lambda text: sum(map(float.__mul__, found[text]["vector"], asked)))
    print(f"nearest to {QUESTION!r}:\n  {' '.join(nearest.split())[:200]}")


def of_calls(results: Iterable[Embedding]) -> str:
    calls = sorted({(result["called"], result["returned"], result["batch"], result["process"]) for result in results})
    overlapping = sum(earlier[1] > later[0] for earlier, later in pairwise(calls))
    processes = len({call[3] for call in calls})
    return (
        f"{len(calls)} calls by {processes} process(es), "
        f"{max(call[2] for call in calls)} texts in the largest, {overlapping} at the same time as another"
    )


if __name__ == "__main__":
    main()
