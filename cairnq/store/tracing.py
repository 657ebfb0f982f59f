"""OpenTelemetry, where the process uses it: the trace of a submit travels in the task's metadata, as W3C writes it.

Nothing of it is imported here unless the application has done so; the extra `otel` installs it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cairnq.pure.models import Task


def traced(submit: Any) -> Any:
    """The arguments of a submit, with `traceparent` (and `tracestate`) of the span around it in their metadata.

    The caller's own keys stay. What is not what a submit takes is given back as it is, to be refused elsewhere.
    """
    if "opentelemetry.trace" not in sys.modules or not isinstance(submit, Mapping):
        return submit
    metadata = submit.get("metadata")
    if not isinstance(metadata, Mapping | None):
        return submit
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {**submit, "metadata": {**carrier, **(metadata or {})}} if carrier else submit


def handling(task: Task) -> AbstractContextManager[Any]:
    """A span for one handler call, the child of the one under which the task was submitted."""
    if "opentelemetry.trace" not in sys.modules:
        return nullcontext()
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    metadata = task.metadata if isinstance(task.metadata, dict) else {}
    carrier = {key: value for key, value in metadata.items() if isinstance(value, str)}
    return trace.get_tracer("cairnq").start_as_current_span(
        task.name,
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=trace.SpanKind.CONSUMER,
        attributes={
            "messaging.system": "cairnq",
            "messaging.operation.type": "process",
            "messaging.destination.name": task.queue,
            "messaging.message.id": task.id,
            "cairnq.attempt": task.attempt,
        },
    )
