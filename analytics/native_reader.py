"""A trail file by native code: isal inflates into one buffer, msgspec parses without building.

What is not plain here, in whatever way, is left to analytics.trail_file, whose word is final: this
reader is faster and never of another opinion.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from isal import igzip_lib, isal_zlib

from analytics import trail_file
from analytics.trail_file import MAXIMUM_BYTES, MAXIMUM_CONTAINERS, SQS, Reading, judged, parsed

# Deflate packs no tighter, so that a claim beyond it is a lie.
MAXIMUM_RATIO = 1_032
# isal's one way into a buffer that is there already; its stubs know neither that it takes bytes
# nor that the other is an exception.
_Member: Any = isal_zlib._GzipReader  # noqa: SLF001
_NOT_PLAIN: Any = (OSError, EOFError, igzip_lib.IsalError)
_CHUNK_BYTES = 32 * 1024
_TRAILER_BYTES = 18
# Neither a header's checksum nor reserved flags: zlib judges those.
_PLAIN_FLAGS = (0, 8)
_FIRST_NOT_ASCII = 0x80
# Numpy's own copies of a block stay in the processor's cache: three times faster than at once.
_BLOCK_BYTES = 64 * 1024


class _Record(msgspec.Struct, gc=False):
    eventSource: str | None = None  # noqa: N815 - CloudTrail's own words
    errorCode: str | None = None  # noqa: N815


class _File(msgspec.Struct, gc=False):
    Records: list[_Record]


class _RawFile(msgspec.Struct, gc=False):
    Records: list[msgspec.Raw]


class NativeReader:
    """Reads file after file, and keeps the buffer between them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = msgspec.json.Decoder(_File)
        self._raw = msgspec.json.Decoder(_RawFile)

    def read_file(self, content: Any) -> Reading:
        """The reading of `content`, bytes or a view of some; nothing is raised."""
        text = self._inflated(memoryview(content))
        reading = None if text is None else self._reading(text)
        return trail_file.read_file(bytes(content)) if reading is None else reading

    def _inflated(self, content: memoryview) -> memoryview | None:
        """None where the file is anything but one plain member of the size that it claims."""
        if len(content) < _TRAILER_BYTES or content[3] not in _PLAIN_FLAGS:
            return None
        claimed = int.from_bytes(content[-4:], "little")
        if claimed > min(MAXIMUM_BYTES, MAXIMUM_RATIO * len(content)):
            return None
        if len(self._buffer) <= claimed:
            self._buffer = bytearray(claimed + 1)
        into = memoryview(self._buffer)
        member = _Member(content, _CHUNK_BYTES)
        try:
            filled = 0
            while more := member.readinto(into[filled : claimed + 1]):
                filled += more
        except _NOT_PLAIN:
            return None
        return into[:filled] if filled == claimed else None

    def _reading(self, text: memoryview) -> Reading | None:
        if _holds_too_many_values(text) or not _is_utf8(text):
            return None
        try:
            records = self._seen.decode(text).Records
            some = [
                position
                for position, record in enumerate(records)
                if (record.errorCode and record.eventSource == SQS) or record.eventSource is None
            ]
            if not some:
                return Reading(records=len(records))
            raw = self._raw.decode(text).Records
            return judged(len(raw), [(each, parsed(bytes(raw[each]))) for each in some])
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None


def _is_utf8(text: memoryview) -> bool:
    """msgspec does not look into the strings that it skips."""
    if _bytes(text).max(initial=0) < _FIRST_NOT_ASCII:
        return True
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _holds_too_many_values(text: memoryview) -> bool:
    if len(text) <= MAXIMUM_CONTAINERS:
        return False
    every = _bytes(text)
    blocks = (every[at : at + _BLOCK_BYTES] for at in range(0, len(every), _BLOCK_BYTES))
    return sum(map(_opened, blocks)) > MAXIMUM_CONTAINERS


def _opened(block: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    """How many arrays and objects begin in `block`: one bit lies between their brackets."""
    return int(np.count_nonzero((block & 0xDF) == ord("[")))


def _bytes(text: memoryview) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(text, np.uint8)
