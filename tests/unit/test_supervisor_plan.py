"""What a worker's engine is made of."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.settings import QueueSettings, Settings
from cairnq_supervisor.roles.plan import SUSPECTS_POLL, engine_options


@pytest.mark.parametrize(
    ("poll", "quarantine", "interval"),
    [(3600.0, False, 3600.0), (3600.0, True, SUSPECTS_POLL), (0.25, True, 0.25)],
)
def test_a_worker_that_nobody_wakes_looks_by_itself_however_long_the_others_rest(
    poll: float, quarantine: bool, interval: float
) -> None:
    queue = QueueSettings("default", poll=poll, quarantine=quarantine)
    settings = Settings(app="app:registry", database="sqlite:///x", queues=(queue,))
    assert engine_options(settings, queue).poll_interval_s == pytest.approx(interval)
