"""From numbers to findings: each threshold from both sides, and the exit code of a list."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure import findings, judging
from cairnq_supervisor.pure.findings import Verdict
from cairnq_supervisor.system import limits


@pytest.mark.parametrize(
    ("used", "verdict"),
    [(0, Verdict.OK), (56, Verdict.OK), (57, Verdict.WARNING), (92, Verdict.WARNING), (93, Verdict.FAULT)],
)
def test_the_workers_connections_must_fit_and_those_of_workers_for_suspects(used, verdict):
    found = judging.connection_budget(workers=3, most=100, reserved=3, used=used)
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("granted", "verdict"), [(None, Verdict.OK), (139, Verdict.OK), (138, Verdict.WARNING), (105, Verdict.FAULT)]
)
def test_the_processes_must_fit_into_their_cgroup_and_those_for_suspects_too(granted, verdict):
    """45 and (3 + 2) of 10 MiB are 95; with 3 more 125, which is nine tenths of 139."""
    found = judging.memory_budget(
        workers=3, booted=35 << 20, own=4 << 20, supervisor=45 << 20, granted=None if granted is None else granted << 20
    )
    assert found.verdict is verdict
    assert "all processes at work have 95.0 MiB, up to 125.0 MiB while suspects" in found.says


@pytest.mark.parametrize(
    ("live", "dead", "verdict"), [(0, 9_999, Verdict.OK), (100_000, 50_000, Verdict.OK), (0, 10_000, Verdict.WARNING)]
)
def test_dead_rows_count_by_share_and_by_number(live, dead, verdict):
    assert judging.dead_rows(live=live, dead=dead, vacuumed_ago_s=None, autovacuum=True).verdict is verdict


def test_ages_are_told_as_people_tell_them():
    told = judging.dead_rows(live=1, dead=0, vacuumed_ago_s=1068, autovacuum=True)
    assert told.says.endswith("vacuumed 17.8m ago")
    assert "backend 7, 1.5h old holds back vacuum" in judging.snapshot(kind="backend", who="7", age_s=5400).says


def test_autovacuum_turned_off_is_a_fault_whatever_the_numbers():
    found = judging.dead_rows(live=1, dead=0, vacuumed_ago_s=60, autovacuum=False)
    assert found.verdict is Verdict.FAULT


def test_finished_tasks_that_nobody_removes_are_worth_a_word():
    day = 86_400.0
    assert judging.retention(configured=False, live=5, oldest_finished_s=None).verdict is Verdict.OK
    assert judging.retention(configured=False, live=5, oldest_finished_s=29 * day).verdict is Verdict.OK
    assert judging.retention(configured=False, live=5, oldest_finished_s=31 * day).verdict is Verdict.WARNING
    assert judging.retention(configured=False, live=2_000_000, oldest_finished_s=day).verdict is Verdict.WARNING
    assert judging.retention(configured=True, live=2_000_000, oldest_finished_s=90 * day).verdict is Verdict.OK


@pytest.mark.parametrize(("ahead_s", "verdict"), [(4, Verdict.OK), (-4, Verdict.OK), (6, Verdict.WARNING)])
def test_a_clock_that_is_off_is_seen_either_way(ahead_s, verdict):
    assert judging.clock(database_ms=1_000_000, host_ms=1_000_000 + ahead_s * 1000).verdict is verdict


def test_limits_of_the_host_are_faults_where_a_start_would_hit_them():
    assert judging.descriptors(processes=10, limit=1024).verdict is Verdict.OK
    assert judging.descriptors(processes=10, limit=76).verdict is Verdict.OK
    assert judging.descriptors(processes=10, limit=75).verdict is Verdict.FAULT
    for limit, used, verdict in (
        (None, 0, Verdict.OK),
        (100, 80, Verdict.OK),
        (100, 81, Verdict.WARNING),
        (100, 90, Verdict.WARNING),
        (100, 91, Verdict.FAULT),
    ):
        assert judging.process_limit(processes=10, most=20, limit=limit, used=used).verdict is verdict


def test_a_stop_timeout_shorter_than_the_drain_is_a_fault():
    def judged(stop_s):
        return judging.stop_timeout(unit="cairnq.service", stop_s=stop_s, drain_s=25)

    assert judged(None).verdict is Verdict.OK
    assert judged(30.0).verdict is Verdict.OK
    assert judged(29.0).verdict is Verdict.FAULT
    assert "TimeoutStopSec= to 30s" in judged(29.0).sentence


def test_the_exit_code_is_that_of_the_first_fault():
    fault_76 = findings.fault("schema", "is older", code=76)
    fault_78 = findings.fault("rights", "are missing", code=78)
    assert findings.exit_code([findings.ok("a", "b"), findings.warning("c", "d", "e")]) == 0
    assert findings.exit_code([findings.ok("a", "b"), fault_76, fault_78]) == 76


def test_systemd_answers_in_spans():
    text = "Id=cairnq.service\nTimeoutStopUSec=1min 30s\n\nId=cairnq@shop.service\nTimeoutStopUSec=infinity\n"
    assert list(limits._parsed(text)) == [("cairnq.service", 90.0), ("cairnq@shop.service", None)]
    assert list(limits._parsed("")) == []
