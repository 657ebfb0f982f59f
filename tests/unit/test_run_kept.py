"""The gate of a worker whose leases nobody renews, whoever says so."""

from __future__ import annotations

from cairnq.run.kept import Kept
from cairnq.run.leases import LeaseTable
from cairnq.run.outage import Outage


def test_a_gate_that_another_process_shut_is_opened_once_by_the_next_beat():
    table, opened = LeaseTable.private(1), []
    kept = Kept(table, Outage(lambda *_, **__: None, lambda: 0.0), lambda: 0.0, on_again=lambda: opened.append(1))
    for run_out_at, times in ((10.0, 1), (20.0, 2)):
        table.run_out(run_out_at)
        kept.look()
        assert (kept.is_kept, len(opened)) == (False, times - 1)
        table.beaten_at = run_out_at + 1
        kept.look()
        kept.look()
        assert (kept.is_kept, len(opened)) == (True, times)
