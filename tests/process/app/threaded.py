"""An application whose import starts a thread."""

import threading

from gates import registry

__all__ = ["registry"]

threading.Thread(target=threading.Event().wait, name="metrics-pusher", daemon=True).start()
