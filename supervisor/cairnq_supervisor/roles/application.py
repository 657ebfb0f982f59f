"""The user's application: importing it, and what of it one queue's workers run."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path

from cairnq.run.registry import Handler, Registry
from cairnq_supervisor.pure.settings import Fault, QueueSettings, Settings


class ApplicationError(Exception):
    """The application cannot be used. The message says why, with its own traceback where there is one."""


def put_first_on_path(folder: Path) -> None:
    """So that `app = "tasks:registry"` beside the configuration just works."""
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))


def load_registry(app: str) -> Registry:
    """Import "module:attribute". Raises `ApplicationError`."""
    module_name, _, attribute = app.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a script that ends the interpreter is no application
        raise ApplicationError(f"app {app!r} does not import:\n{_own_frames(error)}") from error
    registry = getattr(module, attribute, None)
    if isinstance(registry, Registry):
        return registry
    if registry is None:
        found = ", ".join(name for name, value in vars(module).items() if isinstance(value, Registry)) or "none"
        raise ApplicationError(f"app {app!r}: module {module_name!r} has no {attribute!r} (registries in it: {found})")
    raise ApplicationError(f"app {app!r} is a {type(registry).__name__}, not a cairnq.Registry")


def application_modules(before: Collection[str]) -> frozenset[str]:
    """What was imported since `before` (names in `sys.modules`) and is the application's own, not a library's.

    Libraries stay loaded through a reload: many of them, in C, cannot be imported twice.
    """
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    loaded = {name: sys.modules[name] for name in sys.modules.keys() - set(before)}
    return frozenset(
        name
        for name, module in loaded.items()
        if (file := getattr(module, "__file__", None)) is not None and not file.startswith(installed)
    )


def forget_modules(names: Iterable[str]) -> None:
    """The next import reads their files anew."""
    for name in names:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def queues_with_resources(registry: Registry, queues: Iterable[QueueSettings]) -> tuple[str, ...]:
    """Those of which two workers must not be there at the same time, even for a moment."""
    return tuple(queue.name for queue in queues if any(h.resource is not None for h in _matching(registry, queue)))


def amounts_used(registry: Registry, settings: Settings) -> dict[str, int]:
    """The resources of these handlers, and how much of each this host has: as configured, else as declared."""
    amounts = {**registry.resources, **settings.resources}
    return {name: amounts[name] for name in {h.resource for h in registry.handlers.values()} if name is not None}


def application_faults(registry: Registry, settings: Settings, origin: str) -> list[Fault]:
    """Where the configuration and the application do not fit together."""
    faults = []
    for name in settings.resources.keys() - registry.resources.keys():
        known = ", ".join(sorted(registry.resources)) or "none"
        faults.append(Fault(origin, f"resources.{name}", f"is not declared by the application (declared: {known})"))
    for queue in settings.queues:
        faults += _handler_faults(registry, queue, origin)
    return faults


def registry_for(registry: Registry, queue: QueueSettings) -> Registry:
    """The handlers that this queue's workers run."""
    return registry.only(queue.handlers)


def _matching(registry: Registry, queue: QueueSettings) -> list[Handler]:
    return [handler for name, handler in registry.handlers.items() if queue.handlers is None or name in queue.handlers]


def _handler_faults(registry: Registry, queue: QueueSettings, origin: str) -> list[Fault]:
    known = ", ".join(sorted(registry.handlers)) or "none"
    if not registry.handlers:
        return [Fault(origin, "app", "registers no handler")]
    key = f"queues.{queue.name}.handlers"
    missing = [name for name in queue.handlers or () if name not in registry.handlers]
    return [Fault(origin, key, f"names {name!r}, which is not registered (registered: {known})") for name in missing]


def _own_frames(error: BaseException) -> str:
    """The traceback from the application's first frame on: the import machinery's own says nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and f.filename != __file__]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(error)]).rstrip()
