"""What `cairnq init` writes: a configuration and an application that run as they are."""

from __future__ import annotations

CONFIGURATION = """\
# cairnq.toml: what `cairnq run` runs. Every key and its default: cairnq.example.toml in the repository.

app = "tasks:registry"       # module:attribute, a cairnq.Registry; this folder is searched first

# The database: a file beside this one. Moving to PostgreSQL is this line; with a password in it, better in the
# environment: CAIRNQ_DSN=postgresql://user:secret@host/name
database = "sqlite:///cairnq.db"

drain_timeout = "25s"        # from SIGTERM on: what still runs then is given back, attempt not spent
# http = "127.0.0.1:9464"    # /livez, /readyz, /metrics

[queues.default]
processes = 2                # or "auto": one for each core that this host grants
concurrency = 10             # handler calls at a time in each process

# A queue of its own for what must not wait behind the rest:
# [queues.mail]
# handlers = ["send_mail"]

# Finished tasks go at this age; without an entry they stay.
[retention]
succeeded = "7d"
canceled = "7d"
"""

APPLICATION = '''\
"""The application: handlers, by name. `cairnq run` imports it and runs them; anybody may submit to them."""

import asyncio

import cairnq

registry = cairnq.Registry()


@registry.task
async def greet(ctx: cairnq.TaskContext, payload: dict) -> dict:
    """cairnq submit greet '{"name": "world"}' --wait"""
    await ctx.progress(0.5, "thinking of a greeting")
    await asyncio.sleep(0.5)
    return {"text": f"hello, {payload['name']}"}


@registry.task
def count_words(ctx, payload: dict) -> int:
    """A plain function runs on a thread: it may block, and compute."""
    return len(payload["text"].split())
'''
