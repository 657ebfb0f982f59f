"""When calls that returned are resolved to their outcomes: behind those that start in their place, and all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq.run import aftermath
from cairnq.run.aftermath import Aftermath


class Scene:
    """What happened, in its order. Calls and what they came to are numbers here."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.aftermath = Aftermath(self._resolve, lambda: self.said.append("room"))

    def _resolve(self, call: Any, ended: Any) -> None:
        assert call == ended
        self.said.append(call)
        if call == "bad":
            raise RuntimeError("a bug")

    def returns(self, call: Any, *, may_wait: bool = True) -> None:
        self.aftermath.join(call, call, may_wait=may_wait)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_starts_in_this_turn_takes_its_first_step_before() -> None:
    scene = Scene()

    async def first_step(number: int) -> None:
        scene.said.append(f"starts {number}")

    started = []
    for number in range(3):
        started.append(asyncio.create_task(first_step(number)))
        scene.returns(number)
    assert scene.aftermath
    await turns(3)
    assert scene.said == ["starts 0", "starts 1", "starts 2", 0, 1, 2, "room"]
    assert not scene.aftermath
    await asyncio.gather(*started)


async def test_one_that_may_not_wait_is_resolved_at_once_behind_those_before_it() -> None:
    scene = Scene()
    scene.returns(1)
    scene.returns(2, may_wait=False)
    assert scene.said == [1, 2, "room"]
    await turns(3)
    assert scene.said == [1, 2, "room"], "once"


async def test_no_more_than_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "MOST", 3)
    scene = Scene()
    for number in range(4):
        scene.returns(number)
    assert scene.said == [0, 1, 2, "room"]
    await turns(3)
    assert scene.said == [0, 1, 2, "room", 3, "room"]


async def test_all_can_be_resolved_now() -> None:
    scene = Scene()
    scene.aftermath.resolve()
    assert scene.said == []
    scene.returns(1)
    scene.aftermath.resolve()
    assert scene.said == [1, "room"]


async def test_behind_one_that_raises_the_others_are_resolved_all_the_same() -> None:
    scene = Scene()
    for call in (1, "bad", 2):
        scene.returns(call)
    with pytest.raises(RuntimeError):
        scene.aftermath.resolve()
    assert scene.said == [1, "bad"]
    await turns(2)
    assert scene.said == [1, "bad", 2, "room"]
