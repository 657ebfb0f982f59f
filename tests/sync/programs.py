"""Programs that use a blocking client as servers and scripts do: `python programs.py NAME DATABASE`."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading

import psycopg

from cairnq import StoreClosed
from tests.support.routes import is_file
from tests.sync.conftest import opened


def child_does(work) -> None:
    """Fork, do it there, end as a server's child does, and see that it went well."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - shown, and told by the exit code
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status


def backends(database: str) -> set[int]:
    """The server's processes for a client's connections."""
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select pid from pg_stat_activity where application_name = 'cairnq' and datname = current_database()"
        )
        return {pid for (pid,) in found}


def prefork(database: str) -> None:
    """One client, used before the fork and after it, in parent and children, while a thread of the parent waits."""
    client = opened(database)
    task = client.submit("x", "the parent's")
    before = None if is_file(database) else backends(database)
    gone = threading.Event()

    def wait() -> None:
        client.wait(task.id)
        gone.set()

    waiting = threading.Thread(target=wait)
    waiting.start()

    def child() -> None:
        assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
        client.submit("x", "a child's")
        assert client.get(task.id) == task
        gc.collect()  # were the parent's connections let go, they would be closed, and say so
        if before is not None:
            assert backends(database) - before, "a child's connections are its own"
        client.close()

    for _ in range(3):
        child_does(child)
    if before is not None:
        assert before <= backends(database), "no child has ended the parent's"
    assert len(client.list()) == 4
    assert client.cancel(task.id).canceled
    waiting.join()
    assert gone.is_set()
    client.close()


def closed_before_the_fork(database: str) -> None:
    client = opened(database)
    client.submit("x")
    client.close()

    def child() -> None:
        try:
            client.submit("x")
        except StoreClosed:
            return
        raise AssertionError("it was closed")

    child_does(child)


def made_before_the_fork(database: str) -> None:
    client = opened(database)
    child_does(lambda: client.submit("x"))
    child_does(lambda: client.submit("x"))
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"], "only a use makes the thread"
    assert len(client.list()) == 2


def never_closed(database: str) -> None:
    """A script that ends without a word. What it registered before the client was used runs after the client's end."""
    client = opened(database, retention=60_000)

    def late() -> None:
        try:
            client.stats()
        except StoreClosed as error:
            print(error)

    atexit.register(late)
    client.submit("x")


def interrupted(database: str) -> None:
    """Ctrl-C ends a wait at once, and the client goes on."""
    client = opened(database)
    task = client.submit("x")
    try:
        print("waiting", flush=True)
        client.wait(task.id, timeout_ms=600_000)
    except KeyboardInterrupt:
        print(client.get(task.id).status)
        assert not client._client._done._waiting, "nobody waits any more"
    client.close()


def interrupted_unseen(database: str) -> None:
    """A signal that does not wake the main thread, for another took it, is seen all the same."""
    client = opened(database)
    task = client.submit("x")
    threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
    try:
        client.wait(task.id, timeout_ms=600_000)
    except KeyboardInterrupt:
        print("interrupted")
    client.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
