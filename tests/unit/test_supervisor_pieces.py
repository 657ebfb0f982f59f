"""A fleet of many workers and names: what the gateway is told of it comes in messages that a channel takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from typing import Any

import pytest

from cairnq_supervisor.pure import wire
from cairnq_supervisor.pure.messages import Ask, Message, Told
from cairnq_supervisor.pure.pieces import PAIRS, in_pieces, joined
from cairnq_supervisor.pure.tally import Tally
from cairnq_supervisor.roles.gateway import Oracle


def document(*names: int) -> dict[str, Any]:
    """Of so many workers, each of which has so many names."""
    tallies = [(f"queue_{number % 3}", encoded(count)) for number, count in enumerate(names)]
    return {"status": {"queues": []}, "chronicle": {}, "tallies": tallies}


@cache
def encoded(names: int) -> dict[str, Any]:
    tally = Tally()
    for number in range(names):
        tally.claimed(f"an_application.of_many.names_{number}", waited=1.0)
    return tally.encoded()


@pytest.mark.parametrize(
    ("names", "pieces"),
    [((), 1), ((0, 3), 1), ((PAIRS,), 1), ((PAIRS, 1), 2), ((3 * PAIRS + 1,), 4), ((900,) * 5, 3), ((1,) * PAIRS, 1)],
)
def test_no_piece_has_more_than_it_may_and_nothing_is_lost(names: tuple[int, ...], pieces: int) -> None:
    whole = document(*names)
    cut = list(in_pieces(whole))
    assert len(cut) == pieces
    assert all(sum(len(named) for _, named in piece["tallies"]) <= PAIRS for piece in cut)
    again = joined(list(cut))
    assert (again["status"], again["chronicle"]) == (whole["status"], whole["chronicle"])
    assert counted(again) == counted(whole)


def counted(one: dict[str, Any]) -> Counter[tuple[str, str]]:
    return Counter((queue, name) for queue, names in one["tallies"] for name in names)


class Supervisor:
    """As its seat for the gateway does: it answers what it is asked, over the wire, and keeps the rest."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = whole
        self.asked: list[Message] = []
        self.oracle = Oracle(self)  # type: ignore[arg-type]

    def send(self, message: Message) -> None:
        self.asked.append(message)

    def answer_all(self) -> int:
        """Messages that it took."""
        pieces, count = list(in_pieces(self.whole)), 0
        while self.asked:
            asked = self.asked.pop()
            assert isinstance(asked, Ask)
            assembler = wire.Assembler()
            told = Told(asked.number, pieces[asked.piece], more=asked.piece + 1 < len(pieces))
            (heard,) = filter(None, [assembler.feed(packet) for packet in wire.encode(told)])
            assert isinstance(heard, Told)
            self.oracle.told(heard)
            count += 1
        return count


async def test_forty_thousand_pairs_of_worker_and_name_reach_the_gateway() -> None:
    supervisor = Supervisor(document(*[400] * 120))
    asking = asyncio.ensure_future(supervisor.oracle.ask())
    await asyncio.sleep(0)
    assert supervisor.answer_all() == 120 * 400 // PAIRS
    heard = await asking
    assert heard is not None
    assert sum(len(names) for _, names in heard["tallies"]) == 120 * 400
