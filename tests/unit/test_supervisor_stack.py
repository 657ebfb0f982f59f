"""Dumps of stacks, made readable."""

from __future__ import annotations

from cairnq_supervisor.pure.stack import guilty, shortened

DUMP = """\
Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get

Current thread 0x00007f02 (most recent call first):
  File "/srv/shop/images.py", line 12 in _decode
  File "/srv/shop/tasks.py", line 40 in resize
  File "/srv/venv/cairnq/run/executor.py", line 201 in _perform
  File "/usr/lib/python3.11/asyncio/events.py", line 80 in _run
  File "/srv/venv/cairnq_supervisor/cli.py", line 50 in main

Thread 0x00007f03 (most recent call first):
  File "/srv/shop/tasks.py", line 70 in report
  File "/srv/venv/cairnq/run/thread_calls.py", line 68 in _perform
  File "/usr/lib/python3.11/threading.py", line 982 in run
"""


def test_what_is_below_the_engines_call_is_left_out():
    lines = shortened(DUMP).splitlines()
    assert [line.rpartition(" in ")[2] for line in lines if line.startswith("  File")] == [
        *("wait", "get"),
        *("_decode", "resize", "_perform"),
        *("report", "_perform"),
    ]
    assert sum(line.endswith("(most recent call first):") for line in lines) == 3


def test_the_handler_that_blocks_is_the_engines_callee():
    assert guilty(DUMP) == "resize"
    assert guilty("") is None
    assert guilty(DUMP[: DUMP.index("Current")]) is None
