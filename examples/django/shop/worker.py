"""What `cairnq run` imports: Django first, as a script outside of its command line has to."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from shop.tasks import registry  # noqa: E402 - its models need Django

__all__ = ["registry"]
