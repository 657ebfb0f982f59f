"""Messages on the wire: round trips, long ones, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq_supervisor.pure import messages, wire
from cairnq_supervisor.pure.messages import Event
from cairnq_supervisor.pure.wire import MAX_PACKET, Assembler, BadMessage, decode, encode

KINDS = list(wire.KINDS.values())
BY_TYPE = {
    "str": st.text(max_size=50),
    "int": st.integers(-(2**60), 2**60),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "str | None": st.none() | st.text(max_size=9),
    "tuple[str, ...]": st.lists(st.text(max_size=20), max_size=5).map(tuple),
    "dict[str, Any]": st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=9), max_size=4),
}


def instances(kind):
    return st.builds(kind, **{field.name: BY_TYPE[field.type] for field in dataclasses.fields(kind)})


def assembled(packets):
    assembler = Assembler()
    *early, last = [assembler.feed(packet) for packet in packets]
    assert early == [None] * len(early)
    return last


@given(st.sampled_from(KINDS).flatmap(instances))
def test_every_message_comes_back_equal(message):
    assert assembled(encode(message)) == message


@pytest.mark.parametrize("size", [0, MAX_PACKET - 60, MAX_PACKET, 220_000, 1_000_000])
def test_a_long_message_travels_in_packets_below_the_limit(size):
    noise = random.Random(size).randbytes(size // 2).hex()
    message = Event("worker.stacks", {"text": noise})
    packets = encode(message)
    assert all(len(packet) <= MAX_PACKET for packet in packets)
    assert assembled(packets) == message


def test_messages_follow_each_other_on_one_channel():
    assembler = Assembler()
    long = Event("a", {"text": "x" * 100_000})
    heard = [assembler.feed(packet) for message in (long, messages.Ready(), long) for packet in encode(message)]
    assert [message for message in heard if message] == [long, messages.Ready(), long]


def test_a_value_that_json_cannot_hold_becomes_its_text():
    assert assembled(
        encode(
            Event(
                "a",
                {
                    "value": {
                        1,
                    }
                },
            )
        )
    ).fields == {"value": "{1}"}


def body(**document):
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (b"\xff", "not JSON"),
        (b"[]", "kind None"),
        (body(kind="Nonsense"), "kind 'Nonsense'"),
        (body(kind=["Ready"]), "kind"),
        (body(kind="Message"), "kind 'Message'"),
        (body(kind="Ready", more=1), "has the fields"),
        (body(kind="Drain"), "has the fields"),
        (body(kind="Drain", deadline="soon"), "Drain.deadline is 'soon'"),
        (body(kind="Drain", deadline=True), "Drain.deadline"),
        (body(kind="Drained", unended=True), "Drained.unended"),
        (body(kind="Drained", unended=1.5), "Drained.unended"),
        (body(kind="Listening", delivers=1), "Listening.delivers"),
        (body(kind="Beat", ordered_at=1.0, worker_ids=["a", 1]), "Beat.worker_ids"),
        (body(kind="Event", name="a", fields=[]), "Event.fields"),
    ],
)
def test_what_is_not_a_message_is_refused_by_name(wrong, says):
    with pytest.raises(BadMessage, match="^.*" + says.replace(".", r"\.")):
        decode(wrong)


def test_a_packet_of_another_version_is_refused():
    packet = encode(messages.Ready())[0]
    with pytest.raises(BadMessage, match="version"):
        Assembler().feed(packet[:1] + bytes((wire.VERSION + 1,)) + packet[2:])


def test_a_message_without_end_is_refused():
    assembler = Assembler()
    packet = encode(Event("a", {"text": "x" * MAX_PACKET * 2}))[0]
    for _ in range(wire.MAX_MESSAGE // (len(packet) - 3)):
        assembler.feed(packet)
    with pytest.raises(BadMessage, match="more than"):
        assembler.feed(packet)
