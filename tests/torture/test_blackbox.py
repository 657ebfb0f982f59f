"""Calls as their process wrote them down, up to its last moment."""

from __future__ import annotations

from dataclasses import dataclass

from cairnq_supervisor.torture.blackbox import BlackBox, calls, read


@dataclass
class Context:
    """What a black box asks of a context."""

    task_id: str = "task_1"
    attempt: int = 2
    worker_id: str = "worker_1"
    settled: bool = False
    lost_lease: bool = False


def test_a_call_is_read_back_as_it_was(tmp_path):
    box, ctx = BlackBox(tmp_path), Context()
    with box.call(ctx) as call:
        call.mark()
    [run] = read(tmp_path)
    assert (run.run_id, run.task_id, run.attempt, run.worker_id) == (call.run_id, "task_1", 2, "worker_1")
    assert run.began <= run.trusted <= run.ended


def test_time_without_trust_does_not_count(tmp_path):
    box, ctx = BlackBox(tmp_path), Context()
    with box.call(ctx) as call:
        call.mark()
        ctx.lost_lease = True
        [before] = read(tmp_path)
        call.mark()
    [run] = read(tmp_path)
    assert run.trusted == before.trusted < run.ended


def test_a_call_that_raised_did_not_come_to_its_end(tmp_path):
    box = BlackBox(tmp_path)
    try:
        with box.call(Context()):
            raise ValueError
    except ValueError:
        pass
    [run] = read(tmp_path)
    assert run.ended is None
    assert run.raised >= run.trusted


def test_a_line_that_death_cut_short_is_left_out():
    whole = "began 7.1 10.5 1 task_1 1 worker_1 7\nruns 7.1 11.5 1\n"
    for cut in range(1, len("ended 7.1 12.25 1\n")):
        [run] = calls(whole + "ended 7.1 12.25 1\n"[:cut])
        assert (run.trusted, run.ended) == (11.5, None)
    [run] = calls(whole + "ended 7.1 12.25 1\n")
    assert (run.trusted, run.ended) == (12.25, 12.25)
    assert list(calls("began 7.1 10.5 1 task_1 1 worker_1 7")) == []
