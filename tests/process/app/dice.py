"""An application whose import draws random numbers, so that the state of every generator stands before the fork."""

from __future__ import annotations

import os
import random

import numpy as np
from gates import gated

import cairnq

registry = cairnq.Registry()

random.seed(7)
np.random.seed(7)  # noqa: NPY002 - the global state is what this is about
OWN = [np.random.default_rng(7)]


def reseed() -> None:
    OWN[0] = np.random.default_rng()


os.register_at_fork(after_in_child=reseed)


@registry.task
async def throw(ctx: cairnq.TaskContext, gate: str) -> list[float]:
    await gated(ctx, gate)
    return [random.random(), np.random.random(), OWN[0].random()]  # noqa: NPY002
