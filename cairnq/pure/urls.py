"""Which database a URL names, PostgreSQL or an SQLite file, without a driver."""

from __future__ import annotations

import re

from cairnq.pure.errors import InvalidArgument, InvalidDsn

_FILE = "sqlite:///"
_FILE_EXAMPLE = '"sqlite:///cairnq.db" (beside the configuration) or "sqlite:////var/lib/shop/cairnq.db"'
_SHAPES = "it should look like postgresql://user@host/name, sqlite:///cairnq.db or sqlite:////var/lib/shop/cairnq.db"
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
_OURS = ("postgresql", "postgres", "sqlite")


def foreign_scheme(url: str) -> str | None:
    """Of a URL that names none of the databases that there are: its scheme."""
    match = _SCHEME.match(url)
    return None if match is None or match[1].lower() in _OURS else match[1]


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:")


def file_of(url: str) -> str | None:
    """The path of the SQLite file, relative after three slashes and absolute after four; None: another database.

    Raises `ValueError` whose text says what would be right.
    """
    if not is_sqlite(url):
        return None
    path = url.removeprefix(_FILE)
    if path == url or not path or path.endswith("/"):
        raise ValueError(_FILE_EXAMPLE)
    if path.startswith((":memory:", "file:")):
        raise ValueError(f"a file, which all processes can open: {_FILE_EXAMPLE}")
    return path


def of_file(path: str) -> str:
    return _FILE + path


def client_file_of(url: str) -> str | None:
    """As `file_of`, for what a program was given. Raises `InvalidDsn`, which repeats nothing that may be a password."""
    if not isinstance(url, str):
        raise InvalidArgument(f"the database URL must be a string, not {type(url).__name__}; {_SHAPES}")
    if scheme := foreign_scheme(url):
        raise InvalidDsn(f"the database URL has the scheme {scheme!r}; {_SHAPES}")
    if "://" not in url and "=" not in url:
        raise InvalidDsn(f"the database URL has no scheme; {_SHAPES}")
    try:
        return file_of(url)
    except ValueError:
        raise InvalidDsn(f"the database URL names no file that other processes could open; {_SHAPES}") from None
