"""A worker writes its stacks when it is asked, whatever its threads do meanwhile, and goes on."""

from __future__ import annotations

import subprocess
import sys

ASKED = 600
"""Where all threads were walked without a lock, about 100 were enough to end it by SIGSEGV."""

PROGRAM = """
import os, sys, threading
from cairnq_supervisor.system.stacks import StackBook

book, (reader, writer), (ready, told) = StackBook(), os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    book.offer()
    def waiting():
        os.read(reader, 1)
    threading.Thread(target=waiting, daemon=True).start()
    def coming_and_going():
        os.write(told, b"!")
        while True:
            threads = [threading.Thread(target=int) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    coming_and_going()

os.read(ready, 1)
for number in range(int(sys.argv[1])):
    book.request(pid)
    while "in waiting" not in (dump := book.read()) or "in coming_and_going" not in dump:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            sys.exit(f"it ended after {number} dumps: {os.waitpid(pid, 0)[1]}")
os.kill(pid, 9)
"""


def test_asking_while_threads_come_and_go_harms_nobody():
    command = [sys.executable, "-c", PROGRAM, str(ASKED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
