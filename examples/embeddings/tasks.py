"""Texts come one by one, the model takes them in batches, and no two processes of the host call it at once."""

from __future__ import annotations

import os
import time
from typing import TypedDict

from model import the_model

import cairnq


class Embedding(TypedDict):
    vector: list[float]
    batch: int
    process: int
    called: float
    returned: float


EMBED = cairnq.TaskDef[str, Embedding]("embed")

registry = cairnq.Registry(resources={"model": 1})


@registry.task(EMBED, batch=32, resource="model")
def embed(contexts: list[cairnq.BlockingContext]) -> dict[str, Embedding]:
    """One call for up to 32 tasks. What it returns is told apart by their ids; each is settled by itself."""
    called = time.monotonic()
    vectors = the_model().embed([ctx.payload for ctx in contexts])
    returned = time.monotonic()
    return {
        ctx.task_id: {
            "vector": vector,
            "batch": len(contexts),
            "process": os.getpid(),
            "called": called,
            "returned": returned,
        }
        for ctx, vector in zip(contexts, vectors, strict=True)
    }
