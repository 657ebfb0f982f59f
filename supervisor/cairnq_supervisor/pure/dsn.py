"""What a connection string says about itself, without a driver: its kind, its password, its safe form."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

_PAIR = re.compile(r"(?i)\bpassword\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")


def is_sqlite(dsn: str) -> bool:
    return dsn.startswith("sqlite:")


def has_password(dsn: str) -> bool:
    """In any of the places where libpq reads one: the URL's user part, its query, or a key=value string."""
    if "://" not in dsn:
        return _PAIR.search(dsn) is not None
    _, userinfo, query = _split(dsn)
    return ":" in userinfo or any(key.lower() == "password" for key, _ in parse_qsl(query, keep_blank_values=True))


def without_password(dsn: str) -> str:
    """The same string with no password in it, for events and status."""
    if "://" not in dsn:
        return _PAIR.sub("password=***", dsn)
    parts = urlsplit(dsn)
    rest, userinfo, query = _split(dsn)
    user = userinfo.partition(":")[0]
    kept = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k.lower() != "password"]
    netloc = f"{user}@{rest}" if user else rest
    # Not urlunsplit: that drops the slashes before an empty host.
    return f"{parts.scheme}://{netloc}{parts.path}" + (f"?{urlencode(kept)}" if kept else "")


def _split(dsn: str) -> tuple[str, str, str]:
    """Host part, user part, query."""
    parts = urlsplit(dsn)
    userinfo, _, rest = parts.netloc.rpartition("@")
    return rest, userinfo, parts.query
