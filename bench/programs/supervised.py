"""Becomes `cairnq run`, given its arguments, such that it dies with the harness, which is not there to stop it then."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it outlives the exec
    os.execv(sys.executable, [sys.executable, "-m", "cairnq_supervisor", "run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
