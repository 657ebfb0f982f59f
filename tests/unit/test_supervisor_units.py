"""A worker's units of a resource: what it may use, it says where the keeper reads it."""

from __future__ import annotations

from cairnq_supervisor.pure.messages import Message, Returned
from cairnq_supervisor.roles.units import Units


async def test_the_sum_of_usable_units_is_shown_as_they_come_and_go() -> None:
    shown: list[int] = []
    said: list[Message] = []
    ceilings: dict[str, int] = {}
    units = Units(None, say=said.append, set_ceiling=ceilings.__setitem__, in_use=lambda _: 0, show=shown.append)
    units.granted("gpu", 0)
    units.granted("gpu", 1)
    units.granted("license", 0)
    assert (shown, ceilings) == ([1, 2, 3], {"gpu": 2, "license": 1})
    units.asked_back("gpu", 0)
    assert (shown[-1], ceilings["gpu"]) == (2, 1)
    assert said == [Returned("gpu", 0)]
