"""`python examples/django`: the tables, a worker, the shop behind a WSGI server, and two customers."""

from __future__ import annotations

import http.client
import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from running import database_of, environment, parser, scratch, supervisor  # noqa: E402


def main() -> None:
    arguments = parser(__doc__).parse_args()
    with scratch() as folder:
        database = database_of(arguments, folder)
        manage = [sys.executable, str(HERE / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(manage, env=environment(database, folder), check=True)
        with supervisor(HERE / "cairnq.toml", database, folder), shop(database) as port:
            visit(port)


class ThreadedServer(socketserver.ThreadingMixIn, WSGIServer):
    pass


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@contextmanager
def shop(database: str) -> Iterator[int]:
    """The project as any WSGI server would have it; here the standard library's, in this process."""
    os.environ["DATABASE_URL"] = database
    from shop.wsgi import application, tasks

    with make_server("127.0.0.1", 0, application, ThreadedServer, QuietHandler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()
            tasks.close()


def visit(port: int) -> None:
    from shop.wsgi import tasks

    _, sold_out = ask(port, "POST", "/orders/", {"article": "unicorn"})
    print("rolled back:", sold_out["error"])
    _, summary = ask(port, "GET", "/summary/")
    print(f"  {summary['orders']} orders, {summary['tasks']['queued']} tasks")
    status, placed = ask(port, "POST", "/orders/", {"article": "teapot"})
    [receipt] = tasks.list(name="send_receipt")
    done = tasks.wait(receipt.id)
    if not done.succeeded:
        raise SystemExit(f"the receipt was not sent: {done.error}")
    print(f"placed with {status}; the worker says: {done.result}")
    print("  the shop says:", ask(port, "GET", f"/orders/{placed['order']}/")[1])


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, json.dumps(body))
    response = connection.getresponse()
    answer = json.load(response)
    connection.close()
    return response.status, answer


if __name__ == "__main__":
    main()
