"""As little as a project needs. One database for Django and for the tasks: that is what makes them one transaction."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

BASE_DIR = Path(__file__).resolve().parent.parent
DATABASE_URL = os.environ.get("DATABASE_URL", f"sqlite:///{BASE_DIR / 'shop.db'}")


def database(url: str) -> dict[str, object]:
    if url.startswith("sqlite:///"):
        # Django's default begins a transaction at the first write, which may fail where another process writes.
        options = {"transaction_mode": "IMMEDIATE", "timeout": 5}
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.removeprefix("sqlite:///"),
            "OPTIONS": options,
        }
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }


DATABASES = {"default": database(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
SECRET_KEY = "an example's"  # noqa: S105 - it signs nothing
USE_TZ = True
