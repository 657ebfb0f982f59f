"""The decorator `task` as type checkers see it: under a `TaskDef`, a handler's payload and result are that one's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar, overload

from cairnq.pure.errors import InvalidArgument
from cairnq.pure.models import TaskDef
from cairnq.run.blocking import BlockingContext
from cairnq.run.context import TaskContext

HandlerFn = Callable[..., Any]
F = TypeVar("F", bound=HandlerFn)
P = TypeVar("P")
R = TypeVar("R")


class Decorator(Protocol[P, R]):
    """Takes a handler of tasks one by one: a coroutine function, or a plain one, whose context blocks."""

    @overload
    def __call__(
        self, fn: Callable[[TaskContext, P], Coroutine[Any, Any, R]]
    ) -> Callable[[TaskContext, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, fn: Callable[[TaskContext], Coroutine[Any, Any, R]]
    ) -> Callable[[TaskContext], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[[BlockingContext, P], R]) -> Callable[[BlockingContext, P], R]: ...
    @overload
    def __call__(self, fn: Callable[[BlockingContext], R]) -> Callable[[BlockingContext], R]: ...


class BatchDecorator(Protocol[R]):
    """Takes a handler of a batch, which may return results by task id."""

    @overload
    def __call__(
        self, fn: Callable[[list[TaskContext]], Coroutine[Any, Any, Mapping[str, R] | None]]
    ) -> Callable[[list[TaskContext]], Coroutine[Any, Any, Mapping[str, R] | None]]: ...
    @overload
    def __call__(
        self, fn: Callable[[list[BlockingContext]], Mapping[str, R] | None]
    ) -> Callable[[list[BlockingContext]], Mapping[str, R] | None]: ...


class Registering:
    """What a registry and a worker have in common."""

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
        raise NotImplementedError

    @overload
    def task(self, name: F) -> F: ...
    @overload
    def task(
        self,
        name: str | None = None,
        *,
        batch: int | None = None,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> Callable[[F], F]: ...
    @overload
    def task(
        self,
        name: TaskDef[P, R],
        *,
        batch: None = None,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> Decorator[P, R]: ...
    @overload
    def task(
        self,
        name: TaskDef[Any, R],
        *,
        batch: int,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> BatchDecorator[R]: ...
    def task(
        self,
        name: Any = None,
        *,
        batch: int | None = None,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> Any:
        """Decorator that registers a function under `name` (a string or a `TaskDef`), by default its own name.

        The function itself is returned unchanged. See `Registry.register` for the keywords and the errors.
        """

        def decorate(fn: F) -> F:
            self.register(
                _default_name(fn) if name is None else name,
                fn,
                batch=batch,
                concurrency=concurrency,
                resource=resource,
                forget=forget,
            )
            return fn

        if name is None or isinstance(name, (str, TaskDef)):
            return decorate
        fn, name = name, None
        return decorate(fn)


def _default_name(fn: object) -> str:
    name = getattr(fn, "__name__", None)
    if not callable(fn) or name is None:
        raise InvalidArgument(f"a handler must be a function, or be given a name; {fn!r} is neither")
    return str(name)
