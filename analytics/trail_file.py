"""Read the bytes of one trail file and return its failed SQS calls.

A log file is gzipped JSON, `{"Records": [...]}`, with one record per API call. A busy account has
millions of records a day, of which few are failed SQS calls. Anyone who can put an object into the
trail's bucket, or choose the text in an API call, writes a part of these bytes.

`read_file` reads a file with the standard library. `make_file_reader` returns the fastest function
on this machine that gives the same result. `make_call_row` turns a failed call into a row for the
nightly job's tables.

Rules:

1. No file stops the run. For any bytes the result is a `FileReading`, and no exception is raised. A
   broken file has a reason and no calls, not even those before the broken place: half of a file
   must not look like a whole file with few calls. A broken record in a good file is counted by its
   reason; the other records are read.

2. Everything has a limit that a real file does not reach: 50 MB unpacked (CloudTrail's own limit),
   16 gzip members, two million JSON objects and lists, and a depth. Without limits, a small file
   could unpack to more than the memory, or keep a worker busy for hours.

3. The standard library decides the result. The native reader is faster because it does not build
   the whole of records that do not matter: isal unpacks into one buffer, and msgspec reads only a
   few fields of each record. But Python's own parser parses every record that may be a failed SQS
   call, and `read_file` reads a file again if it is unusual in any way. So the rows do not depend
   on the installed packages.

4. A call is labelled with the functions that heal uses: `find_symptom_of` and
   `find_ignore_reason`. With other rules, the report would count calls that Mendq handles
   differently.

5. The error message is not kept, because it can contain a receipt handle. Only the kind of policy
   that refused the call is kept.

This module does not remove duplicates or Mendq's own calls. `analytics/incidents.py` removes them,
after the calls of all files are read.

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
from typing import Any

from analytics.days import to_microseconds
from mendq.catalogue import find_symptom_of, name_symptom_of
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.failed_call import FailedCall, UnreadableRecord, read
from mendq.model.ignored_calls import find_ignore_reason
from mendq.model.names import DATA_EVENT_NAMES, OPERATOR_USER_AGENT

try:
    import msgspec
    import numpy as np
    from isal import igzip_lib, isal_zlib
except Exception as error:  # noqa: BLE001 - a wheel for another machine raises more than ImportError
    WHY_NOT_NATIVE = f"cannot import what the native reader needs: {error}"
else:
    WHY_NOT_NATIVE = ""

# The limits of rule 2. This one is CloudTrail's own limit on an uncompressed file.
MAXIMUM_LOG_FILE_BYTES = 50 * 1024 * 1024
# A file is one gzip member. A few more are legal gzip; thousands are an attack.
MAXIMUM_GZIP_MEMBERS = 16
# An object or list takes far more memory than its text. A real file has one per 100 bytes or more.
MAXIMUM_JSON_CONTAINERS = 2_000_000
# The nesting depth to which Python's parser reads a file. Other parsers have lower limits, so no
# parser accepts a file that is refused here.
_MAXIMUM_NESTING_DEPTH = 3_000
# The most digits of an integer that Python converts. Longer integers are legal JSON and become
# floats, because no field that is read here contains one.
_MAXIMUM_INTEGER_DIGITS = 4_300
# Deflate compresses at most 1,032 to 1. A file that claims a larger unpacked size is broken.
_MAXIMUM_COMPRESSION_RATIO = 1_032
GZIP_MAGIC = b"\x1f\x8b"
SQS_EVENT_SOURCE = "sqs.amazonaws.com"
# The reasons of `read` for valid records that are not failed SQS calls.
_OTHER_RECORD_REASONS = frozenset({"not_failed", "not_sqs"})
_CHUNK_BYTES = 32 * 1024
# The smallest possible size of a gzip member: header and trailer.
_MINIMUM_MEMBER_BYTES = 18
# The values of the flags byte in a gzip header that the native reader accepts: no flags, or only
# a file name (rule 3).
_PLAIN_GZIP_FLAGS = (0, 8)
# The queue of a call whose record names none.
UNRESOLVED_QUEUE = "unresolved"


class UnreadableFileError(Exception):
    """A trail file is unreadable. The argument is the reason for the table `quality`."""


@dataclass(frozen=True)
class FileReading:
    """The result of reading one trail file.

    Attributes:
        reason: Why the file is unreadable; None if it was read. An unreadable file has no records
            and no calls (rule 1).
        record_count: The number of records.
        calls: The failed SQS calls, each with its record's position in the file.
        unreadable_count_by_reason: The number of records that cannot be read, by reason.
    """

    reason: str | None = None
    record_count: int = 0
    calls: tuple[tuple[int, FailedCall], ...] = ()
    unreadable_count_by_reason: Mapping[str, int] = field(default_factory=dict)


def read_file(content: bytes) -> FileReading:
    """Read the bytes of a trail file with the standard library. Never raise an error."""
    try:
        records = _get_records(_parse_document(gunzip(content)))
    except UnreadableFileError as error:
        return FileReading(reason=str(error))
    return read_records(len(records), enumerate(records))


def read_records(
    number_of_records: int, candidate_records: Iterable[tuple[int, Any]]
) -> FileReading:
    """Return the failed SQS calls among a file's records, and count the unreadable records.

    Args:
        number_of_records: The number of records in the file.
        candidate_records: The position and value of each record that may be a failed SQS call, or
            may be unreadable. Other records may be left out.
    """
    calls: list[tuple[int, FailedCall]] = []
    unreadable_count_by_reason: Counter[str] = Counter()
    for position, record in candidate_records:
        failed_call_or_reason = (
            read(record) if isinstance(record, dict) else UnreadableRecord("not_a_record")
        )
        if isinstance(failed_call_or_reason, FailedCall):
            calls.append((position, failed_call_or_reason))
        elif failed_call_or_reason.reason not in _OTHER_RECORD_REASONS:
            unreadable_count_by_reason[failed_call_or_reason.reason] += 1
    return FileReading(
        None, number_of_records, tuple(calls), dict(sorted(unreadable_count_by_reason.items()))
    )


def gunzip(content: bytes) -> bytes:
    """Return the unpacked bytes of a gzip file, at most MAXIMUM_LOG_FILE_BYTES (rule 2).

    The limit applies to the bytes that are really unpacked, whatever size the file claims.

    Raises:
        UnreadableFileError: The file is not valid, or exceeds the limit (`too_large`).
    """
    if not content:
        raise UnreadableFileError("empty")
    if not content.startswith(GZIP_MAGIC):
        raise UnreadableFileError("not_gzip")
    try:
        return b"".join(_unpack_members(content))
    except zlib.error as error:
        raise UnreadableFileError("corrupt_gzip") from error


def _unpack_members(packed_bytes: bytes) -> Iterator[bytes]:
    """Yield the unpacked text of each gzip member of a file.

    Raise UnreadableFileError if a member is cut off, or if the file exceeds a limit of rule 2.
    Raise zlib.error if a member is corrupt.
    """
    byte_count_left = MAXIMUM_LOG_FILE_BYTES
    for _ in range(MAXIMUM_GZIP_MEMBERS):
        gzip_member = zlib.decompressobj(wbits=31)
        unpacked_bytes = gzip_member.decompress(packed_bytes, byte_count_left + 1)
        byte_count_left -= len(unpacked_bytes)
        if byte_count_left < 0:
            raise UnreadableFileError("too_large")
        if not gzip_member.eof:
            raise UnreadableFileError("truncated")
        yield unpacked_bytes
        packed_bytes = gzip_member.unused_data
        if not packed_bytes.startswith(GZIP_MAGIC):
            return
    raise UnreadableFileError("too_many_gzip_members")


def parse_json(json_text: bytes) -> Any:
    """Return the value of a JSON text, parsed by Python's parser.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: The text is nested too deeply.
    """
    with _allow_deep_recursion():
        return json.loads(json_text, parse_int=_parse_integer)


def _parse_document(json_text: bytes) -> Any:
    """Return the JSON value of an unpacked file. Raise UnreadableFileError for other content."""
    # A shorter text cannot have too many brackets, so it need not be searched.
    if len(json_text) > MAXIMUM_JSON_CONTAINERS:
        container_count = json_text.count(b"{") + json_text.count(b"[")
        if container_count > MAXIMUM_JSON_CONTAINERS:
            raise UnreadableFileError("too_many_json_values")
    try:
        return parse_json(json_text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError("not_json") from error


def _parse_first_value(json_text: bytes) -> Any:
    """Return the first JSON value in a text; more may follow. Raise the errors of `parse_json`."""
    with _allow_deep_recursion():
        return _JSON_DECODER.raw_decode(json_text.decode())[0]


def _parse_integer(digits: str) -> int | float:
    """Return an integer in JSON. If it has too many digits for Python, return it as a float."""
    return int(digits) if len(digits) <= _MAXIMUM_INTEGER_DIGITS else float(digits)


_JSON_DECODER = json.JSONDecoder(parse_int=_parse_integer)


@contextmanager
def _allow_deep_recursion() -> Iterator[None]:
    """Let Python's JSON parser follow lists and objects to a depth of _MAXIMUM_NESTING_DEPTH."""
    previous_recursion_limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(previous_recursion_limit, _MAXIMUM_NESTING_DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(previous_recursion_limit)


def _get_records(document: Any) -> list[Any]:
    """Return the list of records in a file's JSON value.

    Raise UnreadableFileError if there is no list, as in digest files and other JSON.
    """
    records = document.get("Records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise UnreadableFileError("not_a_trail_file")
    return records


# The fields of `make_call_row`, with their Spark types.
CALL_FIELDS: Mapping[str, str] = {
    "position": "bigint",  # of the record in its file
    "event_id": "string",
    "event_time": "bigint",  # microseconds since 1970
    "event_name": "string",
    "error_code": "string",
    "queue_arn": "string",
    "account": "string",
    "region": "string",
    "principal_arn": "string",
    "request_id": "string",
    "symptom": "string",
    "ignored": "string",  # why heal does not handle the call; null if it does
    "is_own_look": "boolean",
    "requested_visibility_seconds": "bigint",
    "refused_by": "string",
}
CALL_SCHEMA = f"struct<{', '.join(f'{name}: {kind}' for name, kind in CALL_FIELDS.items())}>"
# The calls that operators make with `mendq scan`, `redrive` and `quarantine`. Sends are not in the
# set, because the report must show that an operator's message could not be sent.
_OPERATOR_CALLS = frozenset(DATA_EVENT_NAMES) - {"SendMessage", "SendMessageBatch"}


def make_call_row(position: int, call: FailedCall) -> dict[str, Any]:
    """Return a failed call as a row with the fields of CALL_FIELDS (rules 4 and 5).

    `is_own_look` is true if the call is one of _OPERATOR_CALLS and its user agent says that an
    operator made it with the mendq command. A forged user agent changes only the report, because
    heal acts on the call anyway.
    """
    ignore_reason = find_ignore_reason(
        call, find_symptom_of(call), AccountAndRegion(call.account, call.region)
    )
    is_operator_call = call.event_name in _OPERATOR_CALLS and is_operator_user_agent(
        call.user_agent
    )
    refused_by = call.refused_by
    return {
        "position": position,
        "event_id": call.event_id,
        "event_time": to_microseconds(call.event_time),
        "event_name": call.event_name,
        "error_code": call.error_code,
        "queue_arn": call.queue_arn or UNRESOLVED_QUEUE,
        "account": call.account,
        "region": call.region,
        "principal_arn": call.principal_arn,
        "request_id": call.request_id,
        "symptom": name_symptom_of(call),
        "ignored": ignore_reason,
        "is_own_look": is_operator_call,
        "requested_visibility_seconds": call.requested_visibility_seconds,
        # Spark cannot read an enumeration.
        "refused_by": refused_by and str(refused_by),
    }


def is_operator_user_agent(user_agent: str) -> bool:
    """Return True if a user agent is that of an operator's `mendq` command.

    CloudTrail puts some user agents in brackets.
    """
    return user_agent.lstrip("[").startswith(f"{OPERATOR_USER_AGENT} ")


def make_file_reader(*, can_use_native: bool = True) -> Callable[[Any], FileReading]:
    """Return a function that reads the bytes of a trail file, or a view of them.

    It never raises an error. It is the native reader's function if `can_use_native` is True and the
    reader's packages can be imported. Otherwise it uses the standard library (rule 3).
    """
    if can_use_native and not WHY_NOT_NATIVE:
        return _NativeReader().read_file
    return _read_file_view


def _read_file_view(content: Any) -> FileReading:
    return read_file(bytes(content))


if not WHY_NOT_NATIVE:
    # isal can unpack into an existing buffer only with this private class. The type stubs do not
    # say that the class accepts bytes, or that IsalError is an exception.
    _GzipReader: Any = isal_zlib._GzipReader  # noqa: SLF001
    _UNPACKING_ERRORS: Any = (OSError, EOFError, igzip_lib.IsalError)

    class _Record(msgspec.Struct, gc=False):
        eventVersion: msgspec.Raw = msgspec.Raw()  # noqa: N815 - CloudTrail's own words
        eventSource: str | None = None  # noqa: N815
        errorCode: str | None = None  # noqa: N815

    class _File(msgspec.Struct, gc=False):
        Records: list[_Record]

    class _RawFile(msgspec.Struct, gc=False):
        Records: list[msgspec.Raw]

    def _get_address(view: Any) -> int:
        """Return the memory address of a view's first byte."""
        return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


# Every record that CloudTrail writes begins with this key.
_FIRST_RECORD_KEY = b'{"eventVersion":'
_BLOCK_BYTES = 64 * 1024


class _NativeReader:
    """The native reader: reads trail files with isal and msgspec (rule 3).

    It unpacks all files into the same buffer, one after the other.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._field_decoder = msgspec.json.Decoder(_File)
        self._raw_decoder = msgspec.json.Decoder(_RawFile)

    def read_file(self, content: Any) -> FileReading:
        """Read the bytes of a trail file, or a view of them. Never raise an error."""
        file_text = self._unpack_plain_gzip(memoryview(content))
        if file_text is not None:
            reading = self._read_text(file_text)
            if reading is not None:
                return reading
        return read_file(bytes(content))

    def _unpack_plain_gzip(self, content: memoryview) -> memoryview | None:
        """Unpack a file that is one plain gzip member. Return None if it is anything else.

        The result is a part of the buffer, which the next file overwrites.
        """
        if len(content) < _MINIMUM_MEMBER_BYTES or content[3] not in _PLAIN_GZIP_FLAGS:
            return None
        claimed_byte_count = int.from_bytes(content[-4:], "little")
        if claimed_byte_count > min(
            MAXIMUM_LOG_FILE_BYTES, _MAXIMUM_COMPRESSION_RATIO * len(content)
        ):
            return None
        # Provide one byte more than the file claims, to notice if it unpacks to more.
        if len(self._buffer) <= claimed_byte_count:
            self._buffer = bytearray(claimed_byte_count + 1)
        buffer = memoryview(self._buffer)
        gzip_reader = _GzipReader(content, _CHUNK_BYTES)
        try:
            filled_byte_count = 0
            while added_byte_count := gzip_reader.readinto(
                buffer[filled_byte_count : claimed_byte_count + 1]
            ):
                filled_byte_count += added_byte_count
        except _UNPACKING_ERRORS:
            return None
        if filled_byte_count != claimed_byte_count:
            return None
        return buffer[:filled_byte_count]

    def _read_text(self, file_text: memoryview) -> FileReading | None:
        """Read an unpacked file. Return None if it is unusual, so that `read_file` must read it."""
        if (
            len(file_text) > MAXIMUM_JSON_CONTAINERS
            and _count_brackets(file_text) > MAXIMUM_JSON_CONTAINERS
        ):
            return None
        try:
            str(file_text, "utf-8")  # msgspec does not check the strings that it skips
            records = self._field_decoder.decode(file_text).Records
            positions = [
                position for position, record in enumerate(records) if _is_candidate_record(record)
            ]
            parsed_records = self._parse_records(file_text, records, positions)
            return read_records(len(records), zip(positions, parsed_records, strict=True))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _parse_records(
        self, file_text: memoryview, records: list[_Record], positions: list[int]
    ) -> list[Any]:
        """Return the records at these positions, parsed by Python's parser."""
        parsed_records: list[Any] = []
        text_address = _get_address(file_text)
        for position in positions:
            record_begin = _find_record_begin(file_text, text_address, records, position)
            record_end = _find_record_begin(file_text, text_address, records, position + 1)
            if record_begin is None or record_end is None:
                return self._parse_records_slowly(file_text, positions)
            parsed_records.append(_parse_first_value(bytes(file_text[record_begin:record_end])))
        return parsed_records

    def _parse_records_slowly(self, file_text: memoryview, positions: list[int]) -> list[Any]:
        """Return the records at these positions, even if their first key is not the usual one."""
        raw_records = self._raw_decoder.decode(file_text).Records
        return [parse_json(bytes(raw_records[position])) for position in positions]


def _is_candidate_record(record: _Record) -> bool:
    """Return True if a record may be a failed SQS call, or unreadable."""
    if record.eventSource is None:
        return True
    return record.eventSource == SQS_EVENT_SOURCE and bool(record.errorCode)


def _find_record_begin(
    file_text: memoryview, text_address: int, records: list[_Record], position: int
) -> int | None:
    """Return the offset in `file_text` at which a record begins.

    For the position after the last record, return the text's length. Return None if the record does
    not begin with _FIRST_RECORD_KEY, as CloudTrail's records do. The key stands directly after a
    brace, so it must be the first key of its object.

    Args:
        file_text: The unpacked file.
        text_address: The memory address of its first byte.
        records: The records of the file, whose values are views of `file_text`.
        position: The position of the record.
    """
    if position == len(records):
        return len(file_text)
    version_value = records[position].eventVersion
    if not len(version_value):
        return None
    record_begin = _get_address(version_value) - text_address - len(_FIRST_RECORD_KEY)
    if (
        record_begin <= 0
        or file_text[record_begin : record_begin + len(_FIRST_RECORD_KEY)] != _FIRST_RECORD_KEY
    ):
        return None
    return record_begin


def _count_brackets(json_text: memoryview) -> int:
    """Count the `{` and `[` in a JSON text, including those in its strings."""
    byte_values = np.frombuffer(json_text, np.uint8)
    number_of_brackets = 0
    for block_begin in range(0, len(byte_values), _BLOCK_BYTES):
        block = byte_values[block_begin : block_begin + _BLOCK_BYTES]
        # `{` and `[` differ only in this bit, and no other byte becomes `[` without the bit.
        number_of_brackets += int(np.count_nonzero((block & ~np.uint8(0x20)) == ord("[")))
    return number_of_brackets
