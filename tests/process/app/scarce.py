"""An application with a resource that only one call may hold."""

import cairnq

registry = cairnq.Registry(resources={"gpu": 1})


@registry.task(resource="gpu")
async def train(ctx, payload):
    return payload
