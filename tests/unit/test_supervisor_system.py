"""Channels, sinks, shared memory and the reactor, without a supervisor around them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cairnq_supervisor.loop.reactor import WRITE, Reactor
from cairnq_supervisor.pure.keeper_messages import Beat, Lend
from cairnq_supervisor.pure.messages import Event, LeasesChanged, Ready
from cairnq_supervisor.system import channel as channels
from cairnq_supervisor.system import memory
from cairnq_supervisor.system.channel import Channel, ChannelBroken
from cairnq_supervisor.system.journal import Journal
from cairnq_supervisor.system.sink import LineSink


@pytest.fixture
def pair():
    ours, theirs = (Channel(end) for end in channels.pair())
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_arrive_whole_and_in_order(pair):
    ours, theirs = pair
    sent = [Ready(), Event("a", {"text": "x" * 70_000}), Beat(1.5, ("w1", "w2"))]
    for message in sent:
        ours.send(message)
    assert [received.message for received in theirs.receive()] == sent
    assert theirs.receive() == []


def test_a_peer_that_does_not_read_blocks_nobody_and_hears_everything_later(pair):
    ours, theirs = pair
    sent = [Event("a", {"number": number, "text": "x" * 10_000}) for number in range(100)]
    for message in sent:
        ours.send(message)
    assert ours.congested
    heard = []
    while len(heard) < len(sent):
        heard += [received.message for received in theirs.receive()]
        ours.flush()
    assert heard == sent
    assert not ours.congested
    assert ours.waiting == 0


def test_a_replaceable_message_waits_once(pair):
    ours, theirs = pair
    while not ours.congested:
        ours.send(Event("a", {"text": "x" * 10_000}))
    for _ in range(50):
        ours.send(LeasesChanged())
    woken = 0
    while ours.congested or not woken:
        woken += sum(received.message == LeasesChanged() for received in theirs.receive())
        ours.flush()
    assert woken == 1


def test_a_peer_that_never_reads_is_given_up(pair):
    ours, _ = pair
    long = Event("a", {"text": "x" * 50_000})
    while ours.waiting <= (16 << 20) - 60_000:
        ours.send(long)
    with pytest.raises(ChannelBroken, match="unread"):
        ours.send(long), ours.send(long)


def test_a_descriptor_travels_with_its_message_and_the_memory_behind_it_is_shared(pair):
    ours, theirs = pair
    fd = memory.create("test", 4096)
    ours.send(Event("before", {"text": "x" * 70_000}))
    ours.send(Lend("w", 1, 30.0), fd)
    ours.send(Ready())
    before, lent, after = theirs.receive()
    assert (before.fd, after.fd) == (None, None)
    assert lent.fd is not None
    here, there = memory.Mapping(fd).view, memory.Mapping(lent.fd).view
    os.close(fd)
    os.close(lent.fd)
    here[17] = 42
    assert there[17] == 42


def test_the_end_comes_after_what_was_said_before_it(pair):
    ours, theirs = pair
    ours.send(Ready())
    ours.close()
    assert [received.message for received in theirs.receive()] == [Ready()]
    with pytest.raises(ChannelBroken, match="closed"):
        theirs.receive()
    with pytest.raises(ChannelBroken, match="cannot send"):
        theirs.send(Ready())


def test_nonsense_breaks_the_channel():
    ours, theirs = channels.pair()
    channel = Channel(ours)
    theirs.send(b"hello")
    with pytest.raises(ChannelBroken, match="the peer sent"):
        channel.receive()
    channel.close()
    theirs.close()


def test_memory_is_unmapped_when_nobody_looks_at_it_any_more():
    def mapped():
        return Path("/proc/self/maps").read_text().count("cairnq-test-unmap")

    fd = memory.create("cairnq-test-unmap", 8192)
    mapping = memory.Mapping(fd)
    view = mapping.view[10:20]
    os.close(fd)
    del mapping
    assert mapped() == 1
    view[0] = 1
    view.release()
    del view
    assert mapped() == 0


def test_a_sink_never_blocks_keeps_a_megabyte_and_counts_what_it_drops():
    reader, writer = os.pipe()
    sink = LineSink(writer)
    for number in range(3000):
        sink.write(f"{number:<1023}")
    assert sink.congested
    assert sink.dropped > 0
    kept = 3000 - sink.dropped
    received = b""
    while received.count(b"\n") < kept:
        received += os.read(reader, 1 << 20)
        sink.flush()
    lines = received.decode().splitlines()
    assert [int(line) for line in lines] == list(range(kept))
    sink.write("after")
    assert os.read(reader, 100) == b"after\n"
    os.close(reader)
    sink.write("nobody")
    assert sink.gone
    assert not sink.congested
    os.close(writer)


def test_a_reader_of_events_that_was_slow_is_told_how_many_it_missed():
    reader, writer = os.pipe()
    journal = Journal(log="json", events_fd=writer)
    sinks = []
    journal.when_congested(sinks.append)
    for number in range(2000):
        journal.emit("lease.beat", number=number, text="x" * 1000)
    received = b""
    while sinks[0].congested:
        received += os.read(reader, 1 << 20)
        sinks[0].flush()
    journal.emit("lease.beat", number=-1)
    while b'"number": -1' not in received:
        received += os.read(reader, 1 << 20)
    events = [json.loads(line) for line in received.splitlines()]
    heard = [event["number"] for event in events if event["event"] == "lease.beat"]
    missed = next(event["count"] for event in events if event["event"] == "events.dropped")
    assert heard[:-1] == list(range(len(heard) - 1))
    assert len(heard) - 1 + missed == 2000
    os.close(reader)
    os.close(writer)


COUNTING = """
import threading
from cairnq_supervisor.system.spawn import thread_count
for _ in range(300):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert thread_count() == 1
"""


def test_a_log_on_a_disk_that_was_full_goes_on_and_says_how_much_it_missed(tmp_path):
    reader, writer = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer)
    journal = Journal(log="json", events_fd=writer)
    for number in range(5):
        journal.emit("worker.forgotten", number=number)
    with (tmp_path / "events").open("wb") as room:
        os.dup2(room.fileno(), writer)
    journal.emit("worker.forgotten", number=5)
    told = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [(event["event"], event.get("count"), event.get("number")) for event in told] == [
        ("events.dropped", 5, None),
        ("worker.forgotten", None, 5),
    ]
    for fd in (reader, writer, full):
        os.close(fd)


def test_a_thread_that_was_joined_does_not_count_though_the_system_may_not_have_put_it_away_yet():
    subprocess.run([sys.executable, "-c", COUNTING], check=True)


def test_what_somebody_asked_for_is_not_the_latest_event_lest_a_status_quote_the_one_before():
    reader, writer = os.pipe()
    journal = Journal(log="json", events_fd=writer)
    journal.emit("worker.ready", pid=7)
    for _ in range(2):
        journal.emit("supervisor.status", latest=str(journal.latest))
        journal.emit("worker.stacks", stack="...")
    assert journal.latest.name == "worker.ready"
    os.close(reader)
    os.close(writer)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def faults():
    return []


@pytest.fixture
def reactor(clock, faults):
    reactor = Reactor(clock, faults.append)
    yield reactor
    reactor.close()


def test_deadlines_come_in_order_and_cancelled_ones_do_not(reactor, clock):
    seen = []
    for at in (3.0, 1.0, 2.0):
        reactor.call_at(at, lambda at=at: seen.append(at))
    reactor.call_at(1.5, lambda: seen.append("cancelled")).cancel()
    clock.now = 2.0
    reactor.turn()
    assert seen == [1.0, 2.0]
    clock.now = 3.0
    reactor.turn()
    assert seen == [1.0, 2.0, 3.0]


def test_cancelled_deadlines_that_are_far_off_are_not_kept_until_then(reactor, clock):
    heard = []
    for _ in range(1000):
        reactor.call_at(1e9, lambda: heard.append("never")).cancel()
    assert len(reactor._heap) < 100
    for number in range(1000):
        reactor.call_at(1e9, lambda: heard.append("never")).cancel()
        reactor.call_at(float(number), lambda number=number: heard.append(number))
    assert len(reactor._heap) < 2500
    clock.now = 1000.0
    reactor.turn()
    assert heard == list(range(1000))


def test_a_callback_that_raises_is_reported_and_the_others_run(reactor, clock, faults):
    seen = []
    reactor.call_at(0.0, lambda: 1 / 0)
    reactor.call_at(0.0, lambda: seen.append("ran"))
    reactor.turn()
    assert seen == ["ran"]
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


def test_a_callback_that_fails_again_and_again_does_not_spin_the_loop(reactor, clock, faults):
    ours, theirs = socket.socketpair()
    reactor.watch(ours, lambda _events: 1 / 0)
    theirs.send(b"x")
    for _ in range(10):
        reactor.turn()
    assert "not listened to any more" in str(faults[-1])
    heard = len(faults)
    reactor.call_at(clock.now, lambda: None)
    reactor.turn()
    assert len(faults) == heard
    ours.close()
    theirs.close()


def test_a_descriptor_that_was_let_go_in_this_turn_is_not_heard_any_more(reactor):
    pairs = [socket.socketpair() for _ in range(2)]
    seen = []

    def hear(own, other):
        seen.append(own)
        reactor.forget(other)

    (a, a_peer), (b, b_peer) = pairs
    reactor.watch(a, lambda _events: hear(a, b))
    reactor.watch(b, lambda _events: hear(b, a))
    a_peer.send(b"x")
    b_peer.send(b"x")
    reactor.turn()
    assert len(seen) == 1
    for one in (a, a_peer, b, b_peer):
        one.close()


def test_watching_again_replaces_what_is_watched_for(reactor):
    ours, theirs = socket.socketpair()
    seen = []
    reactor.watch(ours, lambda _events: seen.append("read"))
    reactor.watch(ours, lambda _events: seen.append("write"), WRITE)
    reactor.turn()
    assert seen == ["write"]
    reactor.forget(ours)
    reactor.forget(ours)
    ours.close()
    theirs.close()


def test_in_the_journal_every_line_of_an_event_has_its_priority(monkeypatch, capfd):
    status = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
    Journal(log=None, events_fd=None).emit("worker.died", queue="mail", traceback="one\n<0>two")
    first, *more = capfd.readouterr().err.splitlines()
    assert first.startswith("<3>")
    assert more == ["<3>  one", "<3>  <0>two"]
