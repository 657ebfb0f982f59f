"""An application with something to say while the interpreter of the supervisor ends: one more SIGTERM."""

import os
import signal
import sys

from gates import registry

__all__ = ["registry"]


class Parting:
    def __del__(self, kill=os.kill, pid=os.getpid, number=signal.SIGTERM):
        kill(pid(), number)


sys.parting = Parting()  # there, so that it is not gone before all modules are
