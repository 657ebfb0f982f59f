"""Where the configuration comes from: the file, the environment, the flags, and the places of the connection string."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.keys import TABLES, TOP_KEYS, from_text
from cairnq_supervisor.pure.printable import printable
from cairnq_supervisor.pure.settings import ConfigurationError, Fault, Layer, QueueChoice, Settings, combine
from cairnq_supervisor.system.cores import granted_cores
from cairnq_supervisor.system.environment import forget

PREFIX = "CAIRNQ_"
DSN_VARIABLE = "CAIRNQ_DSN"
CONFIG_NAME = "cairnq.toml"
DEFAULT_DATABASE = "sqlite:///cairnq.db"
_WITHOUT_FILE = f"there is no {CONFIG_NAME} here: `cairnq init` writes one, -c names another"
_URLS = '"postgresql://user@host:5432/name" or "sqlite:///cairnq.db"'


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said."""

    config: Path | None = None
    app: str | None = None
    database: str | None = field(default=None, repr=False)
    log: str | None = None
    queues: tuple[QueueChoice, ...] = ()
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    settings: Settings
    folder: Path
    """Where the application is looked for first."""

    origin: str
    path: Path
    """The file's real path, or the folder's where there is no file: what the control socket is named after."""

    given: Path
    """The same as it was named, links and all."""


def load(flags: Flags, environment: Mapping[str, str], *, needs_app: bool = True) -> Configuration:
    """Read, combine and check everything. Raises `ConfigurationError` with all faults together.

    `needs_app=False`: for commands that only speak to the database; `app` may then be absent, and is empty.
    """
    faults: list[Fault] = []
    path = flags.config or _found(Path.cwd())
    values = _read(path, faults) if path is not None else {}
    needs_app = needs_app and not faults  # what cannot be read may name one
    origin = str(path) if path is not None else "command line"
    folder = path.resolve().parent if path is not None else Path.cwd()
    layers = [Layer(origin, values), *_environment(environment), _flags(flags)]
    database = _database(flags, environment, values, folder, origin, faults)
    advice = {} if path is not None else {"how_to_name_app": _WITHOUT_FILE}
    settings, more = combine(
        layers, flags.queues, database=database, cores=granted_cores(), needs_app=needs_app, **advice
    )
    if settings is not None:
        faults += _combination_faults(settings, origin)
    if settings is None or faults:
        raise ConfigurationError([*faults, *more])
    return Configuration(settings, folder, origin, configuration_path(flags.config), given_path(flags.config))


def configuration_path(given: Path | None) -> Path:
    """Real path of the configuration, or the folder where there is none: what the control socket is named after."""
    path = given or _found(Path.cwd())
    return path.resolve() if path is not None else Path.cwd()


def given_path(given: Path | None) -> Path:
    """The same, absolute and otherwise as it was named."""
    return Path(os.path.abspath(given or _found(Path.cwd()) or Path.cwd()))  # noqa: PTH100 - resolves ".." and no link


def forget_secrets() -> None:
    """Take our own connection strings out of the environment: no child and no program of a child inherits them."""
    forget((DSN_VARIABLE, PREFIX + "DATABASE", PREFIX + "LISTEN_DATABASE"))


def _found(folder: Path) -> Path | None:
    """`cairnq.toml` here, else a `pyproject.toml` with a [tool.cairnq] table."""
    own, project = folder / CONFIG_NAME, folder / "pyproject.toml"
    if own.is_file():
        return own
    if project.is_file() and "[tool.cairnq" in project.read_text(errors="replace"):
        return project
    return None


def _read(path: Path, faults: list[Fault]) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(Fault(str(path), "file", f"cannot be read: {error.strerror}"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(Fault(str(path), "file", f"is not TOML: {error}"))
    else:
        if path.name != "pyproject.toml":
            return document
        table = document.get("tool", {}).get("cairnq")
        if isinstance(table, dict):
            return table
        faults.append(Fault(str(path), "tool.cairnq", "is missing; the configuration is a [tool.cairnq] table here"))
    return {}


def _environment(environment: Mapping[str, str]) -> list[Layer]:
    """A layer for each variable, so that a fault names it."""
    named = {key: PREFIX + key.upper() for key in sorted(TOP_KEYS - TABLES)}
    return [
        Layer(name, {key: from_text(key, environment[name])}) for key, name in named.items() if environment.get(name)
    ]


def _flags(flags: Flags) -> Layer:
    given = {"app": flags.app, "log": flags.log, "schema": flags.schema}
    return Layer("command line", {key: value for key, value in given.items() if value is not None})


def _database(
    flags: Flags,
    environment: Mapping[str, str],
    values: Mapping[str, Any],
    folder: Path,
    origin: str,
    faults: list[Fault],
) -> str:
    """The connection string, from the first place that has one; a file's path is made absolute. Empty: a fault."""
    where, found = _first_dsn(flags, environment, values, folder, origin, faults)
    if found is None:
        return ""
    if where == "--database" and dsn.has_password(found):
        problem = f"carries a password, which every user of this host can read in `ps`; set {DSN_VARIABLE} instead"
        faults.append(Fault("command line", "--database", problem))
    if scheme := dsn.foreign_scheme(found):
        faults.append(Fault(where, "database", f'has the scheme "{scheme}"; it must be {_URLS}'))
        return ""
    try:
        path = dsn.file_of(found)
    except ValueError as error:
        faults.append(Fault(where, "database", f"names no file; it must be {error}"))
        return ""
    return found if path is None else dsn.of_file(os.path.normpath(folder / path))


def _combination_faults(settings: Settings, origin: str) -> list[Fault]:
    path, listen = dsn.file_of(settings.database), settings.listen_database
    if listen is not None and (dsn.is_sqlite(listen) or dsn.foreign_scheme(listen)):
        return [Fault(origin, "listen_database", "is another database; it must be a direct URL of the same PostgreSQL")]
    given = {"schema": settings.schema, "listen_database": settings.listen_database}
    return [
        Fault(origin, key, f"is for PostgreSQL alone, and the database is the SQLite file {path}: set {DSN_VARIABLE}")
        for key, value in given.items()
        if path is not None and value is not None
    ]


def _first_dsn(
    flags: Flags,
    environment: Mapping[str, str],
    values: Mapping[str, Any],
    folder: Path,
    origin: str,
    faults: list[Fault],
) -> tuple[str, str | None]:
    if flags.database:
        return "--database", flags.database
    if environment.get(DSN_VARIABLE):
        return DSN_VARIABLE, environment[DSN_VARIABLE]
    file = environment.get(PREFIX + "DSN_FILE") or values.get("dsn_file")
    if isinstance(file, str):
        return str(file), _content(folder / file, "dsn_file", faults)
    credential = Path(environment.get("CREDENTIALS_DIRECTORY", "/nonexistent")) / "dsn"
    if credential.is_file():
        return str(credential), _content(credential, "credential dsn", faults)
    if environment.get(PREFIX + "DATABASE"):
        return PREFIX + "DATABASE", environment[PREFIX + "DATABASE"]
    if isinstance(values.get("database"), str):
        return origin, values["database"]
    if environment.get("DATABASE_URL"):
        return "DATABASE_URL", environment["DATABASE_URL"]
    return "default", DEFAULT_DATABASE


def _content(path: Path, key: str, faults: list[Fault]) -> str | None:
    """One line, as `echo DSN > file` writes it."""
    try:
        content = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault(str(path), key, f"cannot be read: {error}"))
        return None
    if not content:
        faults.append(Fault(str(path), key, "is empty; it must hold one connection string"))
        return None
    return content


def describe(faults: Sequence[Fault]) -> str:
    """All faults for a person, one a line."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return "\n".join([f"the configuration has {count}:", *(printable(str(fault)) for fault in faults)])
