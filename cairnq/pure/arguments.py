"""Checks arguments before anything is written. Each message says which argument, which value, what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from cairnq.pure import ids, jsonio
from cairnq.pure.errors import InvalidArgument, SerializationError
from cairnq.pure.models import CONFLICTS, STATUSES, TERMINAL_STATUSES, Conflict, TaskDef, TaskStatus

MAX_INT4 = 2**31 - 1
MAX_DELAY_MS = 100 * 366 * 86_400_000
"""A century: a delay beyond it is a mistake of units."""

MAX_LEASE_MS = 7 * 86_400_000
"""A week: whoever holds a task longer renews it."""

MAX_INDEXED_BYTES = 1000
"""Names, queues, keys and correlation ids stand in indexes, whose entries PostgreSQL limits to 2,704 bytes together."""


def text(value: Any, what: str, *, max_bytes: int | None = None) -> str:
    """A non-empty string that a text column can hold."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} must be a string, not {type(value).__name__}: {value!r}")
    if not value:
        raise InvalidArgument(f"{what} must not be empty")
    if "\x00" in value:
        raise InvalidArgument(f"{what} holds a NUL character, which PostgreSQL cannot store: {value!r}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} holds a lone surrogate, which is not valid Unicode: {value!r}") from error
    if max_bytes is not None and size > max_bytes:
        raise InvalidArgument(f"{what} is {size} bytes long, at most {max_bytes} fit: {value[:60]!r}...")
    return value


def storable(value: Any, what: str) -> str:
    """A string, perhaps empty, that a text column can hold."""
    return value if value == "" else text(value, what)


def progress(value: Any) -> float | None:
    """A share from 0.0 to 1.0; None for "leave it"."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"progress must be a number from 0.0 to 1.0, got {value!r}")
    return float(value)


def optional_text(value: Any, what: str, *, max_bytes: int | None = None) -> str | None:
    return None if value is None else text(value, what, max_bytes=max_bytes)


def integer(value: Any, what: str, *, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{what} must be an integer, not {type(value).__name__}: {value!r}")
    if not least <= value <= most:
        raise InvalidArgument(f"{what} must be from {least} to {most}, got {value}")
    return value


def lease(lease_ms: Any) -> int:
    return integer(lease_ms, "lease_ms", least=1, most=MAX_LEASE_MS)


def status(value: Any) -> TaskStatus | None:
    if value is not None and value not in STATUSES:
        raise InvalidArgument(f"unknown status {value!r}; it is one of {', '.join(STATUSES)}")
    return cast("TaskStatus | None", value)


def terminal_status(value: Any) -> TaskStatus | None:
    known = sorted(TERMINAL_STATUSES)
    if value is not None and value not in known:
        raise InvalidArgument(f"only finished tasks can be purged: status {value!r} is not one of {', '.join(known)}")
    return cast("TaskStatus | None", value)


def names(value: Sequence[str], what: str) -> list[str]:
    """A list of names or queues, each once; a bare string would be taken apart into letters."""
    if isinstance(value, str):
        raise InvalidArgument(f"{what} must be a list of strings, not the string {value!r}")
    if not isinstance(value, Iterable):
        raise InvalidArgument(f"{what} must be a list of strings, not {type(value).__name__}")
    return list(dict.fromkeys(text(item, f"an item of {what}") for item in value))


def task_name(value: str | TaskDef[Any, Any]) -> str:
    return text(value.name if isinstance(value, TaskDef) else value, "the task's name", max_bytes=MAX_INDEXED_BYTES)


def delay(delay_ms: Any, run_at_delay_ms: Any) -> int:
    """Two spellings of one argument, for two generations of SDKs."""
    if delay_ms is not None and run_at_delay_ms is not None:
        raise InvalidArgument("give delay_ms or run_at_delay_ms, not both: they mean the same")
    given = run_at_delay_ms if delay_ms is None else delay_ms
    return 0 if given is None else integer(given, "the delay in ms", least=0, most=MAX_DELAY_MS)


class Submission(NamedTuple):
    """One task to insert, checked and encoded, with its id; a tuple, for they are made by the thousand."""

    id: str
    payload: str
    name: str
    queue: str
    metadata: str
    max_attempts: int
    priority: int
    parent_id: str | None
    root_id: str | None
    correlation_id: str | None
    delay_ms: int
    key: str | None
    conflict: Conflict

    @property
    def kind(self) -> tuple[Any, ...]:
        """What goes into its row beside the id and the payload."""
        return self[2:-2]

    @classmethod
    def of(
        cls,
        name: str | TaskDef[Any, Any],
        payload: Any = None,
        *,
        key: str | None = None,
        queue: str = "default",
        conflict: Conflict = "reuse",
        max_attempts: int = 3,
        priority: int = 0,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        root_id: str | None = None,
        correlation_id: str | None = None,
        delay_ms: int | None = None,
        run_at_delay_ms: int | None = None,
    ) -> Submission:
        """Raises `InvalidArgument` or `SerializationError`. A payload of None is stored as `{}`, as other SDKs do."""
        if conflict not in CONFLICTS:
            raise InvalidArgument(f"unknown conflict strategy {conflict!r}; it is one of {', '.join(CONFLICTS)}")
        if metadata is not None and not isinstance(metadata, Mapping):
            raise InvalidArgument(f"metadata must be a mapping, not {type(metadata).__name__}")
        task = task_name(name)
        queue = text(queue, "queue", max_bytes=MAX_INDEXED_BYTES)
        body = jsonio.encode({} if payload is None else payload, "the payload")
        about = jsonio.encode(dict(metadata), "metadata") if metadata else "{}"
        key = optional_text(key, "key", max_bytes=MAX_INDEXED_BYTES)
        return cls(  # by position, which takes a third of the time
            ids.new_task_id(),
            body,
            task,
            queue,
            about,
            integer(max_attempts, "max_attempts", least=1, most=MAX_INT4),
            integer(priority, "priority", least=-MAX_INT4, most=MAX_INT4),
            optional_text(parent_id, "parent_id"),
            optional_text(root_id, "root_id", max_bytes=MAX_INDEXED_BYTES),
            optional_text(correlation_id, "correlation_id", max_bytes=MAX_INDEXED_BYTES),
            delay(delay_ms, run_at_delay_ms),
            key,
            conflict,
        )


def submissions(items: Iterable[Mapping[str, Any]], *, prepare: Callable[[Any], Any] | None = None) -> list[Submission]:
    """The items of a `submit_many`, each with the arguments of `submit`. A refusal names the item by its number.

    `prepare` sees each item first.
    """
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise InvalidArgument(f"submit_many takes a list of items, not {type(items).__name__}")
    prepared = items if prepare is None else map(prepare, items)
    return [_submission(number, item) for number, item in enumerate(prepared)]


def _submission(number: int, item: Any) -> Submission:
    if not isinstance(item, (dict, Mapping)) or "name" not in item:
        raise InvalidArgument(f"item {number} of submit_many must be a mapping with at least a name: {item!r}")
    try:
        return Submission.of(**item)
    except (TypeError, InvalidArgument, SerializationError) as error:
        kind = SerializationError if isinstance(error, SerializationError) else InvalidArgument
        raise kind(f"item {number} of submit_many: {error}") from error
