"""Claims that go on where the one before ended pass nothing of a higher priority by, and leave nothing behind."""

from __future__ import annotations

import pytest

from cairnq import PostgresStore, Settlement
from cairnq.pure import onward
from cairnq.pure.models import ClaimedTask, Held
from tests.support.tasks import LEASE_MS, ME

NAMES = [None, ("x",)]
FEW = onward.LEAST


@pytest.fixture(autouse=True)
def no_full_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes."""
    monkeypatch.setattr(onward, "FULL_LOOK_S", 3600.0)


async def submitted(store: PostgresStore, count: int, **options: object) -> list[str]:
    tasks = await store.submit_many([{"name": "x", **options} for _ in range(count)])
    return [task.id for task in tasks]


async def claim(store: PostgresStore, limit: int, names: tuple[str, ...] | None = ("x",)) -> list[ClaimedTask]:
    return await store.claim_many(["default"], ME, LEASE_MS, limit, names)


def ids_of(found: list[ClaimedTask]) -> list[str]:
    return [item.task.id for item in found]


async def release(store: PostgresStore, ids: list[str]) -> None:
    assert await store.release_many(ME, [Held(task_id, 1) for task_id in ids]) == ["queued"] * len(ids)


@pytest.mark.parametrize("names", NAMES)
async def test_what_came_back_is_found_by_the_claim_that_else_came_back_short(
    store: PostgresStore, names: tuple[str, ...] | None
) -> None:
    ids = await submitted(store, 3 * FEW)
    assert ids_of(await claim(store, FEW, names)) == ids[:FEW]
    await release(store, ids[:5])
    assert ids_of(await claim(store, FEW, names)) == ids[FEW : 2 * FEW], "it goes on"
    assert ids_of(await claim(store, 2 * FEW, names)) == ids[:5] + ids[2 * FEW :], "in order, each once"
    assert await claim(store, FEW, names) == []


@pytest.mark.parametrize("names", NAMES)
async def test_a_higher_priority_comes_first(store: PostgresStore, names: tuple[str, ...] | None) -> None:
    ids = await submitted(store, 3 * FEW)
    assert ids_of(await claim(store, FEW, names)) == ids[:FEW]
    high = await submitted(store, 2, priority=5)
    assert ids_of(await claim(store, FEW, names)) == high + ids[FEW : 2 * FEW - 2]


async def test_a_lower_priority_comes_after(store: PostgresStore) -> None:
    low = await submitted(store, 3, priority=-1)
    ids = await submitted(store, 2 * FEW)
    assert ids_of(await claim(store, FEW)) == ids[:FEW]
    assert ids_of(await claim(store, FEW + 2)) == ids[FEW:] + low[:2]


async def test_after_a_while_it_looks_from_the_beginning(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await submitted(store, 2 * FEW)
    await claim(store, FEW)
    await release(store, ids[:5])
    monkeypatch.setattr(onward, "FULL_LOOK_S", 0.0)
    assert ids_of(await claim(store, FEW)) == ids[:5] + ids[FEW : 2 * FEW - 5]


async def test_a_claim_that_takes_settlements_along_goes_on_too(store: PostgresStore) -> None:
    ids = await submitted(store, 3 * FEW)
    assert ids_of(await claim(store, FEW)) == ids[:FEW]
    await release(store, ids[:5])

    async def exchange(settled: list[str], limit: int) -> list[str]:
        settlements = [Settlement.complete(task_id, 1, None) for task_id in settled]
        done = await store.settle_and_claim(ME, settlements, ["default"], LEASE_MS, limit, ("x",))
        assert done is not None
        assert done[0] == ["succeeded"] * len(settled)
        return ids_of(done[1])

    assert await exchange(ids[5:10], FEW) == ids[FEW : 2 * FEW]
    assert await exchange(ids[10:FEW], 2 * FEW) == ids[:5] + ids[2 * FEW :]
