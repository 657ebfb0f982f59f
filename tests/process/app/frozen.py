"""An application that sets its own time, as a library for tests does that was left in."""

import time

from gates import registry

__all__ = ["registry"]

_real = time.time
time.time = lambda: _real() - 3600
