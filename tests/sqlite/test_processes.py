"""Many processes on one file: nobody meets a lock, and what was acknowledged is there whoever is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.sqlite.programs import Program
from tests.support.tasks import ask, broken_rules

SUBMITTERS = """
import asyncio, sys
from cairnq import CairnQ

async def main():
    path, process, tasks, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    async with CairnQ.sqlite(path) as client:
        print("ready", flush=True)
        input()

        async def submit(task):
            for number in range(each):
                key = f"{process} {task} {number}" if number % 5 == 0 else None
                await client.submit("work", [process, task, number], key=key)

        await asyncio.gather(*(submit(task) for task in range(tasks)))
        writer = client.store._sqlite.writer
        print(writer.statements, writer.commits, flush=True)

asyncio.run(main())
"""

WORKER = """
import asyncio, sys
from cairnq import CairnQ, Worker

async def main():
    errors = []
    worker = Worker.sqlite(sys.argv[1], concurrency=16, on_error=lambda error, info: errors.append(repr(error)))

    @worker.task
    async def work(ctx, payload):
        return payload

    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(input)
    print(errors, flush=True)

asyncio.run(main())
"""

ENDLESS = """
import asyncio, sys
from cairnq import CairnQ

async def main():
    async with CairnQ.sqlite(sys.argv[1]) as client:
        async def submit(task):
            while True:
                done = await client.submit("work", task, key=f"{task}" if task % 4 == 0 else None, conflict="replace")
                print(done.id, flush=True)

        await asyncio.gather(*(submit(task) for task in range(16)))

asyncio.run(main())
"""


def test_64_submitters_in_4_processes_and_2_workers_never_meet_a_lock(
    path: Path, start_program: Callable[..., Program]
) -> None:
    workers = [start_program(WORKER, path) for _ in range(2)]
    submitters = [start_program(SUBMITTERS, path, number, 16, 40) for number in range(4)]
    for program in (*workers, *submitters):
        assert program.read() == "ready"
    for program in submitters:
        program.tell()
    counts = [tuple(map(int, program.read().split())) for program in submitters]
    assert [program.end() for program in submitters] == [0] * 4
    assert all(commits < statements for statements, commits in counts), counts
    left = 1
    while left:
        [[left]] = ask(str(path), "select count(*) from cairnq_tasks where status in ('queued', 'running')")
    for program in workers:
        program.tell()
    assert [program.read() for program in workers] == ["[]", "[]"]
    assert [program.end() for program in workers] == [0, 0]
    assert ask(str(path), "select status, count(*), max(attempt) from cairnq_tasks group by status") == [
        ("succeeded", 4 * 16 * 40, 1)
    ]
    assert ask(str(path), "select count(*) from cairnq_tasks where payload <> result") == [(0,)]
    assert broken_rules(str(path)) == []


def test_a_process_killed_in_mid_write_loses_nothing_it_has_acknowledged(
    path: Path, start_program: Callable[..., Program]
) -> None:
    acknowledged: set[str] = set()
    for lines in (1, 40, 150):
        program, other = start_program(ENDLESS, path), start_program(ENDLESS, path)
        acknowledged |= {program.read() for _ in range(lines)}
        program.kill()
        acknowledged |= {line for line in program.read_all() if len(line) == len("task_") + 26}
        acknowledged |= {other.read() for _ in range(20)}  # it goes on as if nothing had been
        other.kill()
        acknowledged |= {line for line in other.read_all() if len(line) == len("task_") + 26}
    kept = {str(task_id) for (task_id,) in ask(str(path), "select id from cairnq_tasks")}
    assert acknowledged <= kept
    assert ask(str(path), "pragma integrity_check") == [("ok",)]
    assert ask(
        str(path),
        "select count(*) from cairnq_task_keys k left join cairnq_tasks t on t.id = k.task_id where t.id is null",
    ) == [(0,)]
    assert broken_rules(str(path)) == []
