"""A fork: no connection is ever carried into a child, whatever the parent was doing."""

from __future__ import annotations

from pathlib import Path

from tests.support.tasks import ask

FORK_WHILE_WRITING = """
import asyncio, os, sys
from cairnq import SqliteStore

def descriptors():
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass
    return [name for name in found if sys.argv[1] in name]

async def in_child(store):
    for number in range(20):
        await store.submit("child", number)
    await store.close()

async def main():
    store = SqliteStore(sys.argv[1])
    await store.connect()
    stop = await store.listen(["cairnq_queued"], lambda *_: None, lambda _: None)
    busy = [asyncio.create_task(flood(store, number)) for number in range(4)]
    await asyncio.wait(busy, timeout=0.05)
    children = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            carried = descriptors()
            asyncio.set_event_loop_policy(None)
            asyncio._set_running_loop(None)
            asyncio.run(in_child(store))
            os._exit(1 if carried else 0)
        children.append(pid)
        await asyncio.wait(busy, timeout=0.02)
    statuses = [await asyncio.to_thread(os.waitpid, pid, 0) for pid in children]
    await asyncio.gather(*busy)
    await stop()
    await store.close()
    print([os.waitstatus_to_exitcode(status) for _, status in statuses], flush=True)

async def flood(store, number):
    for n in range(100):
        await store.submit("parent", n)
        await store.get_status("task_x")

asyncio.run(main())
"""

FORK_INSIDE_A_TRANSACTION = """
import asyncio, os, sys
from cairnq import SqliteStore, CairnQError

async def in_child():
    store = SqliteStore(sys.argv[1])
    try:
        await store.connect()
    except CairnQError as error:
        print(type(error).__name__, flush=True)

async def main():
    store = SqliteStore(sys.argv[1])
    await store.submit("x")
    [task] = await store.claim(["default"], "worker_me")

    async def write(session):
        await session.execute("create table t (n int)")
        pid = os.fork()
        if pid == 0:
            asyncio._set_running_loop(None)
            asyncio.run(in_child())
            os._exit(0)
        os.waitpid(pid, 0)
        return "written"

    task, _ = await store.complete_in(task.id, "worker_me", write)
    print(task.status, task.result, flush=True)
    await store.close()

asyncio.run(main())
"""


def integrity(path: Path) -> list[tuple[object, ...]]:
    return ask(str(path), "pragma integrity_check")


def test_parent_and_children_write_on_and_no_descriptor_is_shared(path: Path, start_program) -> None:
    program = start_program(FORK_WHILE_WRITING, path)
    assert program.read() == "[0, 0, 0, 0, 0]"
    assert program.end() == 0
    assert ask(str(path), "select name, count(*) from cairnq_tasks group by name order by name") == [
        ("child", 100),
        ("parent", 400),
    ]
    assert integrity(path) == [("ok",)]


def test_a_fork_inside_a_transaction_leaves_the_child_without_the_file_and_the_parent_whole(
    path: Path, start_program
) -> None:
    program = start_program(FORK_INSIDE_A_TRANSACTION, path)
    assert program.read() == "InheritedDatabase"
    assert program.read() == "succeeded written"
    assert program.end() == 0
    assert integrity(path) == [("ok",)]
