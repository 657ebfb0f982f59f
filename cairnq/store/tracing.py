"""OpenTelemetry, where the process uses it: the trace of a submit travels in the task's metadata, as W3C writes it.

Nothing of it is imported here unless the application has done so; the extra `otel` installs it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cairnq.pure.models import Task


def is_in_use() -> bool:
    """Whether the application has imported OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


def traced(submit: Any) -> Any:
    """The arguments of a submit, with `traceparent` (and `tracestate`) of the span around it in their metadata.

    The caller's own keys stay. What is not what a submit takes is given back as it is, to be refused elsewhere.
    """
    if not is_in_use() or not isinstance(submit, Mapping):
        return submit
    metadata = submit.get("metadata")
    if not isinstance(metadata, Mapping | None):
        return submit
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {**submit, "metadata": {**carrier, **(metadata or {})}} if carrier else submit


@contextmanager
def handling(task: Task) -> Iterator[None]:
    """A span for one handler call, the child of the one under which the task was submitted. For where it is in use."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    metadata = task.metadata if isinstance(task.metadata, dict) else {}
    carrier = {key: value for key, value in metadata.items() if isinstance(value, str)}
    attributes: dict[str, str | int] = {
        "messaging.system": "cairnq",
        "messaging.operation.type": "process",
        "messaging.destination.name": task.queue,
        "messaging.message.id": task.id,
        "cairnq.attempt": task.attempt,
    }
    with trace.get_tracer("cairnq").start_as_current_span(
        task.name,
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=trace.SpanKind.CONSUMER,
        attributes=attributes,
        # Its own way to record an exception fails with one whose message cannot be shown.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as error:
            message = _shown(error)
            span.set_status(trace.StatusCode.ERROR, message)
            span.add_event("exception", _exception(error, message))
            raise


def _exception(error: Exception, message: str) -> dict[str, str]:
    """In OpenTelemetry's words."""
    return {
        "exception.type": f"{type(error).__module__}.{type(error).__qualname__}",
        "exception.message": message,
        "exception.stacktrace": "".join(traceback.format_exception(error)),
    }


def _shown(error: Exception) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - the handler's own __str__
        return f"its message cannot be shown: {type(broken).__name__}"
