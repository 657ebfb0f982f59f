"""The project's one client. Made here, it opens nothing: each process of a prefork server opens its own."""

from __future__ import annotations

from django.conf import settings

from cairnq.sync import CairnQ


def client_of(database: str) -> CairnQ:
    path = database.removeprefix("sqlite:///")
    return CairnQ.sqlite(path) if path != database else CairnQ.postgres(database, max_size=4)


tasks = client_of(settings.DATABASE_URL)
