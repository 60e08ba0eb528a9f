"""The payloads of bench/load (book.c), for the few that a client in Python receives."""

from __future__ import annotations

from typing import NamedTuple

HEADER = 39  # ssssssss.nnnnnnnnnnnn.tttttttttttttttt.
PATTERN = 4096
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


def _pattern() -> str:
    found, x = [], 12345
    for _ in range(PATTERN):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        found.append(LETTERS[(x >> 20) % 64])
    return "".join(found) * 2


_TWICE = _pattern()


class Sent(NamedTuple):
    """The sender and the number of a message."""

    session: int
    number: int


def read(payload: str, length: int) -> Sent | None:
    """The contents of a payload of this length; None if a byte is wrong."""
    try:
        sent = Sent(int(payload[0:8], 16), int(payload[9:21], 16))
        stamp = int(payload[22:38], 16)
    except ValueError:
        return None
    at = (sent.session * 977 + sent.number * 131) % PATTERN
    rest = length - HEADER
    filler = (_TWICE[at : at + PATTERN] * (rest // PATTERN + 1))[:rest]
    return sent if payload == f"{sent.session:08x}.{sent.number:012x}.{stamp:016x}.{filler}" else None
