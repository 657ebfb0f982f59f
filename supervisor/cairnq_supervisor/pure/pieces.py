"""Cuts what the gateway is told into pieces that fit a message each: tallies are one for each worker and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PAIRS = 2000
"""Pairs of a worker and a name in one piece: about half a megabyte, and some milliseconds to write and to read."""


def in_pieces(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The first has everything but the tallies that do not fit; those follow."""
    piece: dict[str, Any] = {**document, "tallies": []}
    room = PAIRS
    for queue, names in document["tallies"]:
        items = list(names.items())
        while items:
            if room == 0:
                yield piece
                piece, room = {"tallies": []}, PAIRS
            piece["tallies"].append((queue, dict(items[:room])))
            items, room = items[room:], max(0, room - len(items))
    yield piece


def joined(pieces: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The document that was cut so."""
    return {**pieces[0], "tallies": [tally for piece in pieces for tally in piece["tallies"]]}
