"""What this host lets a process have, and how long its service manager waits for a stop."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

_UNITS = "cairnq*.service"
_SPAN = re.compile(r"(\d+)(us|ms|s|min|h|d|w)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_ANSWER_TIMEOUT = 5.0


class StopTimeout(NamedTuple):
    """`seconds` None: it waits for ever."""

    unit: str
    seconds: float | None


def open_files() -> int:
    """RLIMIT_NOFILE: what holds now, not what could be asked for."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def processes() -> int | None:
    """RLIMIT_NPROC of this user; None where there is none."""
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def threads_of_this_user() -> int:
    """What counts against `processes`."""
    mine, count = os.getuid(), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == mine:
                count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:  # it has gone meanwhile
            continue
    return count


def stop_timeouts() -> list[StopTimeout]:
    """Of the loaded cairnq units of systemd; empty where systemd does not answer."""
    command = ["systemctl", "show", _UNITS, "--property=Id,TimeoutStopUSec"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_TIMEOUT, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(_parsed(done.stdout)) if done.returncode == 0 else []


def _parsed(text: str) -> Iterator[StopTimeout]:
    """Paragraphs of `Id=` and `TimeoutStopUSec=1min 30s`."""
    for paragraph in text.split("\n\n"):
        facts = dict(line.split("=", 1) for line in paragraph.splitlines() if "=" in line)
        if "Id" in facts and "TimeoutStopUSec" in facts:
            yield StopTimeout(facts["Id"], _span(facts["TimeoutStopUSec"]))


def _span(text: str) -> float | None:
    """Seconds of systemd's "1min 30s"; None for "infinity"."""
    if text.strip() == "infinity":
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in _SPAN.findall(text))
