"""What several files of the suite ask of a store."""

from __future__ import annotations

from typing import Any

import pytest


def about(ms: int) -> Any:
    """A span between two readings of the database's clock within one statement: equal, but for what lies between."""
    return pytest.approx(ms, abs=500)
