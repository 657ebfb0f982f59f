"""`cairnq roles`: the rights of roles that may do no more than they need, as SQL for the owner of the tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import Commands, command

if TYPE_CHECKING:
    from cairnq_supervisor.commands.answer import Answer

_KINDS = ("client", "worker")


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "roles",
        _act,
        does="Print the SQL that gives roles the rights they need and no more. Run it as the owner of the tables, "
        "after `cairnq migrate`; the roles must be there. A client submits, reads, waits, cancels and retries; a "
        "worker does all but migrate (set migrate = false).",
        example="  cairnq roles --client shop_web --worker shop_worker | psql shop\n",
    )
    parser.add_argument("--client", action="append", default=[], metavar="ROLE", help="submits, and looks after it")
    parser.add_argument("--worker", action="append", default=[], metavar="ROLE", help="runs `cairnq run`")
    parser.add_argument("--schema", default="public", metavar="NAME", help="where the tables are (public)")


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import answered

    return answered(options, lambda: _print(options))


def _print(options: argparse.Namespace) -> Answer:
    from cairnq.db.statements import Statements, quote_identifier
    from cairnq_supervisor.commands.answer import Answer, Refusal
    from cairnq_supervisor.pure.exits import Exit

    asked = [(kind, role) for kind in _KINDS for role in getattr(options, kind)]
    if not asked:
        raise Refusal(Exit.USAGE, "name a role: --client ROLE, --worker ROLE, or both")
    if not all(text and text.isprintable() for text in [options.schema, *(role for _, role in asked)]):
        raise Refusal(Exit.USAGE, "the name of a role or a schema is empty, or holds control characters")
    statements, schema = Statements("postgres", options.schema), quote_identifier(options.schema)
    scripts = {
        f"{kind} {role}": statements.get(f"roles/{kind}", literals={"schema": schema, "role": quote_identifier(role)})
        for kind, role in asked
    }
    shown = [line for what, script in scripts.items() for line in [f"-- {what}", *script.text.split("\n")]]
    return Answer({"sql": "\n".join(shown)}, shown)
