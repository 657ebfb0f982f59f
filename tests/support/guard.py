"""A parent for one server process that outlives nothing: when its own stdin closes, the server dies and its files go.

Run as a script, so that a `kill -9` of the tests is covered too: the kernel closes the pipe. The server may run
under another user (PostgreSQL refuses root) while this one keeps the right to clean up.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO


def main() -> int:
    options = _parse(sys.argv[1:])
    # Ctrl-C in a terminal reaches the whole group; the tests decide when a server ends, not the key.
    os.setsid()
    for ending in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)  # a shell's `&` has INT and QUIT ignored, and so would the server
    identity = {"user": options.user, "group": options.group, "extra_groups": []} if options.user is not None else {}
    server = subprocess.Popen(
        options.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **identity
    )
    ended_by_itself = _watch(server, options.ready, options.log)
    if not ended_by_itself:
        server.send_signal(signal.SIGQUIT)
    _say(f"exited {server.wait()}")
    if not ended_by_itself:
        for folder in options.remove:
            shutil.rmtree(folder)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="guard", description=__doc__)
    parser.add_argument("--user", type=int, help="run the server as this user id (needs root)")
    parser.add_argument("--group", type=int, help="and this group id")
    parser.add_argument("--ready", required=True, help="the words in the server's log that say it accepts connections")
    parser.add_argument("--log", required=True, help="file that the server's output is appended to")
    parser.add_argument("--remove", action="append", default=[], help="folder to remove when stdin closes")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def _watch(server: subprocess.Popen[bytes], ready: str, log: str) -> bool:
    """Copies the server's output into its log until it ends (true) or our stdin does (false)."""
    assert server.stdout is not None
    pending = b""
    with Path(log).open("ab", buffering=0) as file, selectors.DefaultSelector() as selector:
        selector.register(server.stdout, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if not data:
                    return key.fileobj is server.stdout
                if key.fileobj is server.stdout:
                    file.write(data)
                    pending = _announce(pending + data, ready, server.pid)


def _announce(output: bytes, ready: str, pid: int) -> bytes:
    """Says so for each line that holds `ready`; returns the unfinished line."""
    *lines, rest = output.split(b"\n")
    for line in lines:
        if ready.encode() in line:
            _say(f"ready {pid}")
    return rest


def _say(line: str, to: IO[str] = sys.stdout) -> None:
    try:
        print(line, file=to, flush=True)
    except BrokenPipeError:
        # The tests are gone; there is nobody left to tell, and the clean-up goes on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), to.fileno())


if __name__ == "__main__":
    sys.exit(main())
