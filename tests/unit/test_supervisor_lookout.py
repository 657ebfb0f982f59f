"""When the keeper looks again, and what it says of what it found."""

from __future__ import annotations

import pytest

from cairnq.pure.models import Outlook
from cairnq_supervisor.roles.lookout import AFTER_NEWS, INTERVAL, SOONEST, longest_pause


def outlook(*due: str, next_in_ms: int | None = None) -> Outlook:
    return Outlook(frozenset(due), frozenset(), next_in_ms, None)


@pytest.mark.parametrize(
    ("found", "before", "pause"),
    [
        (outlook(), (), INTERVAL),
        (outlook(next_in_ms=2000), (), 2.0),
        (outlook(next_in_ms=1), (), SOONEST),
        (outlook(next_in_ms=1_000_000), (), INTERVAL),
        (outlook("default"), (), AFTER_NEWS),
        (outlook("default"), ("mail",), AFTER_NEWS),
        (outlook("default", next_in_ms=200), (), 0.2),
        (outlook("default"), ("default",), INTERVAL),
        (outlook("default"), ("default", "mail"), INTERVAL),
    ],
)
def test_the_next_look_is_soon_after_one_that_found_news(found: Outlook, before: tuple[str, ...], pause: float) -> None:
    assert longest_pause(found, frozenset(before)) == pytest.approx(pause)
