"""The harness of bench/: its table, its rates, and that a step that fails costs nobody else's result."""

import os
import time
from dataclasses import replace

import pytest

from bench import cli, notes, report
from bench.comparing import beside_peers
from bench.draining import Drained
from bench.figures import Figure, of_runs, table, verdicts
from bench.session import Session
from bench.systems import all_systems
from bench.systems.installing import Installed, Unavailable

FOREVER = float("inf")


class Absent:
    name = "absent"

    def install(self):
        raise Unavailable("no registry")


class Present:
    name = "present"
    settings = ()

    def install(self):
        return Installed("1.2.3", ("true",))


def session(*systems, rounds=3, ends_at=FOREVER):
    return Session(None, systems, quick=True, rounds=rounds, ends_at=ends_at)


def test_the_table_has_ratios_first_then_what_must_be_reached():
    figures = [
        Figure("rate", 1234.5, "/s", "alone"),
        Figure("time", 7.0, "ms", "", target=5),
        of_runs("ratio", [2.0, 1.0, 4.0], "x", "a beside b", target=1.5, better="higher"),
    ]
    lines = table(figures).splitlines()
    assert lines[2] == "| ratio  | 2 x (1 to 4) | >= 1.5 reached   | a beside b |"
    assert lines[3].startswith("| time   | 7 ms         | <= 5 NOT REACHED |")
    assert lines[4].startswith("| rate   | 1,234 /s     |                  |")
    assert len({line.index("|", 2) for line in lines}) == 1
    assert [line.split(":")[0].split()[-1] for line in verdicts(figures).splitlines()] == ["time", "ratio"]


def test_ratios_are_taken_run_by_run_beside_each_peer():
    runs = {"ours": [10.0, 20.0, 30.0], "peer": [5.0, 40.0, 10.0]}
    (figure,) = beside_peers("drain", runs, "ours", {"peer": 3.0})
    assert (figure.runs, figure.value, figure.reached) == ((2.0, 0.5, 3.0), 2.0, False)


def test_a_run_that_failed_leaves_the_ratio_of_the_medians():
    (figure,) = beside_peers("drain", {"ours": [10.0, 20.0, 30.0], "peer": [4.0, 6.0]}, "ours", {})
    assert figure.runs == (4.0,)


def test_what_could_not_be_measured_has_no_ratio():
    assert list(beside_peers("drain", {"peer": [1.0]}, "ours", {})) == []


def test_a_rate_leaves_the_first_and_the_last_twentieth_out():
    moments = [0, *range(1_000_000_000, 1_000_000_000 + 40 * 1_000_000, 1_000_000), 9_000_000_000]
    assert notes.rate(moments, every=10) == pytest.approx(10_000)


def test_a_rate_runs_to_the_settlement_where_it_is_known():
    all_called_at_once = [0] * 100
    assert notes.rate(all_called_at_once, every=10, settled_at=950_000_000) == pytest.approx(1_000)


def test_a_drain_that_was_cut_off_says_so_in_the_table():
    whole = Drained(rate=1.0, worker_us=2.0, server_us=3.0, statements=4.0, wal=5.0)
    assert "NOT DONE" not in whole.costs
    assert "NOT DONE after 40 s" in replace(whole, cut_off=True).costs


def test_a_system_says_how_its_failures_are_found():
    """A handler that fails quickly would be a fast drain."""
    assert all("count(*)" in system.failed for system in all_systems.ALL)


def test_notes_are_read_whole_lines_only(tmp_path):
    (tmp_path / "11").write_bytes(b"1\n2\n3")
    (tmp_path / "12").write_bytes(b"4\n")
    assert (sorted(notes.numbers(tmp_path)), notes.count(tmp_path), notes.pids(tmp_path)) == ([1, 2, 4], 3, [11, 12])


def test_a_step_that_fails_is_named_and_the_others_go_on():
    run = session()

    def fail():
        raise RuntimeError("no such thing")

    assert run.rounds_of("drain", {"good": lambda: 1.0, "bad": fail}) == {"good": [1.0, 1.0, 1.0]}
    assert run.failures == [f"drain, bad, run {number}: RuntimeError: no such thing" for number in (1, 2, 3)]


def test_a_step_that_hangs_is_ended():
    reader, writer = os.pipe()
    run = session()
    assert run.attempt("hang", lambda: os.read(reader, 1), limit=0.01) is None
    assert run.failures[0].startswith("hang: OutOfTime")
    os.close(reader)
    os.close(writer)


def test_no_step_begins_after_the_end():
    run = session(ends_at=time.monotonic() - 1)
    assert run.attempt("late", lambda: pytest.fail("it began")) is None
    assert run.failures == ["late: OutOfTime: the time for the whole run is over"]


def test_a_peer_that_is_not_to_be_had_is_left_out_with_a_word():
    run = session(Absent(), Present())
    run.install()
    assert [system.name for system in run.systems] == ["present"]
    assert (run.missing, run.versions) == (["absent: no registry"], {"present": "1.2.3"})


def test_results_are_written_after_each_workload(tmp_path, monkeypatch):
    out, seen = tmp_path / "RESULTS.md", []

    def first(_session):
        yield Figure("first", 1.0, "x", "")
        raise RuntimeError("broken halfway")

    def second(_session):
        seen.append(out.read_text())
        yield Figure("second", 1.0, "x", "")

    monkeypatch.setattr(cli, "WORKLOADS", {"one": first, "two": second})
    monkeypatch.setattr(report, "version_of", lambda _server: "0")
    figures = cli._run(session(), ["one", "two"], out)
    assert [figure.name for figure in figures] == ["first", "second"]
    assert "| first " in seen[0]
    assert "yet to do two" in seen[0]
    text = out.read_text()
    assert "| second " in text
    assert "yet to do" not in text
    assert "Failed: the rest of one: RuntimeError: broken halfway" in text
