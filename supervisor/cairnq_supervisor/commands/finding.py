"""Why a command about one task found nothing to do."""

from __future__ import annotations

import argparse

from cairnq.client import CairnQ
from cairnq_supervisor.commands.answer import Refusal
from cairnq_supervisor.pure.exits import Exit


def missing(options: argparse.Namespace) -> Refusal:
    which = f"no task has the id {options.id!r}" if options.key is None else f"no task under the key {options.key!r}"
    return Refusal(Exit.FAILED, f"{which}: never submitted here, or purged")


async def not_done(client: CairnQ, options: argparse.Namespace, verb: str) -> Refusal:
    """The refusal that tells a task that is not there from one that is in no state for `verb`."""
    look = client.get_status(options.id) if options.key is None else client.get_status_by_key(options.key)
    ref = await look
    if ref is None:
        return missing(options)
    return Refusal(Exit.FAILED, f"task {ref.id} is {ref.status}: there is nothing to {verb}")
