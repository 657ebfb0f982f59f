"""HUP: new code and configuration, one worker at a time, and never a broken one."""

from __future__ import annotations

import os
import signal

import pytest

pytestmark = pytest.mark.sqlite

FLEET = """
app = "shop:registry"
lease = "5s"
drain_timeout = "5s"
boot_timeout = "5s"
[queues.default]
processes = 2
concurrency = 4
"""

SHOP = """
import gates
import cairnq
from cairnq import Registry

registry = Registry()
for handler in gates.registry.handlers.values():
    registry.register(handler.name, handler.fn)

@registry.task
async def version(ctx):
    return {version!r}
"""


class Shop:
    """An application that is edited while it runs."""

    def __init__(self, folder):
        self.path = folder / "shop.py"

    def edit(self, text):
        """A pyc is told from its source by seconds and size alone; a deployment replaces files more slowly."""
        self.path.write_text(text)
        for cached in self.path.parent.glob("__pycache__/shop.*"):
            cached.unlink()

    def release(self, version):
        self.edit(SHOP.format(version=version))


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    shop.release("one")
    return shop


async def test_a_reload_runs_the_new_code_and_the_new_configuration(runs, client, shop):
    run = await runs.start(FLEET)
    await run.ready()
    await run.events("worker.ready", 2)
    assert await client.call("version") == "one"
    shop.release("two")
    run.config.write_text(FLEET.replace("processes = 2", "processes = 3") + "[queues.other]\n")
    run.send(signal.SIGHUP)
    await run.event("reload.finished", generation=2)
    assert await client.call("version") == "two"
    assert await client.call("version", queue="other") == "two"
    places = [(event["queue"], event["slot"]) for event in await run.events("worker.ready", 4)]
    assert sorted(places) == [("default", 0), ("default", 1), ("default", 2), ("other", 0)]
    assert run.count("worker.died") == 0
    assert await run.stop() == 0


async def test_a_second_reload_replaces_the_workers_of_the_first(runs, client, shop):
    run = await runs.start(FLEET)
    await run.ready()
    for generation, version in ((2, "two"), (3, "three")):
        shop.release(version)
        run.send(signal.SIGHUP)
        await run.event("reload.finished", generation=generation)
        assert await client.call("version") == version
    assert await run.stop() == 0


async def test_each_new_worker_is_ready_before_the_old_one_drains(runs, client, gate, shop):
    run = await runs.start(FLEET)
    await run.ready()
    await run.events("worker.ready", 2)
    old = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGHUP)
    first = await run.event("worker.ready")
    assert (await client.wait((await client.submit("version")).id)).succeeded
    arrival.let_go()
    assert (await client.wait(old.id)).attempt == 1
    await run.event("reload.finished")
    story = [
        (event["event"], event["slot"])
        for event in run.heard[run.heard.index(first) :]
        if event["event"] in ("worker.ready", "worker.exited")
    ]
    assert story == [("worker.ready", 0), ("worker.exited", 0), ("worker.ready", 1), ("worker.exited", 1)]
    assert await run.stop() == 0


async def test_a_queue_that_left_the_configuration_leaves_the_fleet(runs, client, shop):
    run = await runs.start(FLEET + "[queues.other]\n")
    await run.ready()
    run.config.write_text(FLEET)
    run.send(signal.SIGHUP)
    await run.event("worker.exited", queue="other")
    await run.event("reload.finished")
    assert await client.call("version") == "one"
    assert await run.stop() == 0


@pytest.mark.parametrize(
    ("code", "config", "says"),
    [
        ("def broken(:", FLEET, "SyntaxError"),
        ("raise RuntimeError('no license')", FLEET, "no license"),
        ("registry = 3", FLEET, "not a cairnq.Registry"),
        ("import os; os.kill(os.getpid(), 9)", FLEET, "SIGKILL"),
        (SHOP.format(version="two"), FLEET + "[queues.x]\nhandlers = ['nobody']", "'nobody', which is not registered"),
        (SHOP.format(version="two"), FLEET + "surprise = 1", "queues.default.surprise is not a key"),
        (SHOP.format(version="two"), "app = [", "is not TOML"),
        (SHOP.format(version="two"), "schema = 'elsewhere'" + FLEET, "schema"),
    ],
)
async def test_what_is_broken_keeps_the_old_fleet_and_says_why(runs, client, shop, code, config, says):
    run = await runs.start(FLEET)
    await run.ready()
    shop.edit(code)
    run.config.write_text(config)
    run.send(signal.SIGHUP)
    assert says in (await run.event("reload.failed"))["reason"]
    assert await client.call("version") == "one"
    shop.release("two")
    run.config.write_text(FLEET)
    run.send(signal.SIGHUP)
    await run.event("reload.finished")
    assert await client.call("version") == "two"
    assert await run.stop() == 0


async def test_an_import_that_hangs_is_given_up_and_term_does_not_wait_for_it(runs, client, shop, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run = await runs.start(FLEET)
    await run.ready()
    shop.edit(f"open({str(fifo)!r}).read()")
    run.send(signal.SIGHUP)
    await run.event("reload.started")
    run.send(signal.SIGHUP)
    await run.event("signal.ignored", signal="SIGHUP")
    assert await client.call("version") == "one"
    assert await run.stop() == 0


async def test_a_resource_is_never_held_by_two_generations(runs, client, shop):
    shop.edit(
        "import cairnq\nregistry = cairnq.Registry(resources={'gpu': 1})\n"
        "@registry.task(resource='gpu')\nasync def train(ctx): return 1\n"
    )
    run = await runs.start('app = "shop:registry"\ndrain_timeout = "5s"\n')
    await run.ready()
    await run.event("worker.ready")
    run.send(signal.SIGHUP)
    await run.event("reload.finished")
    story = [event["event"] for event in run.heard if event["event"] in ("worker.ready", "worker.exited")]
    assert story == ["worker.ready", "worker.exited", "worker.ready"]
    assert await client.call("train") == 1
    assert await run.stop() == 0
