"""What the numbers of a database and a host mean for an operator: thresholds, and what to do past them."""

from __future__ import annotations

from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.findings import Finding, fault, ok, warning
from cairnq_supervisor.pure.quantities import format_age, format_duration, format_size

KEEPERS_CONNECTIONS = 2
"""One for beats and settling, one that listens."""

WORKERS_CONNECTIONS = 10
"""The most that one worker process opens; at rest it has one."""

SUSPECTS_CONNECTIONS = 3
"""The most that a worker for suspects has use for, which runs one call at a time: to claim, to settle, and one."""

WORKING_BYTES = 3 << 20
"""What a worker's first connection and first calls take beside what it has when it has booted, for handlers that take
nothing: 2.5 MB on PostgreSQL. As much again, which it shared, it writes to and then has for itself.
"""

TIGHT = 0.9
"""Part of the granted memory past which the largest worker is replaced."""

DEAD_SHARE = 0.5
DEAD_LEAST = 10_000
"""Dead rows under this number cost nothing, whatever their share."""

CLOCK_LEEWAY_S = 5.0
DESCRIPTORS_FOR_EACH = 16
"""Descriptors of a process at rest: standard streams, channel, memory, epoll, a connection or two."""

DESCRIPTORS_FOR_A_CHILD = 5
"""Of the supervisor: its channel, its pidfd, the memory of its leases and of its stacks, its bell."""

STOP_TIMEOUT = "CAIRNQ_STOP_TIMEOUT"
"""How long the orchestrator waits from SIGTERM to SIGKILL: a container cannot ask, so the manifest says it."""

REST_OF_A_STOP_S = 5.0
"""Seconds that a stop takes beside the drain: killing what remains, giving its tasks back, keeper and gateway."""

RETENTION_DAYS = 30
MANY_ROWS = 1_000_000


def connection_budget(*, workers: int, most: int, reserved: int, used: int) -> Finding:
    """Whether the workers of this host fit beside what is connected now, and those beside them that run suspects."""
    at_rest, at_most = workers + KEEPERS_CONNECTIONS, workers * WORKERS_CONNECTIONS + KEEPERS_CONNECTIONS
    alone = workers * SUSPECTS_CONNECTIONS
    free = most - reserved - used
    says = (
        f"{at_rest} at rest, {at_most} at most, on this host, {alone} more while suspects run alone; "
        f"{free} of {most} are free"
    )
    if at_rest > free:
        advice = "raise max_connections, lower processes, or put a pooler before the database (with listen_database)"
        return fault("connections", says, advice, code=Exit.CONFIG)
    if at_most + alone > free:
        return warning("connections", says, "under full load workers would wait for a connection")
    return ok("connections", says)


def pooler(*, pooled: bool, goes_around: bool) -> Finding:
    """`goes_around`: there is a `listen_database`."""
    if not pooled:
        return ok("pooler", "none stands before the database")
    if goes_around:
        return ok("pooler", "one stands before the database, and listen_database goes around it")
    advice = "set listen_database to a direct URL: beats and notifications need one, and then nothing is prepared"
    return fault("pooler", "a pooler stands before the database", advice, code=Exit.CONFIG)


def memory_budget(*, workers: int, booted: int, own: int, supervisor: int, granted: int | None) -> Finding:
    """Whether the processes of this host fit into its cgroup before their handlers take anything. Sizes are bytes.

    `booted`: a worker's, `own`: what of that it shares with nobody. `supervisor`: its whole size, the shared part with
    it. `granted`: the cgroup's limit, None: none.
    """
    each = own + 2 * WORKING_BYTES
    start = supervisor + each * (workers + 2)  # keeper and gateway: each about as much
    alone = start + each * workers
    says = (
        f"a worker boots with {format_size(booted)} ({format_size(own)} its own); all processes at work have "
        f"{format_size(start)}, up to {format_size(alone)} while suspects run alone, and what handlers take"
    )
    if granted is None:
        return ok("memory", says)
    says += f"; {format_size(granted)} granted"
    if start > TIGHT * granted:
        return fault("memory", says, "raise the limit of the container or unit, or lower processes", code=Exit.CONFIG)
    if alone > TIGHT * granted:
        return warning("memory", says, "raise the limit, or lower processes, to have room for suspects")
    return ok("memory", says)


def dead_rows(*, live: int, dead: int, vacuumed_ago_s: int | None, autovacuum: bool) -> Finding:
    last = "never vacuumed" if vacuumed_ago_s is None else f"vacuumed {format_age(vacuumed_ago_s)} ago"
    says = f"about {live:,} live and {dead:,} dead rows, {last}"
    if not autovacuum:
        return fault("vacuum", f"autovacuum is off for cairnq_tasks ({says})", "turn it on: claims slow down without")
    if dead >= DEAD_LEAST and dead > DEAD_SHARE * max(live, 1):
        return warning("vacuum", says, "see who holds back vacuum, or run: vacuum cairnq_tasks")
    return ok("vacuum", says)


def retention(*, configured: bool, live: int, oldest_finished_s: float | None) -> Finding:
    if configured:
        return ok("retention", "configured")
    if oldest_finished_s is None:
        return ok("retention", "none configured, and nothing has finished")
    days = oldest_finished_s / 86_400
    says = f"none configured; the oldest finished task ended {days:.0f} day(s) ago, about {live:,} rows"
    if days > RETENTION_DAYS or live > MANY_ROWS:
        advice = 'finished tasks pile up: write [retention] succeeded = "7d" in the configuration, or run cairnq purge'
        return warning("retention", says, advice)
    return ok("retention", says)


def clock(*, database_ms: int, host_ms: float) -> Finding:
    """The database's clock decides; this host's only dates its log lines."""
    ahead = (host_ms - database_ms) / 1000
    says = f"this host is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database"
    if abs(ahead) > CLOCK_LEEWAY_S:
        return warning("clock", says, "set both by NTP: leases follow the database's clock, log lines this host's")
    return ok("clock", says)


def descriptors(*, processes: int, limit: int) -> Finding:
    """`limit`: RLIMIT_NOFILE, which holds for each process; the supervisor has several for each child."""
    needed = DESCRIPTORS_FOR_EACH + DESCRIPTORS_FOR_A_CHILD * processes + WORKERS_CONNECTIONS
    says = f"{limit} open files a process, {needed} needed by the supervisor of up to {processes} processes"
    if limit < needed:
        return fault("open files", says, "raise LimitNOFILE= or `ulimit -n`")
    return ok("open files", says)


def process_limit(*, processes: int, most: int, limit: int | None, used: int) -> Finding:
    """`processes` at the start, and at `most`. `limit`: RLIMIT_NPROC of this user, None for none; threads count too."""
    if limit is None:
        return ok("processes", "no limit")
    says = f"{used} of {limit} processes and threads of this user run; {processes} more at start, {most} at most"
    if used + processes > limit:
        return fault("processes", says, "raise LimitNPROC= or `ulimit -u`")
    if used + most > limit:
        return warning("processes", says, "raise LimitNPROC= or `ulimit -u`, or a busy queue cannot grow")
    return ok("processes", says)


def stop_timeout(*, unit: str, stop_s: float | None, drain_s: float) -> Finding:
    """`stop_s` None: for ever."""
    if stop_s is None:
        return ok("stop time-out", f"{unit} never gives up")
    says = f"{unit} kills after {format_duration(stop_s)}, a drain takes up to {format_duration(drain_s)}"
    if stop_s < drain_s + REST_OF_A_STOP_S:
        least = format_duration(drain_s + REST_OF_A_STOP_S)
        where = "terminationGracePeriodSeconds" if unit == STOP_TIMEOUT else "TimeoutStopSec="
        return fault("stop time-out", says, f"raise {where} to {least} or more, or lower drain_timeout")
    return ok("stop time-out", says)


def snapshot(*, kind: str, who: str, age_s: int | None) -> Finding:
    age = "" if age_s is None else f", {format_age(age_s)} old"
    return warning("old snapshot", f"{kind} {who}{age} holds back vacuum", "end it if nobody needs it")
