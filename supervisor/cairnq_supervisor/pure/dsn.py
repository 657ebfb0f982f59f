"""What a connection string says about itself, without a driver: its kind, its password, its safe form."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

_FILE = "sqlite:///"
_FILE_EXAMPLE = '"sqlite:///cairnq.db" (beside the configuration) or "sqlite:////var/lib/shop/cairnq.db"'
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
_OURS = ("postgresql", "postgres", "sqlite")
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_PAIR = re.compile(rf"(?i)\b({'|'.join(_SECRETS)})\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")


def foreign_scheme(dsn: str) -> str | None:
    """Of a URL that names none of the databases that there are: its scheme."""
    match = _SCHEME.match(dsn)
    return None if match is None or match[1].lower() in _OURS else match[1]


def is_sqlite(dsn: str) -> bool:
    return dsn.startswith("sqlite:")


def file_of(dsn: str) -> str | None:
    """The path of the SQLite file, relative after three slashes and absolute after four; None: another database.

    Raises `ValueError` whose text says what would be right.
    """
    if not is_sqlite(dsn):
        return None
    path = dsn.removeprefix(_FILE)
    if path == dsn or not path or path.endswith("/"):
        raise ValueError(_FILE_EXAMPLE)
    if path.startswith((":memory:", "file:")):
        raise ValueError(f"a file, which all processes can open: {_FILE_EXAMPLE}")
    return path


def of_file(path: str) -> str:
    return _FILE + path


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
