"""`http = "host:port"`."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.keys import address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:9464", "127.0.0.1", 9464), ("[::1]:0", "::1", 0), ("localhost:80", "localhost", 80)],
)
def test_an_address_is_host_and_port(text, host, port):
    found = address(text)
    assert (found.host, found.port) == (host, port)
    assert str(found) == text


@pytest.mark.parametrize(
    "text", ["", ":9464", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "::1:80", "http://x:1", "a b:1", 9464]
)
def test_anything_else_is_refused_with_what_would_be_right(text):
    with pytest.raises(ValueError, match="every interface"):
        address(text)
