"""PgBouncer in transaction mode before a private cluster."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.cluster import at_port, free_port, storage
from tests.support.guarded import Guarded, Identity

SESSIONS = 4
"""How many server sessions the pooler spreads the transactions of one database over."""

_CONFIGURATION = """\
[databases]
* = host=127.0.0.1 port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
admin_users = postgres
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
"""


def find_pgbouncer() -> str | None:
    """Debian puts it into /usr/sbin, which is not on everybody's PATH."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class Pooler:
    """Hands each transaction to any of its `SESSIONS`: what a client left in one is gone, or another client's."""

    def __init__(self, program: str, server_port: int, identity: Identity) -> None:
        self._program = program
        self._server_port = server_port
        self._identity = identity
        self.start()

    def start(self) -> None:
        """In a folder and on a port of its own."""
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="cairnq-pooler-", dir=storage()))
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(server_port=self._server_port, port=self.port, folder=self.folder, sessions=SESSIONS)
        )
        (self.folder / "users").write_text('"postgres" ""\n')
        self._identity.own(self.folder)
        self._server = Guarded(
            [self._program, str(configuration)],
            ready="process up",
            log=self.folder / "log",
            identity=self._identity,
            remove=[self.folder],
        )
        try:
            self._server.start()
        except BaseException:
            self.close()
            raise

    def start_again_if_dead(self) -> None:
        """PgBouncer 1.18 ends itself ("bad client state: 0") when a client cancels and leaves in the same instant.

        That costs the test in which it happens, and not those that follow.
        """
        if self._server.has_ended:
            self.close()
            print("PgBouncer had ended before this test; another was started", file=sys.stderr)
            self.start()

    def dsn(self, direct: str) -> str:
        """The DSN of the same database through the pooler."""
        return at_port(direct, self.port)

    def log_text(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def close(self) -> None:
        self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)
