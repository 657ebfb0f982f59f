"""The metrics page: byte for byte what Prometheus' own client would write, and what its parser reads back."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cairnq_supervisor.pure import exposition, health, metrics
from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.exposition import Family
from cairnq_supervisor.pure.printable import printable
from cairnq_supervisor.pure.tally import BOUNDS, Fate, Histogram, Tally

STATUS = {
    "supervisor": {"pid": 1, "state": "running", "generation": 1, "schema": "public", "protocol_version": 1},
    "keeper": {"pid": 2, "state": "ready", "leases": 3, "listening": True},
    "queues": [
        {
            "name": "mail",
            "processes": {"want": 2, "ready": 2},
            "concurrency": 16,
            "in_flight": 3,
            "in_flight_bytes": 1000,
            "max_in_flight_bytes": None,
            "backlog": 7,
            "oldest_ms": 1500,
            "suspects": 2,
            "paused": False,
        }
    ],
    "workers": [
        {"queue": "mail", "slot": slot, "state": "ready", "in_flight": slot, "in_flight_bytes": 0, "flapping": False}
        for slot in (0, 1)
    ],
    "resources": {"gpu": {"capacity": 2, "held": 1}},
}
ANY_TEXT = st.text(st.characters(), max_size=40)  # surrogates too
HOSTILE = 'a"b\\c\nd\x1b\ud800é'


class Registry(CollectorRegistry):
    """The official client's registry over families that were made with its own classes."""

    def __init__(self, *families):
        super().__init__()
        self._families = families
        self.register(self)

    def collect(self):
        if self not in self._collector_to_names:  # registering asks for the names first
            return []
        return self._families


def official(*families):
    return generate_latest(Registry(*families)).decode()


values = st.floats(allow_nan=False) | st.integers(0, 10**18).map(float)
label_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(label_text, values), max_size=4, unique_by=lambda pair: pair[0]))
def test_a_gauge_is_written_as_the_official_client_writes_it(samples):
    ours, theirs = (
        Family("cairnq_g", "gauge", "Help \\ with\nlines"),
        GaugeMetricFamily("cairnq_g", "Help \\ with\nlines", labels=["z", "a"]),
    )
    for text, value in samples:
        ours.add(value, z=text, a="1")
        theirs.add_metric([printable(text), "1"], value)
    assert exposition.text([ours]) == official(theirs)


def test_a_counter_is_written_as_the_official_client_writes_it():
    ours, theirs = Family("cairnq_c_total", "counter", "Help"), CounterMetricFamily("cairnq_c", "Help", labels=["q"])
    ours.add(12_345_678, q="x")
    theirs.add_metric(["x"], 12_345_678)
    assert exposition.text([ours]) == official(theirs)


def test_a_histogram_is_written_as_the_official_client_writes_it():
    seen = Histogram()
    for seconds in (0.001, 0.005, 0.3, 10_000):
        seen.observe(seconds)
    ours = Family("cairnq_h", "histogram", "Help")
    ours.add_histogram(BOUNDS, seen.counts, seen.total, q="x")
    theirs = HistogramMetricFamily("cairnq_h", "Help", labels=["q"])
    buckets = [
        (exposition.number(bound), sum(seen.counts[: index + 1])) for index, bound in enumerate([*BOUNDS, math.inf])
    ]
    theirs.add_metric(["x"], buckets, seen.total)
    assert exposition.text([ours]) == official(theirs)


def page(status=STATUS, tallies=None, chronicle=None):
    text = exposition.text(metrics.families(status, tallies or {}, chronicle or Chronicle()))
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            samples[sample.name, *sorted(sample.labels.items())] = sample.value
    return samples


def test_the_whole_page_is_read_back_by_the_official_parser():
    tally, chronicle = Tally(), Chronicle()
    tally.claimed("send", waited=0.2)
    tally.ended("send", Fate.RETRIED, took=3.0)
    chronicle.note("worker.died", {"queue": "mail", "cause": "signal 9 (SIGKILL)"})
    chronicle.note("worker.died", {"queue": "mail", "cause": "its loop has not turned for 612 s (stall_timeout)"})
    chronicle.note("worker.died", {"queue": "mail", "cause": "its loop has not turned for 700 s (stall_timeout)"})
    chronicle.note("worker.replacing", {"queue": "mail", "reason": "max_rss (64 MiB) passed: 65 MiB"})
    chronicle.note("worker.settled", {"queue": "mail", "failed": 2, "released": 1, "crashed": {"send": 2}})
    chronicle.note("lease.beat-failed", {"cause": "database", "workers": 2})
    chronicle.note("lease.beat", {"latency_ms": 4})
    for _ in range(2):
        chronicle.note("statement.failed", {"operation": "beat", "kind": "DatabaseUnavailable"})
    chronicle.note("database.failed", {"operation": "beat", "error": "DatabaseUnavailable: it is away"})
    samples = page(tallies={"mail": tally}, chronicle=chronicle)
    mail = ("queue", "mail")
    send = ("name", "send")
    assert samples["cairnq_queue_backlog", mail] == 7
    assert samples["cairnq_queue_oldest_seconds", mail] == 1.5
    assert samples["cairnq_queue_suspects", mail] == 2
    assert samples["cairnq_queue_processes_ready", mail] == 2
    assert ("cairnq_queue_in_flight_bytes_limit", mail) not in samples
    assert samples["cairnq_worker_in_flight_calls", mail, ("slot", "1")] == 1
    assert samples["cairnq_worker_state", mail, ("slot", "0"), ("state", "ready")] == 1
    assert samples["cairnq_resource_held", ("resource", "gpu")] == 1
    assert samples["cairnq_tasks_claimed_total", send, mail] == 1
    assert samples["cairnq_tasks_ended_total", send, ("outcome", "retried"), mail] == 1
    assert samples["cairnq_task_wait_seconds_bucket", ("le", "0.25"), send, mail] == 1
    assert samples["cairnq_task_wait_seconds_bucket", ("le", "0.1"), send, mail] == 0
    assert samples["cairnq_task_duration_seconds_sum", send, mail] == 3
    assert samples["cairnq_tasks_crashed_total", send, mail] == 2
    assert samples["cairnq_process_deaths_total", ("cause", "signal 9 (SIGKILL)"), mail] == 1
    stalled = ("cause", "its loop has not turned for N s (stall_timeout)")
    assert samples["cairnq_process_deaths_total", stalled, mail] == 2
    assert samples["cairnq_worker_replacements_total", ("cause", "max_rss (N MiB) passed"), mail] == 1
    assert samples["cairnq_beat_seconds_count",] == 1
    assert samples["cairnq_beat_failures_total", ("cause", "database")] == 1
    assert samples["cairnq_beat_failures_total", ("cause", "stale order")] == 0
    assert samples["cairnq_database_failures_total", ("error", "DatabaseUnavailable"), ("operation", "beat")] == 2
    assert samples["cairnq_events_total", ("event", "worker.died")] == 3


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (("ready", "starting"), 0),
        (("draining", "ready"), 1),
        (("quiescing", "backoff"), 0),
        (("draining", "starting"), 1),
        (("draining", "draining", "ready"), 2),
    ],
)
def test_a_worker_and_its_successor_are_one_series(states, shown):
    worker = STATUS["workers"][0]
    workers = [{**worker, "state": state, "in_flight": number} for number, state in enumerate(states)]
    status = {**STATUS, "workers": workers}
    text = exposition.text(metrics.families(status, {}, Chronicle()))
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    place = (("queue", "mail"), ("slot", "0"))
    samples = page(status)
    assert samples["cairnq_worker_in_flight_calls", *place] == shown
    assert [key[-1] for key in samples if key[0] == "cairnq_worker_state"] == [("state", states[shown])]


@given(ANY_TEXT, ANY_TEXT)
@example(HOSTILE, HOSTILE)
def test_names_of_strangers_do_not_break_the_page(name, queue):
    tally = Tally()
    tally.claimed(name, waited=0)
    samples = page(tallies={queue: tally})
    assert samples["cairnq_tasks_claimed_total", ("name", printable(name)), ("queue", printable(queue))] == 1
    text = exposition.text(metrics.families(STATUS, {queue: tally}, Chronicle()))
    assert all(line.isprintable() for line in text.split("\n"))


def test_events_with_odd_fields_are_counted_by_name():
    chronicle = Chronicle()
    for name in (
        "worker.died",
        "worker.replacing",
        "worker.settled",
        "lease.beat-failed",
        "lease.beat",
        "database.failed",
        "anything",
    ):
        chronicle.note(name, {"crashed": ["two"], "latency_ms": None, "queue": 7})
        chronicle.note(name, {})
    assert set(chronicle.events.values()) == {2}
    page(chronicle=chronicle)


class TestTally:
    def test_it_survives_its_message_and_sums_up(self):
        tally = Tally()
        tally.claimed("a", waited=-5)
        tally.ended("a", Fate.SUCCEEDED, took=0.01)
        tally.ended("b", Fate.RELEASED, took=None)
        copy_of_it = Tally.decoded(tally.encoded())
        assert copy_of_it.names == tally.names
        tally.add(copy_of_it)
        assert tally.names["a"].claimed == 2
        assert tally.names["a"].wait.total == 0
        assert sum(tally.names["a"].duration.counts) == 2
        assert tally.names["b"].fates == {Fate.RELEASED: 2}
        assert sum(tally.names["b"].duration.counts) == 0

    @pytest.mark.parametrize("names", [{"a": 1}, {"a": [1, {"odd": 1}, [[], 0], [[], 0]]}, {"a": [1, {}, [[], 0], []]}])
    def test_anything_else_is_refused(self, names):
        with pytest.raises((ValueError, TypeError, KeyError)):
            Tally.decoded(names)


class TestReadiness:
    def changed(self, **parts):
        status = copy.deepcopy(STATUS)
        for path, value in parts.items():
            *way, last = path.split("__")
            part = status
            for step in way:
                part = part[int(step) if step.isdigit() else step]
            part[last] = value
        return health.reasons_not_ready(status)

    def test_a_tree_at_work_is_ready(self):
        assert self.changed() == []

    def test_a_drain_is_not_ready(self):
        assert self.changed(supervisor__state="draining") == ["the supervisor is draining"]

    def test_no_keeper_is_not_ready(self):
        assert self.changed(keeper__state="backoff") == ["the keeper is backoff"]

    def test_a_queue_without_a_ready_worker_is_not_ready(self):
        reasons = self.changed(queues__0__processes={"want": 2, "ready": 0}, workers__0__state="starting")
        assert reasons == ["queue mail: no worker is ready (starting, ready)"]

    def test_a_queue_with_one_of_two_is_ready(self):
        assert self.changed(queues__0__processes={"want": 2, "ready": 1}) == []

    def test_a_paused_queue_is_as_somebody_wants_it(self):
        assert self.changed(queues__0__processes={"want": 2, "ready": 0}, queues__0__paused=True) == []

    def test_a_queue_that_is_scaled_to_none_is_as_somebody_wants_it(self):
        assert self.changed(queues__0__processes={"want": 0, "ready": 0}) == []

    def test_flapping_is_not_ready(self):
        assert self.changed(workers__1__flapping=True) == ["queue mail: a worker dies again and again"]
