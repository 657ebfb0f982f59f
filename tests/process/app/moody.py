"""An application whose worker dies at its start, in the one queue `ill`."""

import os
import signal

from gates import registry
from setproctitle import getproctitle

__all__ = ["registry"]

if "ill/" in getproctitle():
    os.kill(os.getpid(), signal.SIGKILL)
