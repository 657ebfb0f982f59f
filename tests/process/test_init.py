"""What `cairnq init` writes, run as it is."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure import starter


@pytest.mark.sqlite
async def test_the_starter_application_runs(runs, client, tmp_path):
    (tmp_path / "tasks.py").write_text(starter.APPLICATION)
    (tmp_path / "cairnq.toml").write_text(starter.CONFIGURATION)
    run = await runs.start(tmp_path / "cairnq.toml")
    await run.ready()
    assert await client.call("greet", {"name": "world"}) == {"text": "hello, world"}
    assert await client.call("count_words", {"text": "one two three"}) == 3
    assert await run.stop() == 0
