"""`python examples/fastapi`: workers, the service under uvicorn, and a visitor who asks and watches."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from running import database_of, environment, parser, scratch, supervisor  # noqa: E402

BELOW = 20_000_000


def main() -> None:
    arguments = parser(__doc__).parse_args()
    with scratch() as folder:
        database = database_of(arguments, folder)
        with supervisor(HERE / "cairnq.toml", database, folder), service(database, folder) as port:
            visit(port)


@contextmanager
def service(database: str, folder: Path) -> Iterator[int]:
    """A server on a socket that listens already, so that nobody has to wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "uvicorn", "service:app", "--app-dir", str(HERE), "--log-level", "warning"]
        with subprocess.Popen(
            [*command, "--fd", str(listening.fileno())],
            env=environment(database, folder),
            pass_fds=[listening.fileno()],
        ) as process:
            try:
                yield listening.getsockname()[1]
            finally:
                process.send_signal(signal.SIGTERM)


def visit(port: int) -> None:
    accepted = ask(port, "POST", "/reports", {"below": BELOW})
    print(f"accepted as {accepted['id']}")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", accepted["progress"])
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            print(line.decode().strip())
    connection.close()
    print("asked again, the same task:", ask(port, "POST", "/reports", {"below": BELOW})["id"] == accepted["id"])
    print(f"{ask(port, 'GET', '/reports/' + accepted['id'])['result']['primes']:,} primes below {BELOW:,}")


def ask(port: int, method: str, path: str, body: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return answer


if __name__ == "__main__":
    main()
