"""The client for code that blocks: Django, Flask, scripts. `cairnq.sync.CairnQ` has the names of `cairnq.CairnQ`."""

from cairnq.sync.client import CairnQ

__all__ = ["CairnQ"]
