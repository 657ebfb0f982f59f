"""What log records and traces carry: on the loop, on a thread, and across the database."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cairnq import CairnQ, TaskContext
from tests.worker.conftest import MakeWorker

_exporter = InMemorySpanExporter()


@pytest.fixture
def spans() -> InMemorySpanExporter:
    """The spans that ended. A process has one provider for its whole life."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(_exporter))
        trace.set_tracer_provider(provider)
    _exporter.clear()
    return _exporter


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_a_log_record_of_a_handler_names_its_task(client: CairnQ, make_worker: MakeWorker, caplog, plain) -> None:
    worker = make_worker()
    logger = logging.getLogger("shop")

    if plain:

        @worker.task("speak")
        def speak(ctx: Any) -> None:
            logger.warning("from inside")
    else:

        @worker.task("speak")
        async def speak_too(ctx: TaskContext) -> None:
            await asyncio.gather(inner())

        async def inner() -> None:
            logger.warning("from inside")

    async with worker.background():
        task = await client.submit("speak")
        await client.wait(task.id)
    logger.warning("from outside")
    inside, outside = (record for record in caplog.records if record.name == "shop")
    assert marks(inside) == (task.id, "speak", "default", 1)
    assert marks(outside) == (None,) * 4


def marks(record):
    return (record.cairnq_task_id, record.cairnq_name, record.cairnq_queue, record.cairnq_attempt)


async def test_an_applications_own_fields_do_not_collide(client: CairnQ, make_worker: MakeWorker, caplog) -> None:
    worker = make_worker()

    @worker.task
    async def speak(ctx: TaskContext) -> None:
        logging.getLogger("shop").warning("mine", extra={"task_id": "mine", "queue": 7, "attempt": None})

    async with worker.background():
        assert (await client.wait((await client.submit("speak")).id)).succeeded
    (record,) = (record for record in caplog.records if record.name == "shop")
    assert record.task_id == "mine"


async def test_the_handlers_span_is_a_child_of_the_submits(client: CairnQ, make_worker: MakeWorker, spans) -> None:
    worker = make_worker(concurrency=2)

    @worker.task
    async def parent(ctx: TaskContext) -> None:
        await ctx.submit("child")

    @worker.task
    def child(ctx: Any) -> None:
        trace.get_tracer("shop").start_span("work").end()

    with trace.get_tracer("shop").start_as_current_span("request") as request:
        task = await client.submit("parent", metadata={"mine": 1})
    assert task.metadata["mine"] == 1
    assert task.metadata["traceparent"].split("-")[1] == f"{request.get_span_context().trace_id:032x}"
    async with worker.background():
        await client.wait(task.id)
        (descendant,) = await client.list(name="child")
        await client.wait(descendant.id)
    by_name = {span.name: span for span in spans.get_finished_spans()}
    chain = ["request", "parent", "child", "work"]
    assert len({by_name[name].context.trace_id for name in chain}) == 1
    for above, below in itertools.pairwise(chain):
        assert by_name[below].parent.span_id == by_name[above].context.span_id
    assert by_name["child"].attributes["messaging.destination.name"] == "default"
    assert by_name["child"].attributes["messaging.message.id"] == descendant.id


async def test_a_failed_handlers_span_says_so(client: CairnQ, make_worker: MakeWorker, spans) -> None:
    worker = make_worker()

    @worker.task
    async def broken(ctx: TaskContext) -> None:
        raise ValueError("no")

    async with worker.background():
        task = await client.submit("broken", max_attempts=1)
        await client.wait(task.id)
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.events[0].attributes["exception.message"] == "no"


@pytest.mark.parametrize("header", ["", "nonsense", "00-0-0-0", 7, None])
async def test_a_strangers_odd_traceparent_starts_a_trace_of_its_own(
    client: CairnQ, make_worker: MakeWorker, spans, header
) -> None:
    worker = make_worker()

    @worker.task
    async def quiet(ctx: TaskContext) -> None: ...

    async with worker.background():
        task = await client.submit("quiet", metadata={"traceparent": header})
        assert (await client.wait(task.id)).succeeded
    (span,) = spans.get_finished_spans()
    assert span.parent is None


async def test_outside_of_any_span_metadata_is_left_alone(client: CairnQ, spans) -> None:
    assert (await client.submit("a")).metadata == {}
    assert [task.metadata for task in await client.submit_many([{"name": "a"}])] == [{}]


def test_where_the_application_does_not_use_it_nothing_of_it_is_imported():
    code = (
        "import sys, cairnq, cairnq.run.engine, cairnq.store.tracing as t; t.traced({'metadata': None});"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
