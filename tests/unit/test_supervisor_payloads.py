"""Payload bytes under the ceilings of a queue and of the host, over all the workers there are."""

from __future__ import annotations

import pytest

from cairnq_supervisor.loop.payloads import Payloads
from cairnq_supervisor.pure import ledger as ledgers
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.messages import BytesFreed
from cairnq_supervisor.roles.payloads import SharedBudget


class Worker(SharedBudget):
    """One with a row of its own, and what it said."""

    def __init__(self, ledger, *, queue=1, of_queue=None, of_host=None):
        place = ledger.enter(queue)
        self.place = place
        self.said = []
        super().__init__(ledger, place, of_queue=of_queue, of_host=of_host, say=self.said.append)


@pytest.fixture
def ledger():
    return Ledger(bytearray(Ledger.SIZE))


def test_rows_are_handed_out_from_the_lowest_and_used_again(ledger):
    assert [ledger.enter(queue) for queue in (1, 2, 1)] == [Place(0, 1), Place(1, 2), Place(2, 1)]
    ledger.hold(1, 70)
    ledger.clear(1)
    assert ledger.held() == 0
    assert ledger.enter(3) == Place(1, 3)
    assert ledger.enter(3) == Place(3, 3)


def test_when_all_rows_are_taken_there_is_none(ledger, monkeypatch):
    monkeypatch.setattr(ledgers, "ROWS", 2)
    assert [ledger.enter(1) for _ in range(3)] == [Place(0, 1), Place(1, 1), None]


def test_another_process_reads_the_same_sums():
    memory = bytearray(Ledger.SIZE)
    here, there = Ledger(memory), Ledger(memory)
    for row, (queue, size) in enumerate([(1, 10), (2, 200), (1, 3000)]):
        assert here.enter(queue) == Place(row, queue)
        here.hold(row, size)
        here.run(row, size // 10)
    assert (there.held(), there.held(1), there.held(2)) == (3210, 3010, 200)
    assert (there.running(), there.running(1)) == (321, 301)


def test_no_worker_claims_once_all_together_hold_what_the_queue_may(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    assert (one.limit(), other.limit()) == (1, 1), "nothing is known of the payloads yet"
    one.add(400)
    assert other.limit() == 1
    other.add(600)
    assert (one.limit(), other.limit()) == (0, 0)
    one.remove(400)
    assert (one.limit(), other.limit()) == (1, 1)


def test_the_ceiling_of_the_host_counts_every_queue_and_that_of_a_queue_its_own(ledger):
    mail = Worker(ledger, queue=1, of_queue=1000, of_host=1500)
    video = Worker(ledger, queue=2, of_host=1500)
    video.add(1400)
    assert mail.limit() == 1
    mail.add(100)
    assert (mail.limit(), video.limit()) == (0, 0)
    video.remove(1400)
    mail.add(900)
    assert (mail.limit(), video.limit() > 0) == (0, True)


def test_a_payload_starts_only_beside_what_leaves_it_room_and_one_beyond_the_ceiling_alone(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    one.start(600)
    assert other.admits(400)
    assert not other.admits(401)
    assert not other.admits(5000)
    assert other.beyond(5000) == 1000
    one.end(600)
    assert other.admits(5000)


def test_whoever_gives_bytes_up_says_so_only_while_another_waits(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    one.add(1000)
    one.start(1000)
    one.end(1000)
    assert one.said == []
    assert other.limit() == 0
    assert ledger.waiting() == [other.place.row]
    one.remove(1000)
    assert one.said == [BytesFreed()]
    assert other.limit() == 1
    assert ledger.waiting() == []
    one.add(1)
    one.remove(1)
    assert one.said == [BytesFreed()]


def test_one_that_could_claim_but_not_start_waits_too(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    one.add(600)
    one.start(600)
    other.add(500)
    assert not other.admits(500)
    one.end(600)
    assert one.said == [BytesFreed()]
    assert other.admits(500)
    one.remove(600)
    assert other.limit() == 1
    assert ledger.waiting() == []


def test_one_whose_task_is_lost_while_it_waits_is_told_once_and_not_for_every_task_of_the_others(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    one.add(600)
    one.start(600)
    other.add(500)
    assert not other.admits(500)
    other.remove(500)
    assert ledger.waiting() == [other.place.row], "it asks for nothing any more, so nothing has changed its mind"
    other.told()
    assert ledger.waiting() == []
    one.end(600)
    one.remove(600)
    assert one.said == []


def test_one_that_is_refused_again_after_it_was_told_waits_again(ledger):
    one, other = (Worker(ledger, of_queue=1000) for _ in range(2))
    one.add(1000)
    one.start(1000)
    other.add(500)
    assert (other.limit(), other.admits(500)) == (0, False)
    other.told()
    assert ledger.waiting() == []
    assert not other.admits(500)
    assert ledger.waiting() == [other.place.row]


@pytest.mark.parametrize(("of_host", "said"), [(None, []), (1000, [BytesFreed()])])
def test_bytes_of_one_queue_are_news_to_another_only_under_a_ceiling_of_the_host(ledger, of_host, said):
    mail = Worker(ledger, queue=1, of_queue=1000, of_host=of_host)
    video = Worker(ledger, queue=2, of_queue=500, of_host=of_host)
    mail.add(400)
    video.add(600)
    assert video.limit() == 0
    mail.remove(400)
    assert mail.said == said


class Seat:
    """What the ledger's keeper needs of a worker's seat."""

    def __init__(self, payloads, queue="default", *, bound_by_host=False):
        self.ledger = payloads.ledger
        self.place = payloads.enter(queue)
        self.bound_by_host = bound_by_host
        self.waited_when_told = []

    def say(self, message):
        assert message == BytesFreed()
        self.waited_when_told.append(self.place.row in self.ledger.waiting())


def test_the_supervisor_tells_each_that_waits_once_until_it_says_so_again():
    seats = []
    payloads = Payloads(lambda: seats)
    seats += [Seat(payloads) for _ in range(2)]
    patient, busy = seats
    payloads.ledger.wait(patient.place.row, waits=True)
    payloads.freed(busy.place)
    payloads.freed(busy.place)
    assert patient.waited_when_told == [False], "cleared before it is told, or a refusal between would be lost"
    payloads.ledger.wait(patient.place.row, waits=True)
    payloads.freed(busy.place)
    assert (len(patient.waited_when_told), busy.waited_when_told) == (2, [])


def test_the_supervisor_tells_of_one_queues_bytes_another_only_where_the_host_has_a_ceiling():
    seats = []
    payloads = Payloads(lambda: seats)
    seats += [Seat(payloads), Seat(payloads, "mail"), Seat(payloads, "video", bound_by_host=True), Seat(payloads)]
    for seat in seats[:3]:
        payloads.ledger.wait(seat.place.row, waits=True)
    payloads.freed(seats[3].place)
    assert [len(seat.waited_when_told) for seat in seats] == [1, 0, 1, 0]
    assert payloads.ledger.waiting() == [seats[1].place.row], "nothing was said to it: it waits on"
    payloads.leave(seats[1].place._replace(row=seats[3].place.row))
    assert len(seats[1].waited_when_told) == 1


def test_without_a_ceiling_nothing_is_bounded_and_nobody_waits(ledger):
    one = Worker(ledger)
    one.add(10**9)
    one.start(10**9)
    assert one.limit() is None
    assert one.admits(10**9)
    assert ledger.waiting() == []
    assert ledger.held() == 10**9
