"""One supervisor holds a control socket, whatever the dead left there and whoever races for it."""

from __future__ import annotations

import os
import select
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from cairnq_supervisor.system.control import ControlSocket, Occupied


def test_a_control_socket_is_held_by_one_and_taken_over_from_the_dead(tmp_path):
    path = tmp_path / "control.sock"
    first = ControlSocket(path)
    with pytest.raises(Occupied, match="another supervisor"):
        ControlSocket(path)
    first.close()
    assert list(tmp_path.iterdir()) == []
    path.write_text("left by the dead")
    second = ControlSocket(path)
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    accepted = second.accept()
    assert accepted is not None
    assert second.accept() is None
    for one in (client, accepted, second):
        one.close()


def test_an_alias_takes_no_name_from_a_supervisor_that_lives(tmp_path):
    """A plain file that became a link since: its supervisor's own name is what the next one would go by too."""
    name = tmp_path / "cairnq-a.sock"
    living = ControlSocket(name)
    later = ControlSocket(tmp_path / "cairnq-b.sock", name)
    assert not name.is_symlink()
    living.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cairnq-b.sock", "cairnq-b.sock.lock"]
    latest = ControlSocket(tmp_path / "cairnq-c.sock", name)
    assert name.readlink() == Path("cairnq-c.sock")
    newest = ControlSocket(tmp_path / "cairnq-d.sock", name)
    latest.close()
    assert name.readlink() == Path("cairnq-d.sock")
    for one in (later, newest):
        one.close()
    assert list(tmp_path.iterdir()) == []


def test_of_many_that_race_for_a_control_socket_exactly_one_has_it(tmp_path):
    path, won = tmp_path / "control.sock", []
    barrier = threading.Barrier(8)

    def race():
        barrier.wait()
        try:
            won.append(ControlSocket(path))
        except Occupied:
            return

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    won[0].close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else for a moment")
def test_another_users_connection_is_closed_whatever_the_mode_of_the_socket():
    with tempfile.TemporaryDirectory() as folder:
        control = ControlSocket(Path(folder, "c.sock"))
        Path(folder).chmod(0o755)
        control.path.chmod(0o666)
        for user, served in ((0, True), (65_534, False)):
            pid = os.fork()
            if pid == 0:
                os.setuid(user)
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(control.path))
                    os._exit(0 if client.recv(1) else 1)
            select.select([control], [], [])
            accepted = control.accept()
            assert (accepted is not None) is served
            if accepted is not None:
                accepted.send(b"x")
                accepted.close()
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (0 if served else 1)
        control.close()
