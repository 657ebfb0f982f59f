"""The project's one client. Made here, it opens nothing: each process of a prefork server opens its own."""

from __future__ import annotations

from django.conf import settings

from cairnq.sync import CairnQ

tasks = CairnQ.at(settings.DATABASE_URL)
