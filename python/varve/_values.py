"""The region of the plain values: JSON, padded with blanks, so that its size rarely changes."""
from __future__ import annotations

import ctypes
import typing

from ._declare import check_plain
from ._native import Damaged

REGION = "python.json"
_FORMAT = 1


def pack(values: dict[str, typing.Any], notes: dict[str, list]) -> bytes:
    """Values, and the dtypes that a region's type cannot express."""
    import json
    for name, value in values.items():
        check_plain(name, value)
    return json.dumps({"format": _FORMAT, "values": values, "arrays": notes}).encode()


def unpack(text: bytes, where: str) -> tuple[dict[str, typing.Any], dict[str, list]]:
    """The values and notes of pack(). Nothing in the text is executed."""
    import json
    try:
        top = json.loads(text.decode())
        if top["format"] != _FORMAT:
            raise Damaged(f"{where}: '{REGION}' has format {top['format']!r}, and this version knows format {_FORMAT}; update varve")
        values, notes = top["values"], top["arrays"]
        if type(values) is not dict or type(notes) is not dict or not all(map(_is_note, notes.values())):
            raise ValueError("not the members that varve writes")
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise Damaged(f"{where}: '{REGION}' is not the text that varve for Python writes: {e}") from None
    return values, notes


def _is_note(note: typing.Any) -> bool:
    return type(note) is list and len(note) == 2 and type(note[0]) is str and type(note[1]) is int


class Buffer:
    """Memory for a text, of a power of two bytes."""

    def __init__(self, size: int = 1):
        self.memory = ctypes.create_string_buffer(max(4096, 1 << (size - 1).bit_length()))

    def fits(self, text: bytes) -> bool:
        return len(text) <= len(self.memory)

    def fill(self, text: bytes) -> None:
        ctypes.memmove(self.memory, text.ljust(len(self.memory)), len(self.memory))
