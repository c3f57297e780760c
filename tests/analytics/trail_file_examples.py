"""Trail files as an attacker, a broken delivery or a pedant would write them."""

from __future__ import annotations

import gzip
import json
import zlib
from functools import cache
from typing import Any

from analytics import trail_file
from tests.analytics.builders import make_burst, make_record, pack_records

GOOD = pack_records(make_burst("11-10 09:00"))
_FIRST = '"eventSource": "sqs.amazonaws.com"'


def compress(text: str | bytes) -> bytes:
    return gzip.compress(text if isinstance(text, bytes) else text.encode(), 1, mtime=0)


BOMB = gzip.compress(bytes(51 * 1024 * 1024), mtime=0)


def around(value: str) -> bytes:
    """A failed call whose request holds `value`, as it stands."""
    text = json.dumps({"Records": [make_record("11-10 10:00", requestParameters="?")]})
    return compress(text.replace('"?"', value))


def _plain(**fields: Any) -> str:
    return json.dumps({"Records": [make_record("11-10 10:00", **fields)]})


@cache
def make_unreadable_files() -> dict[str, tuple[bytes, str]]:
    """Each with its reason."""
    return {
        "truncated": (GOOD[:-20], "truncated"),
        "corrupt": (GOOD[:-8] + bytes(8), "corrupt_gzip"),
        "html": (b"<html><body>503</body></html>", "not_gzip"),
        "zipped-html": (compress("<html>"), "not_json"),
        "bomb": (BOMB, "too_large"),
        "lying-bomb": (BOMB[:-4] + b"\1\0\0\0", "too_large"),
        "members": (compress(" ") * 17, "too_many_gzip_members"),
        "values": (compress("[" + "{}," * 2_000_001 + "0]"), "too_many_json_values"),
        "digest": (compress('{"digestS3Bucket": "b"}'), "not_a_trail_file"),
        "list": (compress(f'[{{"Records": [{{{_FIRST}}}]}}]'), "not_a_trail_file"),
        "no-list": (compress('{"Records": {}}'), "not_a_trail_file"),
        "last-wins": (compress('{"Records": [{}], "Records": 5}'), "not_a_trail_file"),
        "deep": (compress("[" * 200_000), "not_json"),
        "two-values": (compress(_plain() + _plain()), "not_json"),
        "after-it": (compress(_plain() + ', "x": 1'), "not_json"),
        "closes-more": (compress(_plain() + '], "all": [{}'), "not_json"),
        "latin": (compress(b'{"Records": [{"a": "\xe4"}]}'), "not_json"),
        "control": (compress('{"Records": [{"a": "x\ty"}]}'), "not_json"),
        "escape": (compress('{"Records": [{"a": "\\x"}]}'), "not_json"),
        "comma": (compress('{"Records": [],}'), "not_json"),
        "zeros": (compress('{"Records": [{"a": 01}]}'), "not_json"),
        "nothing": (compress(""), "not_json"),
    }


_COMPACT = zlib.decompress(GOOD, 31).decode()
_COMPACT_RECORD = json.dumps(make_record("11-10 10:00"), separators=(",", ":"))
_CODES: tuple[Any, ...] = (5, "", [], {}, True, "5")
_IDS: tuple[Any, ...] = (5, None, "", {}, "5")


def make_readable_files() -> dict[str, bytes]:
    """Legal, and read whole."""
    text = _plain()
    return {
        "members": compress('{"Records"') + compress(": []}"),
        "padded": GOOD + bytes(512),
        "garbage-behind": GOOD + b"<html>",
        "named": _with_name(GOOD),
        "indented": compress(json.dumps(json.loads(text), indent=4)),
        "spaced": compress("\r\n\t " + text.replace(": ", "\n:\t") + "\n"),
        "escaped-keys": compress(text.replace('"errorCode"', '"error\\u0043ode"')),
        "escaped-source": compress(text.replace("sqs.amazonaws", "\\u0073qs.amazonaws")),
        "escaped-root": compress(text.replace('"Records"', '"\\u0052ecords"')),
        "unicode": compress(
            json.dumps(
                {"Records": [make_record("11-10 10:00", errorMessage="\u2028é😀")]},
                ensure_ascii=False,
            )
        ),
        "surrogate": compress(_plain(errorCode="\ud800", awsRegion="\udfff")),
        "raw-surrogate": compress(b'{"Records": [{"a": "\xed\xa0\x80"}]}'),
        "mark": compress(b"\xef\xbb\xbf" + text.encode()),
        "utf-16": compress(text.encode("utf-16")),
        "nested-version": around('{"eventVersion": "1", "Records": [{"errorCode": "X"}]}'),
        "nan": around("NaN"),
        "beyond-a-double": compress(text.replace('"eventID": "', '"eventID": 1e999, "x": "')),
        "code-beyond": compress(text.replace('"MessageNotInflight"', "1e999")),
        "long-number": around("9" * 5_000),
        "long-string": around(f'"{"x" * 20_000_001}"'),
        "nested": around("[" * 1_200 + "]" * 1_200),
        "empty": compress('{"Records": []}'),
        "doubled-root": compress('{"Records": 5, ' + text[1:]),
        "doubled-key": compress(
            text.replace(_FIRST, f'"eventSource": 7, "errorCode": null, {_FIRST}')
        ),
        "doubled-null": compress(text.replace('"requestID"', '"errorCode": null, "requestID"')),
        "types": pack_records([None, 7, "x", [], {}, {"eventSource": 1}]),
        "texts": pack_records([json.dumps(make_record("11-10 10:00")), *make_burst("11-10 10:01")]),
        "codes": pack_records([make_record("11-10 10:00", errorCode=code) for code in _CODES]),
        "ids": pack_records([make_record("11-10 10:00", eventID=event_id) for event_id in _IDS]),
        "envelopes": pack_records(
            [
                {"detail": make_record("11-10 10:00"), "region": "eu-west-1"},
                {"detail": None},
                {"detail": [], "eventSource": None},
                {"detail": 1, "errorCode": "x"},
            ]
        ),
        "visibility": pack_records(
            [
                make_record("11-10 10:00", requestParameters={"visibilityTimeout": seconds})
                for seconds in (30, 3e1, "30")
            ]
        ),
        "version-twice": compress(_COMPACT.replace('"eventID"', '"eventVersion":"1.0","eventID"')),
        "version-behind": compress(_COMPACT.replace('{"eventVersion":', '{"x":1,"eventVersion":')),
        "version-first": compress(f'{{"eventVersion":"1","Records":[{_COMPACT_RECORD}]}}'),
        "version-in-text": pack_records(
            [make_record("11-10 10:00", errorMessage='{"eventVersion":1')] * 2
        ),
        "next-without": compress(f'{{"Records":[{_COMPACT_RECORD},{{}},{_COMPACT_RECORD} , 7]}}'),
        "spaces-behind": compress(f'{{"Records":[{_COMPACT_RECORD} ,\n {_COMPACT_RECORD}\t]\n}}'),
        "not-ascii": compress(_COMPACT.replace('"eventID"', '"é":"😀","eventID"')),
        "many": pack_records(make_burst("11-10 10:00", calls=1_000, seconds=1)),
    }


def _with_name(written: bytes) -> bytes:
    """The same member with a file's name in its header."""
    return written[:3] + b"\x08" + written[4:10] + b"x.json\0" + written[10:]


LARGEST = b'{"Records": []' + b" " * (trail_file.MAXIMUM_LOG_FILE_BYTES - 15) + b"}"
