"""For any WSGI server: `gunicorn shop.wsgi`, `uwsgi --module shop.wsgi --enable-threads`, with many processes."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
application = get_wsgi_application()

from shop.queue import tasks  # noqa: E402 - it reads the settings

tasks.connect()  # check the tables now: the first submit may stand in a transaction, where nothing should be migrated
