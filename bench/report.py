"""What is printed and written: versions and settings, the table, what must be reached, and what went wrong."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Figure, table, verdicts
from bench.server import SETTINGS, version_of
from bench.session import Session

ABOUT = """\
Ratios come first, each of runs side by side: medians, and in brackets the range over the runs. Rates and latencies
depend on the machine and on what else it does. Each system is measured with the settings that its manual says are fast,
and compared by the fastest of them. "worker us", "client us" and "server us" are processor time a task.
"""


def text(session: Session, figures: Sequence[Figure], *, unfinished: str = "") -> str:
    parts = [_heading(session), ABOUT]
    if unfinished:
        parts.append(f"**This run did not come to its end: {unfinished}.**\n")
    if figures:
        parts.append(f"{table(figures)}\n")
    if aimed := verdicts(figures):
        parts.append(f"What must be reached:\n\n```\n{aimed}\n```\n")
    parts += [f"{more}\n" for more in session.texts]
    parts += [f"Left out: {reason}\n" for reason in session.missing]
    parts += [f"Failed: {failure}\n" for failure in session.failures]
    return "\n".join(parts)


def write(path: Path, content: str) -> None:
    """Whole or not at all: a run that is ended while it writes leaves the one before."""
    draft = path.with_suffix(".tmp")
    draft.write_text(f"# Results of `make bench`\n\n{content}")
    draft.replace(path)


def _heading(session: Session) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    runs = f"{session.rounds} run" + ("s" if session.rounds > 1 else "")
    took = f"{(time.monotonic() - session.began_at) / 60:.0f} minutes"
    systems = "\n".join(
        f"- {system.name} {session.versions[system.name]}: " + "; ".join(setting.name for setting in system.settings)
        for system in session.systems
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d}{', QUICK=1' if session.quick else ''}, {runs}, {took}. "
        f"PostgreSQL {version_of(session.server)}, its clients on the same {os.cpu_count()} cores "
        f"(load {os.getloadavg()[2]:.1f}), Python {platform.python_version()}.\n{settings}.\n\n{systems}\n"
    )
