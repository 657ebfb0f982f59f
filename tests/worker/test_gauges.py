"""What a worker shows of itself in its lease table: calls in flight, whether it claims, names without room."""

from __future__ import annotations

from cairnq import CairnQ, Registry
from tests.support.gates import Gate, until
from tests.support.rigs import MakeRig


async def test_the_gauges_say_what_is_in_flight(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    registry.register("bad", lambda _ctx: 1 / 0)
    async with make_rig(registry, concurrency=3) as rig:
        task = await client.submit("held", "12345678")
        await client.wait((await client.submit("bad", max_attempts=1)).id)
        await gate.entered()
        table = rig.table
        await until(lambda: len(table.entries()) == 1, rig.engine._changed)  # "bad" has ended in the database first
        assert (table.concurrency, table.in_flight_calls, table.in_flight_bytes) == (3, 1, 10)
        gate.open()
        await client.wait(task.id)
        await until(lambda: not table.entries(), rig.engine._changed)
        assert (table.in_flight_calls, table.in_flight_bytes) == (0, 0)
        assert (table.claimed, table.succeeded, table.failed, table.released) == (2, 1, 1, 0)
        assert table.last_progress > 0


async def test_a_gauge_says_whether_the_worker_claims(make_rig: MakeRig) -> None:
    async with make_rig(Registry()) as rig:
        await until(lambda: bool(rig.table.is_claiming), rig.engine._changed)
        rig.engine.quiesce()
        assert not rig.table.is_claiming
        rig.engine.resume()
        assert rig.table.is_claiming
    assert not rig.table.is_claiming


async def test_the_gauges_say_which_names_have_no_room_though_the_worker_has(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    for name, concurrency in {"single": 1, "pair": 2, "any": None}.items():
        registry.register(name, gate, concurrency=concurrency)
    async with make_rig(registry, concurrency=9) as rig:
        tasks = []
        for name, shut in [("any", 0), ("pair", 0), ("single", 1), ("pair", 2)]:
            tasks.append(await client.submit(name))
            await gate.entered()
            assert rig.table.shut == shut
        gate.open()
        for task in tasks:
            await client.wait(task.id)
        await until(lambda: not rig.table.entries(), rig.engine._changed)
        assert rig.table.shut == 0
