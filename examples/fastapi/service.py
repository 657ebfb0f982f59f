"""A service that takes work, answers at once, and tells how far it is.

`DATABASE_URL=sqlite:///cairnq.db uvicorn service:app`
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from tasks import COUNT_PRIMES, Question

import cairnq

QUEUE = "reports"
LOOK_MS = 200
"""How often progress is looked at; the end is told at once."""


class Wanted(BaseModel):
    below: int = Field(ge=10, le=100_000_000)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for the whole process. `max_queue_depth`: rather refuse than pile up."""
    async with cairnq.CairnQ.at(os.environ["DATABASE_URL"], max_queue_depth=1000, max_queue_wait_ms=0) as tasks:
        app.state.tasks = tasks
        yield


def the_client(request: Request) -> cairnq.CairnQ:
    client: cairnq.CairnQ = request.app.state.tasks
    return client


Tasks = Annotated[cairnq.CairnQ, Depends(the_client)]
app = FastAPI(lifespan=lifespan)


@app.post("/reports", status_code=202)
async def submit(wanted: Wanted, tasks: Tasks) -> dict[str, str]:
    """The same question is asked once: whoever asks again while it is worked on gets the same task."""
    try:
        task = await tasks.submit(
            COUNT_PRIMES,
            Question(below=wanted.below),
            queue=QUEUE,
            key=f"primes:{wanted.below}",
            conflict="reuse-succeeded",
        )
    except cairnq.QueueFull as full:
        raise HTTPException(503, "too much to do, try later", headers={"Retry-After": "5"}) from full
    return {"id": task.id, "progress": f"/reports/{task.id}/progress"}


@app.get("/reports/{task_id}")
async def look(task_id: str, tasks: Tasks) -> dict[str, Any]:
    task = await tasks.get(task_id)
    if task is None:
        raise HTTPException(404, "no such report")
    return state_of(task)


@app.delete("/reports/{task_id}", status_code=202)
async def cancel(task_id: str, tasks: Tasks) -> dict[str, Any]:
    task = await tasks.cancel(task_id)
    if task is None:
        raise HTTPException(409, "it has ended already, or there is no such report")
    return state_of(task)


@app.get("/reports/{task_id}/progress")
async def progress(task_id: str, tasks: Tasks) -> StreamingResponse:
    """Server-sent events: one for each change, the last one with the result."""
    return StreamingResponse(changes(task_id, tasks), media_type="text/event-stream")


async def changes(task_id: str, tasks: cairnq.CairnQ) -> AsyncIterator[str]:
    shown = None
    while True:
        try:
            task: cairnq.Task | None = await tasks.wait(task_id, timeout_ms=LOOK_MS)
        except cairnq.TaskTimeout as late:
            task = late.task
        if task is None:
            return
        state = state_of(task)
        if state != shown:
            yield f"data: {json.dumps(state)}\n\n"
            shown = state
        if task.is_terminal:
            return


def state_of(task: cairnq.Task) -> dict[str, Any]:
    state = {"status": task.status, "progress": task.progress, "message": task.message}
    if task.succeeded:
        state["result"] = task.result
    if task.failed:
        state["error"] = task.error["message"]
    return state
