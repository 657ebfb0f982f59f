"""How the fleets of a run are configured: a cairnq.toml and an environment for each host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cairnq_supervisor.torture.schedule import LEASE_S

FOLDER_VARIABLE = "CAIRNQ_TORTURE_FOLDER"
EFFECTS_VARIABLE = "CAIRNQ_TORTURE_EFFECTS"
"""The table, qualified and quoted, into which the handler `transact` writes."""

_TOML = f"""\
app = "cairnq_supervisor.torture.application:registry"
lease = "{LEASE_S:g}s"
drain_timeout = "4s"
connect_timeout = "2m"
retry_backoff = "50ms"
retry_backoff_max = "400ms"
stall_timeout = "9s"
"""

_QUEUES = """
[queues.fast]
processes = {min = 2, max = 3}
concurrency = 12
[queues.slow]
concurrency = 20
[queues.plain]
concurrency = 4
[queues.rough]
concurrency = 4
[queues.hang]
concurrency = 4
max_run = "1500ms"
"""

_LIBRARIES = ("faketime/libfaketimeMT.so.1", "*/faketime/libfaketimeMT.so.1")


def toml(settings: Mapping[str, str]) -> str:
    """`settings`: top-level keys beside those that every run has."""
    return _TOML + "".join(f"{key} = {value}\n" for key, value in settings.items()) + _QUEUES


def environment(
    outside: Mapping[str, str], *, database: str, listen_database: str | None, folder: Path, effects: str
) -> dict[str, str]:
    """That of `outside`, without what configures another fleet."""
    own = {
        "CAIRNQ_DSN": database,
        FOLDER_VARIABLE: str(folder),
        EFFECTS_VARIABLE: effects,
        **({"CAIRNQ_LISTEN_DATABASE": listen_database} if listen_database is not None else {}),
    }
    kept = {
        name: value
        for name, value in outside.items()
        if not name.startswith("CAIRNQ_")
        and name not in ("NOTIFY_SOCKET", "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY")
    }
    return {**kept, **own}


def lying_clock(library: Path, file: Path) -> dict[str, str]:
    """The environment in which wall clocks are shifted as `file` says. Monotonic ones go on as they are."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def libfaketime() -> Path | None:
    """Where the distribution's package `libfaketime` puts its library; None: not installed."""
    found = (path for pattern in _LIBRARIES for path in sorted(Path("/usr/lib").glob(pattern)))
    return next((path for path in found if os.access(path, os.R_OK)), None)
