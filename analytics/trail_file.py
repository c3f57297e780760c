"""One trail file: bytes in, its failed SQS calls out. Total: a hostile file costs only itself.

The standard library has the last word. Native code (isal inflates into one buffer, msgspec parses
it once without building) is used where it loads, and leaves to it each failed call and whatever is
not plain: the rows are the same either way.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from analytics.days import microseconds
from mendq.catalogue import Home, symptom_of, why_ignored
from mendq.model.failed_call import FailedCall, Unreadable, read, refused_by
from mendq.model.names import DATA_EVENT_NAMES, OPERATOR_AGENT

try:
    import msgspec
    import numpy as np
    from isal import igzip_lib, isal_zlib
except Exception as error:  # noqa: BLE001 - a wheel for another machine raises more than ImportError
    WHY_NOT_NATIVE = f"cannot import what the native reader needs: {error}"
else:
    WHY_NOT_NATIVE = ""

# CloudTrail's own bound on a file, uncompressed.
MAXIMUM_BYTES = 50 * 1024 * 1024
# A file is one gzip member; a few more are legal gzip, thousands are an attack on our time.
MAXIMUM_MEMBERS = 16
# Each object and list costs memory far beyond its text; a real file has one per 100 bytes or more.
MAXIMUM_CONTAINERS = 2_000_000
GZIP = b"\x1f\x8b"
SQS = "sqs.amazonaws.com"
_NO_FAULTS = frozenset({"not_failed", "not_sqs"})
# Deeper than every other parser follows, so that none of them reads what is refused here.
_DEPTH = 3_000
# Python converts no longer ones; they are legal JSON all the same, and nothing that is read here.
_MAXIMUM_DIGITS = 4_300

# Deflate packs no tighter, so that a claim beyond it is a lie.
_MAXIMUM_RATIO = 1_032
_CHUNK_BYTES = 32 * 1024
_TRAILER_BYTES = 18
# Neither a header's checksum nor reserved flags: zlib judges those.
_PLAIN_FLAGS = (0, 8)

UNRESOLVED = "unresolved"


class Refused(Exception):
    """The file is unreadable; the argument is the reason."""


@dataclass(frozen=True)
class Reading:
    """What a file held; `reason` says why it is unreadable, and then it held nothing."""

    reason: str | None = None
    records: int = 0
    calls: tuple[tuple[int, FailedCall], ...] = ()
    unreadable: Mapping[str, int] = field(default_factory=dict)


def read_file(content: bytes) -> Reading:
    """The failed calls with their positions; records that cannot be read, counted by reason."""
    try:
        records = _records(_document(gunzip(content)))
    except Refused as refused:
        return Reading(reason=str(refused))
    return judged(len(records), enumerate(records))


def judged(records: int, some: Iterable[tuple[int, Any]]) -> Reading:
    """The reading of `records` records; only `some` of them, with their positions, can matter."""
    calls: list[tuple[int, FailedCall]] = []
    unreadable: Counter[str] = Counter()
    for position, record in some:
        outcome = read(record) if isinstance(record, dict) else Unreadable("not_a_record")
        if isinstance(outcome, FailedCall):
            calls.append((position, outcome))
        elif outcome.reason not in _NO_FAULTS:
            unreadable[outcome.reason] += 1
    return Reading(None, records, tuple(calls), dict(sorted(unreadable.items())))


def gunzip(content: bytes) -> bytes:
    """Never more than MAXIMUM_BYTES, whatever the file claims; raise Refused."""
    if not content:
        raise Refused("empty")
    if not content.startswith(GZIP):
        raise Refused("not_gzip")
    try:
        return b"".join(_members(content))
    except zlib.error as error:
        raise Refused("corrupt_gzip") from error


def _members(rest: bytes) -> Iterator[bytes]:
    left = MAXIMUM_BYTES
    for _ in range(MAXIMUM_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        text = member.decompress(rest, left + 1)
        left -= len(text)
        if left < 0:
            raise Refused("too_large")
        if not member.eof:
            raise Refused("truncated")
        yield text
        rest = member.unused_data
        if not rest.startswith(GZIP):
            return
    raise Refused("too_many_gzip_members")


def parsed(text: bytes) -> Any:
    """The value of JSON as Python's parser sees it; raise ValueError or RecursionError."""
    with _deep():
        return json.loads(text, parse_int=_integer)


def _document(text: bytes) -> Any:
    if len(text) > MAXIMUM_CONTAINERS < text.count(b"{") + text.count(b"["):
        raise Refused("too_many_json_values")
    try:
        return parsed(text)
    except (ValueError, RecursionError) as error:
        raise Refused("not_json") from error


def _first_value(text: bytes) -> Any:
    """The value that JSON begins with, as `parsed` sees it; the same raises."""
    with _deep():
        return _DECODER.raw_decode(text.decode())[0]


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAXIMUM_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _records(document: Any) -> list[Any]:
    """Digests and other JSON have no list of records."""
    records = document.get("Records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise Refused("not_a_trail_file")
    return records


# A row of `call_row`, as Spark spells it; times are microseconds since 1970.
SPARK_CALL = (
    "struct<position: bigint, event_id: string, event_time: bigint, event_name: string, "
    "error_code: string, queue_arn: string, account: string, region: string, "
    "principal_arn: string, request_id: string, symptom: string, ignored: string, "
    "is_own_look: boolean, requested_visibility_seconds: bigint, refused_by: string>"
)
# What `mendq scan`, `redrive` and `quarantine` do; a message that cannot be sent is news.
_OPERATORS_APIS = frozenset(DATA_EVENT_NAMES) - {"SendMessage", "SendMessageBatch"}


def call_row(position: int, call: FailedCall) -> dict[str, Any]:
    """A failed call as a row, with the symptom that heal would have seen in it.

    `ignored` is why heal does not take it up, None where it does. `is_own_look` is believed of the
    caller's own text: whoever forges it is counted, and heal acts all the same.

    The error message stays behind, but for the policy that it names: it may hold a handle.
    """
    ignored = why_ignored(call, Home(call.account, call.region))
    is_own_look = call.event_name in _OPERATORS_APIS and is_operators(call.user_agent)
    refused = refused_by(call.error_code, call.error_message)
    return {
        "position": position,
        "event_id": call.event_id,
        "event_time": microseconds(call.event_time),
        "event_name": call.event_name,
        "error_code": call.error_code,
        "queue_arn": call.queue_arn or UNRESOLVED,
        "account": call.account,
        "region": call.region,
        "principal_arn": call.principal_arn,
        "request_id": call.request_id,
        "symptom": symptom_of(call),
        "ignored": ignored,
        "is_own_look": is_own_look,
        "requested_visibility_seconds": call.requested_visibility_seconds,
        # As text alone: Spark cannot read an enumeration of ours.
        "refused_by": refused and str(refused),
    }


def is_operators(user_agent: str) -> bool:
    """Whether a person's `mendq` says so; CloudTrail puts some user agents in brackets."""
    return user_agent.lstrip("[").startswith(f"{OPERATOR_AGENT} ")


def file_reader(*, native: bool = True) -> Callable[[Any], Reading]:
    """A function from the bytes of a file, or a view of them, to its reading; nothing is raised.

    Native where that loads in this process, unless `native` is False.
    """
    if native and not WHY_NOT_NATIVE:
        return _NativeReader().read_file
    return lambda content: read_file(bytes(content))


if not WHY_NOT_NATIVE:
    # isal's one way into a buffer that is there already; its stubs know neither that it takes
    # bytes nor that the other is an exception.
    _Member: Any = isal_zlib._GzipReader  # noqa: SLF001
    _NOT_PLAIN: Any = (OSError, EOFError, igzip_lib.IsalError)

    class _Record(msgspec.Struct, gc=False):
        eventVersion: msgspec.Raw = msgspec.Raw()  # noqa: N815 - CloudTrail's own words
        eventSource: str | None = None  # noqa: N815
        errorCode: str | None = None  # noqa: N815

    class _File(msgspec.Struct, gc=False):
        Records: list[_Record]

    class _RawFile(msgspec.Struct, gc=False):
        Records: list[msgspec.Raw]

    def _address(of: Any) -> int:
        return int(np.frombuffer(of, np.uint8).__array_interface__["data"][0])


# As each record of CloudTrail's begins.
_FIRST_KEY = b'{"eventVersion":'
_BLOCK_BYTES = 64 * 1024


class _NativeReader:
    """Reads file after file, and keeps the buffer between them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = msgspec.json.Decoder(_File)
        self._raw = msgspec.json.Decoder(_RawFile)

    def read_file(self, content: Any) -> Reading:
        text = self._inflated(memoryview(content))
        reading = None if text is None else self._reading(text)
        return read_file(bytes(content)) if reading is None else reading

    def _inflated(self, content: memoryview) -> memoryview | None:
        """None where the file is anything but one plain member of the size that it claims."""
        if len(content) < _TRAILER_BYTES or content[3] not in _PLAIN_FLAGS:
            return None
        claimed = int.from_bytes(content[-4:], "little")
        if claimed > min(MAXIMUM_BYTES, _MAXIMUM_RATIO * len(content)):
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
        if len(text) > MAXIMUM_CONTAINERS < _opened(text):
            return None
        try:
            str(text, "utf-8")  # msgspec does not look into the strings that it skips
            records = self._seen.decode(text).Records
            some = [
                position
                for position, record in enumerate(records)
                if (record.errorCode and record.eventSource == SQS) or record.eventSource is None
            ]
            return judged(len(records), zip(some, self._parsed(text, records, some), strict=True))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _parsed(self, text: memoryview, records: list[_Record], some: list[int]) -> list[Any]:
        """Those of `records`, each parsed alone, from where it begins to where the next does."""
        base = _address(text)

        def begins(n: int) -> int | None:
            return _begins(text, base, records[n]) if n < len(records) else len(text)

        places = [(begins(each), begins(each + 1)) for each in some]
        if None in chain.from_iterable(places):
            raw = self._raw.decode(text).Records
            return [parsed(bytes(raw[each])) for each in some]
        return [_first_value(bytes(text[begin:end])) for begin, end in places]


def _begins(text: memoryview, base: int, record: _Record) -> int | None:
    """Where a record begins; None where its first key is another, or not as CloudTrail spells it.

    A key right behind a brace is the first of its object, and the value seen is the record's own.
    """
    if not len(record.eventVersion):
        return None
    at = _address(record.eventVersion) - base - len(_FIRST_KEY)
    return at if at > 0 and text[at : at + len(_FIRST_KEY)] == _FIRST_KEY else None


def _opened(text: memoryview) -> int:
    """How many objects and lists JSON opens, and how many braces and brackets its strings hold."""
    every = np.frombuffer(text, np.uint8)
    blocks = (every[at : at + _BLOCK_BYTES] for at in range(0, len(every), _BLOCK_BYTES))
    # The two differ in one bit, which no other byte shares.
    return sum(int(np.count_nonzero((each & ~np.uint8(0x20)) == ord("["))) for each in blocks)
