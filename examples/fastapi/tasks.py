"""What takes too long for a request: counting primes, with progress, until somebody does not want to know any more."""

from __future__ import annotations

from typing import TypedDict

import cairnq

STEPS = 50


class Question(TypedDict):
    below: int


class Answer(TypedDict):
    primes: int


COUNT_PRIMES = cairnq.TaskDef[Question, Answer]("count_primes")

registry = cairnq.Registry()


@registry.task(COUNT_PRIMES)
def count_primes(ctx: cairnq.BlockingContext, question: Question) -> Answer:
    """A plain function: it runs on a thread, and blocks nobody."""
    below = question["below"]
    primes = [number for number in range(2, int(below**0.5) + 1) if is_prime(number)]
    found = 0
    for step in range(STEPS):
        if ctx.canceled():
            raise cairnq.TaskError("nobody waits for it any more", code="canceled")
        start, end = (max(2, below * some // STEPS) for some in (step, step + 1))
        found += count_between(start, end, primes)
        ctx.progress((step + 1) / STEPS, f"{found} below {end}")
    return {"primes": found}


def is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def count_between(start: int, end: int, primes: list[int]) -> int:
    """A sieve over one stretch."""
    sieve = bytearray(b"\x01") * (end - start)
    for prime in primes:
        first = max(prime * prime, -(-start // prime) * prime)
        sieve[first - start :: prime] = bytes(len(range(first, end, prime)))
    return sum(sieve)
