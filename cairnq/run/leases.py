"""The lease table: what a worker holds, in memory that others can read while it hangs and after it died.

One table lies over any writable buffer: a bytearray in a standalone worker, the mmap of a memfd under the
supervisor. Two sides share it and each field has one writer. The **holder** (the worker) writes which attempts it
holds and its gauges; the **keeper** (whoever beats) writes how far each lease reaches and what became of it.
No locks: every field is one aligned 8-byte store, a slot's identity is guarded by a sequence number, and what the
keeper wrote counts only for the sequence number (the *generation*) that it wrote it for.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from cairnq.run.gauges import Gauges
from cairnq.run.trust import trust_end

MAX_ID_BYTES: Final = 63

_WORD: Final = 8
_HEADER_WORDS: Final = 32
_SLOT_WORDS: Final = 24
# Words of a slot. The holder's: identity, lease and state; then 8 words of id; then the keeper's.
_SEQUENCE, _STATE, _ATTEMPT, _LEASE, _SENT, _STARTED, _HELD_UNTIL = range(7)
_ID: Final = 8
_ENTRY: Final = struct.Struct(f"@qqdddd8x{MAX_ID_BYTES + 1}p")  # from _STATE on; the id with its length before it
_FOR_GENERATION, _RENEWED_UNTIL, _CANCEL, _LOST = range(16, 20)
# Words of the header, before the gauges.
_CAPACITY, _HIGH_WATER = range(2)
_TORN_READS: Final = 8


class LeaseState(IntEnum):
    """What the holder does with a slot."""

    FREE = 0
    CLAIMED = 1  # held, its handler has not started
    STARTED = 2
    ENDED = 3  # the outcome is known and on its way to the database


@dataclass(frozen=True, slots=True)
class Entry:
    """One held attempt, as the keeper or an heir of the worker reads it. Instants are boottime seconds."""

    slot: int
    generation: int
    task_id: str
    attempt: int
    state: LeaseState
    lease_s: float
    sent: float
    started_at: float
    trusted_until: float


class LeaseTable(Gauges):
    """A table of `capacity` slots over `buffer`. Opened once on the holder's side, as often as needed elsewhere."""

    def __init__(self, buffer: bytearray | memoryview, capacity: int) -> None:
        """`buffer` is zeroed by whoever makes it and holds at least `size_for(capacity)` bytes."""
        if capacity < 1:
            raise ValueError(f"a lease table holds at least one lease, not {capacity}")
        view, size = memoryview(buffer).cast("B"), self.size_for(capacity)
        if view.readonly or len(view) < size:
            raise ValueError(f"a table of {capacity} leases needs a writable buffer of {size} bytes, not {len(view)}")
        self._bytes = view[:size]
        self._ints = self._bytes.cast("q")
        self._floats = self._bytes.cast("d")
        if self._ints[_CAPACITY] not in (0, capacity):
            raise ValueError(f"the buffer holds a table of {self._ints[_CAPACITY]} leases, not of {capacity}")
        self._ints[_CAPACITY] = capacity
        self.capacity = capacity
        self._free: list[int] | None = None

    @classmethod
    def private(cls, capacity: int) -> LeaseTable:
        """A table that only the threads of this process see."""
        return cls(bytearray(cls.size_for(capacity)), capacity)

    @staticmethod
    def size_for(capacity: int) -> int:
        """Bytes of a table of `capacity` leases."""
        return _WORD * (_HEADER_WORDS + capacity * _SLOT_WORDS)

    @staticmethod
    def fits(task_id: str) -> bool:
        """Whether a slot has room for this id. All that were made by the protocol's rules fit."""
        return len(task_id.encode()) <= MAX_ID_BYTES

    def close(self) -> None:
        """Let go of the buffer, so that an mmap can be closed. The table is of no further use."""
        for view in (self._floats, self._ints, self._bytes):
            view.release()

    @property
    def held(self) -> int:
        """How many attempts are held, ended but unsettled ones included. Cheap, and for anybody."""
        end = self._base(self._ints[_HIGH_WATER])
        states = self._ints[_HEADER_WORDS + _STATE : end : _SLOT_WORDS].tolist()
        return len(states) - states.count(LeaseState.FREE)

    @property
    def is_kept(self) -> bool:
        """Whether somebody beats, as far as is known: no lease has run out since the latest beat."""
        return self.ran_out_at <= self.beaten_at

    # The holder's side.

    @property
    def free_slots(self) -> int:
        return len(self._free_list())

    def hold(self, task_id: str, attempt: int, *, lease_s: float, sent: float) -> int:
        """Enter a claimed attempt, before its handler starts; returns its slot.

        `sent` was read on the clock before the claim went to the driver. Raises `ValueError` for an id that does not
        fit a slot, `IndexError` when the table is full: the claimer never asks for more than `free_slots`.
        """
        identity = task_id.encode()
        if len(identity) > MAX_ID_BYTES:
            raise ValueError(
                f"a task id of {len(identity)} bytes; a lease table holds at most {MAX_ID_BYTES}: {task_id!r}"
            )
        slot = self._free_list().pop()
        ints, base = self._ints, _HEADER_WORDS + slot * _SLOT_WORDS
        generation = ints[base + _SEQUENCE]
        ints[base + _SEQUENCE] = generation + 1  # odd: readers wait
        state, until = LeaseState.CLAIMED, trust_end(sent, lease_s)
        _ENTRY.pack_into(self._bytes, (base + _STATE) * _WORD, state, attempt, lease_s, sent, 0.0, until, identity)
        ints[base + _SEQUENCE] = generation + 2
        if slot >= ints[_HIGH_WATER]:
            ints[_HIGH_WATER] = slot + 1
        return slot

    def start(self, slot: int, now: float) -> None:
        """The handler starts; from here on the attempt is spent if the worker dies."""
        base = _HEADER_WORDS + slot * _SLOT_WORDS
        self._floats[base + _STARTED] = now
        self._ints[base + _STATE] = LeaseState.STARTED

    def end(self, slot: int) -> None:
        """The outcome is known: an absent row is no longer a lost lease."""
        self._ints[_HEADER_WORDS + slot * _SLOT_WORDS + _STATE] = LeaseState.ENDED

    def reopen(self, slot: int) -> None:
        """The settlement did not happen and the handler goes on (a `succeed_in` that was rolled back)."""
        self._ints[self._base(slot) + _STATE] = LeaseState.STARTED

    def extend(self, slot: int, *, sent: float) -> None:
        """The holder itself renewed the lease, by a statement that went out at `sent`."""
        base = self._base(slot)
        reach = trust_end(sent, self._floats[base + _LEASE])
        if reach > self._floats[base + _HELD_UNTIL]:
            self._floats[base + _SENT] = sent
            self._floats[base + _HELD_UNTIL] = reach

    def free(self, slot: int) -> None:
        """The attempt is no longer held. What the keeper still writes for it has no effect."""
        base = _HEADER_WORDS + slot * _SLOT_WORDS
        self._ints[base + _STATE] = LeaseState.FREE
        self._ints[base + _SEQUENCE] += 2
        self._free_list().append(slot)

    def run_out(self, now: float) -> None:
        """A lease was not renewed in time."""
        self.ran_out_at = now

    def trusted_until(self, slot: int) -> float:
        """The instant past which the holder must not believe in the lease; minus infinity once it is lost."""
        base = _HEADER_WORDS + slot * _SLOT_WORDS
        reach = self._floats[base + _HELD_UNTIL]
        if self._ints[base + _FOR_GENERATION] != self._ints[base + _SEQUENCE]:
            return reach
        if self._ints[base + _LOST]:
            return float("-inf")
        return max(reach, self._floats[base + _RENEWED_UNTIL])

    def cancel_requested(self, slot: int) -> bool:
        return bool(self._verdict(slot, _CANCEL))

    def lost(self, slot: int) -> bool:
        """The keeper was told that the lease is gone. (The trust window may end without anybody being told.)"""
        return bool(self._verdict(slot, _LOST))

    # The keeper's side.

    def entries(self) -> list[Entry]:
        """Every held attempt, in slot order. A slot whose writing a death cut short is left out: it had not started."""
        found = (self.entry(slot) for slot in range(self._ints[_HIGH_WATER]))
        return [entry for entry in found if entry is not None]

    def entry(self, slot: int) -> Entry | None:
        """The attempt in `slot`, None where there is none."""
        base = self._base(slot)
        for _ in range(_TORN_READS):
            generation = self._ints[base + _SEQUENCE]
            entry = self._read(slot, base, generation)
            if generation % 2 == 0 and self._ints[base + _SEQUENCE] == generation:
                return entry
        return None

    def renew(self, slot: int, generation: int, *, sent: float, cancel_requested: bool) -> None:
        """A beat that went out at `sent` renewed the lease. No effect if the slot moved on from `generation`."""
        base = self._base(slot)
        if self._ints[base + _SEQUENCE] != generation:
            return
        reach = trust_end(sent, self._floats[base + _LEASE])
        if self._ints[base + _FOR_GENERATION] == generation:
            reach = max(reach, self._floats[base + _RENEWED_UNTIL])
            cancel_requested = cancel_requested or bool(self._ints[base + _CANCEL])
            lost = self._ints[base + _LOST]
        else:
            lost = 0
        self._write_verdict(base, generation, reach, cancel_requested, lost)

    def lose(self, slot: int, generation: int) -> None:
        """The database says that the lease is gone, for good: a later renewal does not bring it back."""
        base = self._base(slot)
        if self._ints[base + _SEQUENCE] == generation:
            self._write_verdict(base, generation, 0.0, self.cancel_requested(slot), 1)

    def _write_verdict(self, base: int, generation: int, reach: float, cancel: bool, lost: int) -> None:
        """The generation goes last: a verdict that is being written is one for an earlier generation."""
        self._floats[base + _RENEWED_UNTIL] = reach
        self._ints[base + _CANCEL] = int(cancel)
        self._ints[base + _LOST] = lost
        self._ints[base + _FOR_GENERATION] = generation

    def _verdict(self, slot: int, word: int) -> int:
        base = self._base(slot)
        if self._ints[base + _FOR_GENERATION] != self._ints[base + _SEQUENCE]:
            return 0
        return self._ints[base + word]

    def _read(self, slot: int, base: int, generation: int) -> Entry | None:
        state = self._ints[base + _STATE]
        if state == LeaseState.FREE:
            return None
        start = (base + _ID) * _WORD
        length = self._bytes[start]
        return Entry(
            slot=slot,
            generation=generation,
            task_id=bytes(self._bytes[start + 1 : start + 1 + length]).decode(errors="replace"),
            attempt=self._ints[base + _ATTEMPT],
            state=LeaseState(state),
            lease_s=self._floats[base + _LEASE],
            sent=self._floats[base + _SENT],
            started_at=self._floats[base + _STARTED],
            trusted_until=self.trusted_until(slot),
        )

    def _free_list(self) -> list[int]:
        """The holder's own, made when it is first needed. Low slots go first, so that a scan of the table is short."""
        if self._free is None:
            self._free = list(range(self.capacity - 1, -1, -1))
        return self._free

    @staticmethod
    def _base(slot: int) -> int:
        return _HEADER_WORDS + slot * _SLOT_WORDS
