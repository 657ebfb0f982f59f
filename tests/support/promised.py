"""The keys that docs/operations.md promises for the JSON of each command."""

from __future__ import annotations

import re
from pathlib import Path

_DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"


def json_keys(command: str) -> list[set[str]]:
    """Of the row that names it, for each of the commands that share the row."""
    table = _DOCUMENT.read_text().partition("| command | document |")[2].partition("\n\n")[0]
    (promised,) = [cells[2] for line in table.splitlines() if command in (cells := [*line.split("|"), ""])[1]]
    return [set(" ".join(re.findall(r"`([^`]+)`", part)).split()) for part in promised.split(";")]
