"""How values go to SQLite: by number, and lists as JSON text for `json_each`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def encoded(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def numbered(values: Iterable[Any]) -> dict[str, Any]:
    """`?1` takes the value of "1". Some releases of Python warn where they come as a sequence."""
    return {str(number): value for number, value in enumerate(values, start=1)}
