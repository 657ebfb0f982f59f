"""Every error says what happened and carries it in attributes; one root catches all."""

from __future__ import annotations

import inspect
import pickle

import pytest

import cairnq
from cairnq.pure import envelope, errors
from cairnq.pure.errors import CairnQError, TaskError, TaskFailed

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if found.__module__ == errors.__name__]

SAMPLES: list[tuple[CairnQError, str, dict[str, object]]] = [
    (errors.AlreadyExists("k"), "'k'", {"key": "k"}),
    (errors.QueueFull("q", 5, 250), "'q' .*5 .*250 ms", {"queue": "q", "max_depth": 5, "waited_ms": 250}),
    (errors.LostLease("task_1"), "task_1", {"task_id": "task_1"}),
    (errors.TaskCanceled("task_1"), "task_1", {"task_id": "task_1"}),
    (errors.EventLoopBlocked(5, 6, 7), "5 ms .*6 ms.*7 ms", {"late_ms": 5, "interval_ms": 6, "lease_ms": 7}),
    (errors.ProtocolVersionMismatch("2.1", 1), "'2.1'.* 1", {"found": "2.1", "expected": 1}),
    (
        errors.TaskTimeout("why", task_id="task_1", task=None, key="k"),
        "why",
        {"task_id": "task_1", "task": None, "key": "k"},
    ),
    (
        TaskError("m", code="c", retryable=True, type="T", details=[1]),
        "m",
        {"message": "m", "code": "c", "retryable": True, "type": "T", "details": [1]},
    ),
]


@pytest.mark.parametrize("error_class", CLASSES)
def test_one_root_catches_all_and_all_are_exported(error_class: type[CairnQError]) -> None:
    assert issubclass(error_class, CairnQError)
    assert error_class.__doc__
    assert getattr(cairnq, error_class.__name__) is error_class


@pytest.mark.parametrize(("error", "says", "attributes"), SAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_carries_what_it_says(error: CairnQError, says: str, attributes: dict[str, object]) -> None:
    with pytest.raises(type(error), match=says):
        raise error
    assert {name: getattr(error, name) for name in attributes} == attributes


def test_a_failure_unpacks_its_envelope() -> None:
    failed = TaskFailed(envelope.envelope("Boom", "handler_error", "it broke", retryable=True, details={"a": 1}))
    assert (failed.type, failed.code, failed.message) == ("Boom", "handler_error", "it broke")
    assert (failed.retryable, failed.details) == (True, {"a": 1})
    assert str(failed) == "handler_error: it broke"


@pytest.mark.parametrize("odd", [None, "just text", ["a", "list"], {}, {"message": None}, 7])
def test_a_failure_takes_whatever_another_sdk_wrote(odd: object) -> None:
    failed = TaskFailed(odd)
    assert failed.error == odd
    assert failed.code is None
    assert str(failed)


def test_a_handlers_error_becomes_its_envelope() -> None:
    raised = TaskError("no money", code="broke", type="Broke", details={"left": 0})
    assert envelope.of_exception(raised) == {
        "type": "Broke",
        "code": "broke",
        "message": "no money",
        "retryable": False,
        "details": {"left": 0},
    }
    assert envelope.of_exception(KeyError("k"))["type"] == "KeyError"
    assert envelope.of_exception(KeyError("k"))["retryable"] is True


ENVELOPES = {
    "handler_timeout": (envelope.handler_timeout(5), "HandlerTimeout", True),
    "unserializable_result": (envelope.unserializable_result("r"), "SerializationError", False),
    "no_handler": (envelope.no_handler("n"), "NoHandler", False),
    "lease_expired": (envelope.lease_expired(), "LeaseExpired", False),
    "worker_crashed": (envelope.worker_crashed("m", {"signal": 9}), "WorkerCrashed", True),
    "interrupted": (envelope.interrupted("r"), "Interrupted", False),
}


@pytest.mark.parametrize("code", ENVELOPES)
def test_the_protocols_codes(code: str) -> None:
    made, type_, retryable = ENVELOPES[code]
    assert (made["code"], made["type"], made["retryable"]) == (code, type_, retryable)
    assert set(made) == {"type", "code", "message", "retryable", "details"}


@pytest.mark.parametrize(("error", "says", "attributes"), SAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_crosses_a_process_border(error: CairnQError, says: str, attributes: dict[str, object]) -> None:
    """multiprocessing and concurrent.futures pickle what a call raised."""
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert {name: getattr(copy, name) for name in attributes} == attributes
