"""Whether this tree is ready for work, and why not, from the supervisor's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reasons_not_ready(status: Mapping[str, Any]) -> list[str]:
    """Empty: every queue has a ready worker that does not flap, a keeper beats, and nothing drains.

    A database that is away is no reason: it is the same for every pod, and none could do better.
    """
    reasons = []
    state = str(status["supervisor"]["state"])
    if state != "running":
        reasons.append(f"the supervisor is {state}")
    keeper = str(status["keeper"]["state"])
    if keeper != "ready":
        reasons.append(f"the keeper is {keeper}")
    for queue in status["queues"]:
        if queue.get("paused") or not queue["processes"]["want"]:
            continue  # somebody wants it so
        workers = [worker for worker in status["workers"] if worker["queue"] == queue["name"]]
        if any(worker.get("flapping") for worker in workers):
            reasons.append(f"queue {queue['name']}: a worker dies again and again")
        elif queue["processes"]["ready"] < 1:
            states = ", ".join(str(worker["state"]) for worker in workers) or "none configured"
            reasons.append(f"queue {queue['name']}: no worker is ready ({states})")
    return reasons
