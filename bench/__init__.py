"""Measurements against a private PostgreSQL: `python -m bench`."""
