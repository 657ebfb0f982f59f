"""What a connection string says about itself, without a driver: its kind, its password, its safe form."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from cairnq.pure.urls import file_of, foreign_scheme, is_sqlite, of_file

__all__ = [
    "file_of",
    "foreign_scheme",
    "has_password",
    "is_sqlite",
    "of_file",
    "shown",
    "without_password",
]

_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_PAIR = re.compile(rf"(?i)\b({'|'.join(_SECRETS)})\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")


def shown(dsn: str) -> str:
    """For events and status: the path of an SQLite file, else the string with no password in it."""
    return file_of(dsn) or without_password(dsn)


def has_password(dsn: str) -> bool:
    """In any of the places where libpq reads one: the URL's user part, its query, or a key=value string."""
    if "://" not in dsn:
        return _PAIR.search(dsn) is not None
    _, userinfo, query = _split(dsn)
    return ":" in userinfo or any(key.lower() in _SECRETS for key, _ in parse_qsl(query, keep_blank_values=True))


def without_password(dsn: str) -> str:
    """The same string with no password in it."""
    if "://" not in dsn:
        return _PAIR.sub(r"\1=***", dsn)
    parts = _parts(dsn)
    rest, userinfo, query = _split(dsn)
    user = userinfo.partition(":")[0]
    kept = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k.lower() not in _SECRETS]
    netloc = f"{user}@{rest}" if user else rest
    # Not urlunsplit: that drops the slashes before an empty host.
    return f"{parts.scheme}://{netloc}{parts.path}" + (f"?{urlencode(kept)}" if kept else "")


def _split(dsn: str) -> tuple[str, str, str]:
    """Host part, user part, query."""
    parts = _parts(dsn)
    userinfo, _, rest = parts.netloc.rpartition("@")
    return rest, userinfo, parts.query


def _parts(dsn: str) -> SplitResult:
    """Of what is no URL too (one with half a bracket): libpq will say what is wrong, and we hide its password."""
    try:
        return urlsplit(dsn)
    except ValueError:
        scheme, _, rest = dsn.partition("://")
        netloc, path, query = re.split(r"(/[^?]*|(?=\?)|$)", rest, maxsplit=1)
        return SplitResult(scheme, netloc, path, query.removeprefix("?"), "")
