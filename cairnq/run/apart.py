"""Whose turn the next claim is: a suspect's, which runs with nothing beside it, or that of all others."""

from __future__ import annotations


class Apart:
    """`only`: this worker is there for suspects. Others take one when they run nothing and heard that one waits."""

    def __init__(self, *, only: bool) -> None:
        self._only = only
        self._waits = False
        self._found = False
        self._holds = False

    def heard(self) -> None:
        """A suspect waits in the database."""
        self._waits = True

    def allows(self, *, idle: bool) -> bool:
        """Whether anything may be claimed now. `idle`: the worker runs nothing."""
        if idle:
            self._holds = False
        return idle or not (self._only or self._holds)

    def is_next(self, *, idle: bool) -> bool:
        """Whether the next claim is for a suspect."""
        return self._only or (idle and self._waits)

    def claimed(self, *, found: bool) -> bool:
        """A claim of a suspect came back. Whether the others' turn is now."""
        self._holds = self._found = found
        self._waits = False
        return not found and not self._only

    def nothing_else(self) -> bool:
        """A claim of all others came back empty. Whether it is a suspect's turn again, after one was found before."""
        self._waits = self._waits or self._found
        return self._waits
