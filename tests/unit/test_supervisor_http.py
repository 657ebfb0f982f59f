"""The HTTP server against polite clients, rude ones, and a thousand at once."""

from __future__ import annotations

import asyncio
import errno
import http.client
import socket
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq_supervisor.pure.keys import Address
from cairnq_supervisor.system import http as served
from cairnq_supervisor.system.http import BadRequest, HttpServer, Limits, Response

LOOPBACK = Address("127.0.0.1", 0)


@asynccontextmanager
async def serving(limits=None, respond=None):
    """The server on a free port of loopback, and its port."""
    asked = []

    async def echo(path):
        asked.append(path)
        return Response(HTTPStatus.OK, f"you asked for {path}\n")

    listener = served.listen(LOOPBACK)
    server = HttpServer(listener, respond or echo, limits)
    server.asked = asked
    await server.start()
    try:
        yield server, listener.getsockname()[1]
    finally:
        await server.close()
        listener.close()


async def spoken(port, said):
    """All that comes back for these bytes, until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_polite_client_is_answered_and_kept():
    async with serving() as (server, port):

        def ask_twice():
            connection = http.client.HTTPConnection("127.0.0.1", port)
            bodies = []
            for path in ("/livez", "/metrics?x=1"):
                connection.request("GET", path)
                answer = connection.getresponse()
                assert answer.status == 200
                assert answer.getheader("Cache-Control") == "no-store"
                bodies.append(answer.read().decode())
            connection.close()
            return bodies

        bodies = await asyncio.to_thread(ask_twice)
        assert bodies == ["you asked for /livez\n", "you asked for /metrics\n"]
        assert server.asked == ["/livez", "/metrics"]


async def test_head_has_the_length_and_no_body():
    async with serving() as (_, port):
        answer = await spoken(port, b"HEAD /livez HTTP/1.1\r\nConnection: close\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"Content-Length: 21" in head
        assert body == b""


async def test_http_1_0_is_answered_and_closed():
    async with serving() as (_, port):
        assert (await spoken(port, b"GET / HTTP/1.0\r\n\r\n")).endswith(b"you asked for /\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        (b"GET /\x1b[31m HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ],
)
async def test_what_is_not_a_plain_get_is_refused_and_closed(said, status):
    async with serving() as (server, port):
        answer = await spoken(port, said)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"Connection: close" in answer
        assert server.asked == []


async def test_a_megabyte_of_headers_is_cut_off():
    async with serving() as (server, port):
        answer = await spoken(port, b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n")
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
        assert server.asked == []


async def test_a_slow_loris_is_cut_off_however_busily_it_drips():
    async with serving(Limits(head_timeout=0.3)) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        end = asyncio.ensure_future(reader.read())
        while not end.done():
            writer.write(b"G")
            await asyncio.wait({end}, timeout=0.02)
        # What drips after the end is answered by a reset, which may come before the answer is read.
        answer = b"" if isinstance(end.exception(), ConnectionError) else end.result()
        assert answer.startswith((b"HTTP/1.1 408 ", b"HTTP/1.1 400 ")) or answer == b""
        writer.close()


async def test_a_silent_client_is_cut_off():
    async with serving(Limits(head_timeout=0.2)) as (_, port):
        assert await spoken(port, b"") == b""


async def test_a_client_that_does_not_read_its_answer_is_cut_off():
    answering = asyncio.Event()

    async def large(path):
        answering.set()
        return Response(HTTPStatus.OK, "x" * 20_000_000)

    async with serving(Limits(answer_timeout=0.3), large) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await answering.wait()
        await asyncio.wait(list(server._connections), timeout=60)
        assert server.open_connections == 0
        writer.transport.abort()


async def test_a_thousand_connections_leave_room_for_a_probe():
    async with serving(Limits(connections=16)) as (server, port):
        crowd = []
        for _ in range(1000):
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            crowd.append(sock)
        async with asyncio.timeout(60):
            answer = await spoken(port, b"GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert answer.endswith(b"you asked for /livez\n")
        assert server.open_connections <= 16
        for sock in crowd:
            sock.close()


async def test_the_connections_that_are_being_answered_are_not_pushed_out():
    gate, answering = asyncio.Event(), asyncio.Semaphore(0)

    async def slow(path):
        answering.release()
        await gate.wait()
        return Response(HTTPStatus.OK, "late\n")

    async with serving(Limits(connections=2), slow) as (_, port):
        request = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
        patient = [asyncio.ensure_future(spoken(port, request)) for _ in range(2)]
        await answering.acquire()
        await answering.acquire()
        assert await spoken(port, request) == b""
        gate.set()
        assert all(answer.endswith(b"late\n") for answer in await asyncio.gather(*patient))


async def test_a_server_that_stops_answers_who_has_asked_and_who_stands_in_line():
    gate, answering = asyncio.Event(), asyncio.Semaphore(0)

    async def slow(path):
        answering.release()
        await gate.wait()
        return Response(HTTPStatus.OK, "late\n")

    listener = served.listen(LOOPBACK)
    where = listener.getsockname()
    server = HttpServer(listener, slow)
    await server.start()
    asked = asyncio.ensure_future(spoken(where[1], b"GET / HTTP/1.1\r\n\r\n"))
    await answering.acquire()
    with socket.create_connection(where) as in_line, socket.create_connection(where) as silent:
        in_line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.stop()  # which lets both in
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(where)
        await answering.acquire()
        assert server.open_connections == 3
        gate.set()
        await server.finished()
        answers = await asked, in_line.recv(65536), silent.recv(1)
    for answer in answers[:2]:
        assert answer.endswith(b"late\n")
        assert b"Connection: close" in answer
    assert answers[2] == b""
    await server.close()


async def test_a_server_that_stops_lets_go_of_who_was_answered_and_waits():
    async with serving() as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"you asked for /\n")
        server.stop()
        await server.finished()
        assert await reader.read() == b""
        writer.close()


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(head):
    try:
        request = served.parse(head + b"\r\n\r\n")
    except BadRequest as bad:
        assert 400 <= bad.status < 500
    else:
        assert request.path.startswith("/")


def test_an_address_that_is_taken_is_an_os_error():
    with served.listen(LOOPBACK) as first, pytest.raises(OSError, match="in use"):
        served.listen(Address("127.0.0.1", first.getsockname()[1]))


@pytest.mark.parametrize(("before", "after"), [("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "::")])
def test_a_port_passes_to_another_host_part_and_is_nobody_elses(before, after):
    if after == "::" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with served.listen(Address(before, 0)) as old:
        where = Address(after, old.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            served.listen(where)
        with served.listen(where, beside=[old]) as new:
            assert new.getsockname()[:2] == (where.host, where.port)
            for other in (where, Address(before, where.port)):
                with pytest.raises(OSError, match="in use"):
                    served.listen(other)


def test_it_listens_on_ipv6_too():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with served.listen(Address("::1", 0)) as listener:
        assert listener.family == socket.AF_INET6


async def test_a_request_that_has_arrived_is_answered_whatever_crowd_came_right_behind_it():
    listener = served.listen(LOOPBACK)
    asked = socket.create_connection(listener.getsockname())
    asked.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    crowd = [socket.create_connection(listener.getsockname()) for _ in range(100)]
    server = HttpServer(listener, at_once, Limits(connections=8))
    await server.start()
    try:
        reader, writer = await asyncio.open_connection(sock=asked)
        assert (await reader.read()).endswith(b"here\n")
        writer.close()
    finally:
        await server.close()
        for sock in [*crowd, listener]:
            sock.close()


class Scarce(socket.socket):
    """A listener whose process has no descriptor left for the first connection."""

    refusals = 1

    def accept(self):
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_a_connection_for_which_there_is_no_descriptor_is_accepted_later():
    listener = Scarce(fileno=served.listen(LOOPBACK).detach())
    server = HttpServer(listener, at_once)
    await server.start()
    try:
        assert (await spoken(listener.getsockname()[1], b"GET / HTTP/1.0\r\n\r\n")).endswith(b"here\n")
        assert listener.refusals == 0
    finally:
        await server.close()
        listener.close()


async def at_once(_path):
    return Response(HTTPStatus.OK, "here\n")
