"""The blocking client does what the asynchronous one does, for any thread."""

from __future__ import annotations

import inspect
import queue
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import cairnq
import cairnq.sync
from cairnq import (
    AlreadyExists,
    CairnQError,
    InvalidArgument,
    QueueFull,
    StoreClosed,
    TaskCanceled,
    TaskFailed,
    TaskTimeout,
)
from tests.support.routes import is_file
from tests.sync.conftest import CHARGE, Order, Receipt, opened

ONLY_ASYNC = {"store", "admit"}
"""The low-level writes of workers, and what a submit is made of."""


def public(kind) -> dict[str, object]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def parameters(function) -> list[tuple[str, object]]:
    return [(name, one.default) for name, one in inspect.signature(function).parameters.items() if name != "self"]


def test_it_has_the_names_and_the_arguments_of_the_asynchronous_client():
    ours, theirs = public(cairnq.sync.CairnQ), public(cairnq.CairnQ)
    assert set(ours) == set(theirs) - ONLY_ASYNC
    for name in set(ours) - {"submit", "call"}:  # whose keywords are those of the other, passed on
        assert parameters(getattr(cairnq.sync.CairnQ, name)) == parameters(getattr(cairnq.CairnQ, name)), name


def test_a_call_returns_what_the_handler_returned(tasks, worker):
    assert tasks.call("double", 21) == 42


def test_dataclasses_go_in_and_come_out(tasks, worker):
    order = Order(7, ["a", "b"])
    assert tasks.call(CHARGE, order) == Receipt(order, 5.0)
    with pytest.raises(TaskFailed, match="this is no Order") as failure:
        tasks.call("charge", {"number": 7})
    assert (failure.value.code, failure.value.retryable) == ("invalid_payload", False)


def test_errors_are_those_of_the_asynchronous_client(tasks, worker):
    with pytest.raises(TaskFailed, match="not today"):
        tasks.call("refuse", "not today")
    with pytest.raises(TaskTimeout, match="no worker has claimed it"):
        tasks.call("nobody", timeout_ms=1)
    with pytest.raises(InvalidArgument, match="max_attempts"):
        tasks.submit("double", max_attempts=0)
    with pytest.raises(TypeError, match="colour"):
        tasks.submit("double", colour="red")
    tasks.submit("nobody", key="one")
    with pytest.raises(AlreadyExists):
        tasks.submit("nobody", key="one", conflict="reject")


def test_tasks_are_read_and_changed(tasks):
    first, second = tasks.submit_many([{"name": "x", "key": "a"}, {"name": "y", "queue": "other"}])
    assert tasks.get(first.id) == tasks.get_by_key("a") == first
    assert tasks.get_status(first.id) == tasks.get_status_by_key("a")
    assert [task.id for task in tasks.list(queue="other")] == [second.id]
    assert tasks.stats("other")["other"]["queued"] == 1
    assert tasks.queue_depth("other", 10) == 9
    assert tasks.cancel(second.id).canceled
    assert tasks.cancel_by_key("a").canceled
    assert tasks.wait(second.id).canceled
    assert tasks.wait_by_key("a").canceled
    assert tasks.retry(second.id, reset_attempt=True).queued
    assert tasks.retry_by_key("a").queued
    tasks.cancel(second.id)
    assert tasks.purge() == [second.id]
    assert tasks.get(second.id) is None


def test_a_canceled_task_ends_the_call_that_waits_for_it(tasks):
    with ThreadPoolExecutor(1) as another:
        seen = queue.SimpleQueue()
        stop = tasks.watch(seen.put, poll_ms=20)
        calling = another.submit(tasks.call, "nobody", key="it")
        while tasks.get_by_key("it") is None:
            seen.get()
        tasks.cancel_by_key("it")
        with pytest.raises(TaskCanceled):
            calling.result()
        stop()


def test_many_threads_share_one_client(tasks, database):
    numbers = range(100)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: tasks.submit("x", number), numbers))
        assert [task.payload for task in threads.map(tasks.get, [task.id for task in made])] == list(numbers)


def test_a_callback_cannot_wait_for_the_client_whose_thread_it_holds(tasks):
    refusals = queue.SimpleQueue()

    def on_signal(signal):
        try:
            tasks.stats()
        except CairnQError as error:
            refusals.put(str(error))

    stop = tasks.watch(on_signal, poll_ms=1)
    assert "cannot wait for the client" in refusals.get()
    stop()


def test_a_closed_client_says_so(database):
    client = opened(database)
    client.close()  # never used
    with pytest.raises(StoreClosed):
        client.stats()
    with opened(database) as client:
        client.submit("x")
    client.close()
    for use in (client.stats, client.connect, lambda: client.submit("x", session=object())):
        with pytest.raises(StoreClosed):
            use()


def test_a_full_queue_holds_a_submit_back(database):
    with opened(database, max_queue_depth=1, max_queue_wait_ms=0) as client:
        client.submit("x")
        with pytest.raises(QueueFull):
            client.submit("x")


async def test_clients_are_made_from_a_url(database, worker):
    url = f"sqlite:///{database}" if is_file(database) else database
    async with cairnq.CairnQ.at(url) as client:
        task = await client.submit("double", 4)
        assert (await client.wait(task.id)).result == 8
    with cairnq.sync.CairnQ.at(url) as client:
        assert client.get(task.id).result == 8


@pytest.mark.postgres
def test_the_source_is_a_url():
    with pytest.raises(InvalidArgument, match="a database URL, not object"):
        cairnq.sync.CairnQ.postgres(object())


@pytest.mark.postgres
def test_the_connections_are_those_that_were_allowed(database):
    with opened(f"{database}?application_name=counted", max_size=2) as client, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: client.stats(), range(40)))
        with psycopg.connect(database) as other:
            count = other.execute("select count(*) from pg_stat_activity where application_name = 'counted'")
            assert 1 <= count.fetchone()[0] <= 2
