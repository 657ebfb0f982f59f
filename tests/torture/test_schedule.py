"""What a seed says: the same faults and requests each time, others for another seed."""

from __future__ import annotations

import importlib
from itertools import islice

import pytest

from cairnq_supervisor.torture.configuration import EFFECTS_VARIABLE, FOLDER_VARIABLE
from cairnq_supervisor.torture.schedule import LEASE_S, Ability, Kind, schedule
from cairnq_supervisor.torture.workload import GOOD, Cancel, Retry, Submit, flood, requests

ALL = frozenset(Ability)


def test_a_seed_is_a_schedule():
    assert schedule(1, 60, ALL) == schedule(1, 60, ALL)
    assert schedule(1, 60, ALL) != schedule(2, 60, ALL)


def test_two_minutes_are_more_than_two_hundred_faults_of_every_kind_in_their_order():
    faults = schedule(1, 120, ALL)
    assert len(faults) >= 280
    assert {fault.kind for fault in faults} == set(Kind)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(0 <= fault.at < 121 for fault in faults)


def test_some_faults_outlast_a_lease_and_most_do_not():
    lasting = [fault.lasting for fault in schedule(1, 120, ALL)]
    longer = [seconds for seconds in lasting if seconds > LEASE_S]
    assert 0 < len(longer) < len(lasting) / 3


@pytest.mark.parametrize(
    ("abilities", "absent"),
    [
        (set(), {Kind.NETWORK_CUT, Kind.SESSIONS_END, Kind.FILE_LOCK, Kind.CLOCK_SHIFT, Kind.SERVER_RESTART}),
        ({Ability.FILE}, {Kind.NETWORK_CUT, Kind.ROWS_LOCK, Kind.HOST_FREEZE}),
        ({Ability.SERVER, Ability.NETWORK}, {Kind.FILE_LOCK, Kind.CLOCK_SHIFT, Kind.SERVER_RESTART}),
    ],
)
def test_what_cannot_be_done_is_not_on_the_schedule(abilities, absent):
    assert not absent & {fault.kind for fault in schedule(1, 120, abilities)}


def test_a_seed_is_a_stream_of_requests_for_each_client():
    first = list(islice(requests(1, 0), 500))
    assert first == list(islice(requests(1, 0), 500))
    assert first != list(islice(requests(1, 1), 500))
    assert first != list(islice(requests(2, 0), 500))
    assert {type(request) for _, request in first} == {Submit, Cancel, Retry}
    assert flood(0.25) == flood(0.25)


def test_every_task_has_a_handler_and_every_handler_has_tasks(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(EFFECTS_VARIABLE, "torture_effects")
    application = importlib.import_module("cairnq_supervisor.torture.application")
    asked = [request for _, request in islice(requests(1, 0), 3000) if isinstance(request, Submit)]
    names = {item["name"] for request in asked for item in request.items}
    assert names == set(application.registry.handlers)
    assert names > GOOD


def test_a_key_has_one_rule_for_conflicts_and_the_row_says_it():
    asked = [request for _, request in islice(requests(1, 0), 3000) if isinstance(request, Submit)]
    keyed = [item for request in asked for item in request.items if "key" in item]
    assert len({(item["key"], item["conflict"]) for item in keyed}) == len({item["key"] for item in keyed}) > 10
    assert all(item["metadata"] == {"key": item["key"], "conflict": item["conflict"]} for item in keyed)
