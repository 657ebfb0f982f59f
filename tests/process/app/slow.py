"""An application whose import takes until the test lets it go on: a FIFO named in the environment ends."""

import os
import pathlib

import cairnq

registry = cairnq.Registry()


@registry.task
async def echo(ctx, payload):
    return payload


pathlib.Path(os.environ["SLOW_IMPORT"]).read_text()
