"""Handlers by name, with what each asks for. Needs no database, so an application can be imported anywhere."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from cairnq.pure import records
from cairnq.pure.errors import InvalidArgument, TaskError
from cairnq.pure.models import TaskDef
from cairnq.run.decorating import HandlerFn, Registering


@dataclass(frozen=True, slots=True)
class Handler:
    """One registered function. `batch`, `concurrency` and `resource` give its name a quota of its own at the claim."""

    name: str
    fn: HandlerFn
    takes_payload: bool
    is_async: bool
    batch: int | None = None
    concurrency: int | None = None
    resource: str | None = None
    forget: bool = False
    payload_type: Any = None
    """What a payload is made into, where the `TaskDef` or the annotation names a dataclass or a type that holds one."""

    def payload(self, value: Any) -> Any:
        """The payload as this handler takes it. Raises `TaskError`, for which no attempt can help."""
        if self.payload_type is None:
            return value
        try:
            return records.restore(self.payload_type, value)
        except InvalidArgument as error:
            raise TaskError(f"the payload does not fit: {error}", code="invalid_payload") from error

    @property
    def has_quota(self) -> bool:
        return self.batch is not None or self.concurrency is not None or self.resource is not None


class Registry(Registering):
    """`resources` declares ceilings on calls that several names share, such as `{"gpu": 1}`."""

    def __init__(self, *, resources: Mapping[str, int] | None = None) -> None:
        self._resources: dict[str, int] = {}
        self._handlers: dict[str, Handler] = {}
        self._version = 0
        for name, amount in (resources or {}).items():
            self.declare_resource(name, amount)

    @property
    def resources(self) -> Mapping[str, int]:
        return self._resources

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return self._handlers

    @property
    def version(self) -> int:
        """Rises with every change, so that a reader may keep what it computed."""
        return self._version

    def only(self, names: Collection[str] | None) -> Registry:
        """One with these handlers alone (None: this one), and all resources."""
        if names is None:
            return self
        chosen = Registry(resources=self._resources)
        chosen._handlers.update((name, handler) for name, handler in self._handlers.items() if name in names)
        return chosen

    def declare_resource(self, name: str, amount: int) -> None:
        """Declare a resource, or change its amount. Raises `InvalidArgument`."""
        _check_name("a resource", name)
        _check_count(f"resource {name!r}", amount)
        self._resources[name] = amount
        self._version += 1

    def register(
        self,
        name: str | TaskDef[Any, Any],
        fn: HandlerFn,
        *,
        batch: int | None = None,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> None:
        """Let `fn` run the tasks called `name`.

        `fn` takes `(ctx, payload)` or `(ctx)`; with `batch=N` it takes a list of at most N contexts. A payload whose
        type is a dataclass comes as one. `concurrency` bounds the calls of this name, `resource` names a declared
        ceiling that it shares. `forget=True`: a success removes the row. Raises `InvalidArgument` that says which of
        them cannot be right.
        """
        given, name = name, name.name if isinstance(name, TaskDef) else name
        _check_name("a handler", name)
        if name in self._handlers:
            raise InvalidArgument(f"a handler named {name!r} is already registered ({self._handlers[name].fn!r})")
        for option, value in (("batch", batch), ("concurrency", concurrency)):
            if value is not None:
                _check_count(f"handler {name!r}: {option}", value)
        if resource is not None and resource not in self._resources:
            declared = ", ".join(sorted(map(repr, self._resources))) or "none"
            raise InvalidArgument(
                f"handler {name!r}: resource {resource!r} is not declared (declared: {declared}); "
                f"declare it with resources={{{resource!r}: ...}}"
            )
        self._handlers[name] = Handler(
            name=name,
            fn=fn,
            takes_payload=_takes_payload(name, fn, batch),
            is_async=_is_async(fn),
            batch=batch,
            concurrency=concurrency,
            resource=resource,
            forget=bool(forget),
            payload_type=_payload_type(given, fn),
        )
        self._version += 1

    def unregister(self, name: str) -> None:
        """Stop running the tasks called `name`. Raises `InvalidArgument` if there is no such handler."""
        if self._handlers.pop(name, None) is None:
            raise InvalidArgument(f"no handler named {name!r} is registered")
        self._version += 1


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip() or "\x00" in name:
        raise InvalidArgument(f"{what} needs a name that is a non-empty string without NUL, not {name!r}")


def _check_count(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{what} must be an integer of at least 1, not {value!r}")


def _takes_payload(name: str, fn: HandlerFn, batch: int | None) -> bool:
    """Whether `fn` is called with the payload too. Raises if it can be called neither way."""
    if not callable(fn):
        raise InvalidArgument(f"handler {name!r}: {fn!r} is not callable")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InvalidArgument(f"handler {name!r}: a generator function cannot be a handler; return the result instead")
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"handler {name!r}: the signature of {fn!r} cannot be read: {error}") from error
    if batch is None and _accepts(signature, 2):
        return True
    if _accepts(signature, 1):
        return False
    wanted = "(ctx, payload) or (ctx)" if batch is None else "(contexts), a list, since it has a batch"
    raise InvalidArgument(f"handler {name!r}: it must take {wanted}, not {signature}")


def _payload_type(name: str | TaskDef[Any, Any], fn: HandlerFn) -> Any:
    """Where it is more than JSON."""
    kind = name.payload_type if isinstance(name, TaskDef) else None
    if kind is None:
        try:
            kind = get_type_hints(fn).get(list(inspect.signature(fn).parameters)[1])
        except (NameError, TypeError, IndexError):  # names that only a checker sees; no function; no payload
            return None
    return kind if records.holds_record(kind) else None


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _is_async(fn: HandlerFn) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
