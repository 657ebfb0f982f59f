"""SQLite behind the session interface: threads own the connections, so that the event loop never waits for a disk."""
