"""A short-lived child before a reload: do the configuration, the application and the database hold?"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from cairnq.pure.errors import CairnQError
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.messages import Scouted
from cairnq_supervisor.pure.settings import ConfigurationError, Settings
from cairnq_supervisor.roles.application import (
    ApplicationError,
    application_faults,
    forget_modules,
    load_registry,
    queues_with_resources,
)
from cairnq_supervisor.roles.preflight import preflight
from cairnq_supervisor.system.channel import Channel
from cairnq_supervisor.system.http import numeric_host


def run_scout(reread: Callable[[], Settings], stale_modules: Iterable[str], channel: Channel) -> int:
    """Looks, reports, and exits. `reread` reads the configuration again and raises `ConfigurationError`."""
    try:
        report = _look(reread, stale_modules)
    except (ConfigurationError, ApplicationError, CairnQError) as error:
        report = _refused(str(error))
    except Exception as error:  # noqa: BLE001 - the border of the child: the application's import may raise anything
        report = _refused("".join(traceback.format_exception(error)))
    channel.send(report)
    return Exit.OK


def _refused(reason: str) -> Scouted:
    return Scouted(reason=reason, resource_queues=(), http_host=None)


def _look(reread: Callable[[], Settings], stale_modules: Iterable[str]) -> Scouted:
    settings = reread()
    forget_modules(stale_modules)
    registry = load_registry(settings.app)
    faults = application_faults(registry, settings, settings.app)
    if faults:
        raise ConfigurationError(faults)
    preflight(settings, lambda *_, **__: None)
    host = None if settings.http is None else numeric_host(settings.http)
    return Scouted(reason=None, resource_queues=queues_with_resources(registry, settings.queues), http_host=host)
