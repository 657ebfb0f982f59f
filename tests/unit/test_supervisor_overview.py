"""A status report as people see it."""

from __future__ import annotations

import copy

from cairnq_supervisor.commands.answer import Note, Record
from cairnq_supervisor.commands.overview import overview
from cairnq_supervisor.pure import tabular

WORKER = {
    "queue": "mail",
    "slot": 0,
    "pid": 7,
    "worker_id": "w0",
    "state": "ready",
    "flapping": False,
    "in_flight": 3,
    "concurrency": 16,
    "succeeded": 1200,
    "failed": 1,
    "released": 0,
    "rss": 40 << 20,
    "age_s": 3700.0,
    "loop_lag_ms": 2,
}
REPORT = {
    "supervisor": {
        "state": "running",
        "pid": 1,
        "started_at": "2026-12-01T06:00:00.000+00:00",
        "database": "postgresql://db/shop",
        "schema": "public",
        "last_event": "06:00:01.000 info    worker.ready         worker mail/0 is ready (pid 7)",
    },
    "keeper": {"state": "ready", "pid": 2, "leases": 3, "last_beat_ms": 900, "beat_latency_ms": 4, "listening": True},
    "queues": [
        {
            "name": "mail",
            "processes": {"want": 2, "ready": 1},
            "concurrency": 16,
            "in_flight": 3,
            "backlog": 1500,
            "oldest_ms": 90_000,
            "paused": False,
        }
    ],
    "workers": [WORKER],
}


def lines(report=REPORT, before=None, elapsed=0.0, height=None):
    shown = []
    for block in overview(report, before, elapsed, height=height):
        if isinstance(block, Record):
            shown += tabular.record_lines(block.pairs, None)
        elif isinstance(block, Note):
            shown += tabular.hanging(block.lead, block.text, None)
        elif isinstance(block, str):
            shown.append(block)
        else:
            shown += tabular.lines(block, None)
    return shown


def test_it_reads_like_this():
    assert lines() == [
        "supervisor  running, pid 1, since 2026-12-01 06:00:00Z",
        "database    postgresql://db/shop (schema public)",
        "keeper      ready, pid 2, 3 leases, last beat 0.9 s ago in 4 ms, listening",
        "last event  06:00:01.000 info worker.ready worker mail/0 is ready (pid 7)",
        "",
        "QUEUE  STATE  WORKERS  CALLS  WAITING  OLDEST  DONE/S",
        "mail   ready      1/2   3/32    1,500    1.5m",
        "",
        "WORKER  STATE  CALLS   DONE  FAILED  MIB   AGE  LAG MS  PID  RELEASED",
        "mail/0  ready   3/16  1,200       1   40  1.0h       2    7         0",
    ]


def test_the_second_look_tells_rates():
    after = copy.deepcopy(REPORT)
    after["workers"][0]["succeeded"] += 50
    after["workers"].append({**WORKER, "slot": 1, "worker_id": "w1", "succeeded": 9, "failed": 1})
    (line,) = [line for line in lines(after, REPORT, 2.0) if line.startswith("mail ")]
    assert line.split()[-1] == "30.0"


def test_a_queue_that_is_not_ready_says_why():
    paused, flapping, empty, none, draining = (copy.deepcopy(REPORT) for _ in range(5))
    paused["queues"][0]["paused"] = True
    flapping["workers"][0]["flapping"] = True
    empty["queues"][0]["processes"]["ready"] = 0
    none["queues"][0]["processes"] = {"want": 0, "ready": 0}
    draining["supervisor"]["state"] = "draining"
    states = [lines(report)[6].split()[1] for report in (paused, flapping, empty, none, draining)]
    assert states == ["paused", "flapping", "waiting", "none", "draining"]


def test_a_live_view_fits_its_screen_and_says_what_is_left_out():
    crowded = copy.deepcopy(REPORT)
    crowded["workers"] = [{**WORKER, "slot": slot} for slot in range(50)]
    shown = lines(crowded, height=24)
    assert len(shown) + 2 + 2 < 24, "a rule below the headings of each table, where there is colour, and a long event"
    assert shown[-1] == "and 41 more workers"
    assert sum(line.startswith("mail/") for line in shown) == 9
    assert len(lines(crowded)) == 59


def test_the_gateway_is_shown_with_its_address():
    for host, shown in (("0.0.0.0", "http://0.0.0.0:9464"), ("::1", "http://[::1]:9464")):
        report = REPORT | {"gateway": {"state": "ready", "pid": 3, "host": host, "port": 9464}}
        assert f"gateway     ready, pid 3, {shown}" in lines(report)
