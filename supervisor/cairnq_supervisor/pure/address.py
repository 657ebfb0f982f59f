"""Where the control socket of a configuration is: the same rule for the supervisor and for whoever talks to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

LONGEST = 107
"""Bytes of a Unix socket's path."""

SYSTEM = Path("/run/cairnq")
"""Where a system service keeps its sockets: a shell has no RUNTIME_DIRECTORY that would say so."""


class TooLong(ValueError):
    """The path does not fit a Unix socket."""


def name_of(configuration: Path) -> str:
    """`configuration`: the real path of the file, or of the folder where there is none."""
    return f"cairnq-{hashlib.sha256(str(configuration).encode()).hexdigest()[:8]}.sock"


def to_serve(configuration: Path, environment: Mapping[str, str]) -> Path:
    """Where the supervisor listens. Raises `TooLong`."""
    return _fitting(_folders(configuration, environment)[0] / name_of(configuration))


def alias(configuration: Path, given: Path, environment: Mapping[str, str]) -> Path | None:
    """A second name for who knows the configuration by `given`, an absolute path with a link in it, which may lead
    elsewhere by the time somebody calls: to the next release, to a ConfigMap's next version. None: it is the same.
    """
    return None if given == configuration else _folders(configuration, environment)[0] / name_of(given)


def to_call(configuration: Path, environment: Mapping[str, str], given: Path | None = None) -> list[Path]:
    """Where it may be, the likeliest first. `given`: as for `alias`."""
    names = dict.fromkeys([name_of(configuration), name_of(given or configuration)])
    return [folder / name for name in names for folder in [SYSTEM, *_folders(configuration, environment)]]


def _folders(configuration: Path, environment: Mapping[str, str]) -> list[Path]:
    named = [environment.get("RUNTIME_DIRECTORY", "").partition(":")[0], environment.get("XDG_RUNTIME_DIR", "")]
    own = configuration if configuration.is_dir() else configuration.parent
    return [*(Path(folder) for folder in named if folder), own]


def _fitting(path: Path) -> Path:
    length = len(str(path).encode())
    if length > LONGEST:
        raise TooLong(
            f"{path} has {length} bytes, a socket's path at most {LONGEST}; set RUNTIME_DIRECTORY to a shorter one"
        )
    return path
