"""Workers that were forked from one application do not throw the same dice."""

from __future__ import annotations


async def test_no_generator_of_two_workers_gives_the_same_numbers(runs, client, gate):
    run = await runs.start('app = "dice:registry"\n[queues.default]\nprocesses = 2\nconcurrency = 1\n')
    await run.ready()
    tasks = [await client.submit("throw", gate.path) for _ in range(2)]
    arrivals = await gate.arrivals(2)
    assert arrivals[0].pid != arrivals[1].pid
    for arrival in arrivals:
        arrival.let_go()
    ours, theirs = [(await client.wait(task.id)).result for task in tasks]
    assert len(ours) == 3
    assert all(mine != yours for mine, yours in zip(ours, theirs, strict=True)), (ours, theirs)
    assert await run.stop() == 0
