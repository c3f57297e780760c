"""Trail files as an attacker, a broken delivery or a pedant would write them."""

from __future__ import annotations

import gzip
import json
import zlib
from functools import cache
from typing import Any

from analytics import trail_file
from tests.analytics.authored import burst, content, record

GOOD = content(burst("11-10 09:00"))
_FIRST = '"eventSource": "sqs.amazonaws.com"'


def zipped(text: str | bytes) -> bytes:
    return gzip.compress(text if isinstance(text, bytes) else text.encode(), 1, mtime=0)


BOMB = gzip.compress(bytes(51 * 1024 * 1024), mtime=0)


def around(value: str) -> bytes:
    """A failed call whose request holds `value`, as it stands."""
    text = json.dumps({"Records": [record("11-10 10:00", requestParameters="?")]})
    return zipped(text.replace('"?"', value))


def _plain(**fields: Any) -> str:
    return json.dumps({"Records": [record("11-10 10:00", **fields)]})


@cache
def unreadable() -> dict[str, tuple[bytes, str]]:
    """Each with its reason."""
    return {
        "truncated": (GOOD[:-20], "truncated"),
        "corrupt": (GOOD[:-8] + bytes(8), "corrupt_gzip"),
        "html": (b"<html><body>503</body></html>", "not_gzip"),
        "zipped-html": (zipped("<html>"), "not_json"),
        "bomb": (BOMB, "too_large"),
        "lying-bomb": (BOMB[:-4] + b"\1\0\0\0", "too_large"),
        "members": (zipped(" ") * 17, "too_many_gzip_members"),
        "values": (zipped("[" + "{}," * 2_000_001 + "0]"), "too_many_json_values"),
        "digest": (zipped('{"digestS3Bucket": "b"}'), "not_a_trail_file"),
        "list": (zipped(f'[{{"Records": [{{{_FIRST}}}]}}]'), "not_a_trail_file"),
        "no-list": (zipped('{"Records": {}}'), "not_a_trail_file"),
        "last-wins": (zipped('{"Records": [{}], "Records": 5}'), "not_a_trail_file"),
        "deep": (zipped("[" * 200_000), "not_json"),
        "two-values": (zipped(_plain() + _plain()), "not_json"),
        "after-it": (zipped(_plain() + ', "x": 1'), "not_json"),
        "closes-more": (zipped(_plain() + '], "all": [{}'), "not_json"),
        "latin": (zipped(b'{"Records": [{"a": "\xe4"}]}'), "not_json"),
        "control": (zipped('{"Records": [{"a": "x\ty"}]}'), "not_json"),
        "escape": (zipped('{"Records": [{"a": "\\x"}]}'), "not_json"),
        "comma": (zipped('{"Records": [],}'), "not_json"),
        "zeros": (zipped('{"Records": [{"a": 01}]}'), "not_json"),
        "nothing": (zipped(""), "not_json"),
    }


_COMPACT = zlib.decompress(GOOD, 31).decode()
_COMPACT_RECORD = json.dumps(record("11-10 10:00"), separators=(",", ":"))
_CODES: tuple[Any, ...] = (5, "", [], {}, True, "5")
_IDS: tuple[Any, ...] = (5, None, "", {}, "5")


def readable() -> dict[str, bytes]:
    """Legal, and read whole."""
    text = _plain()
    return {
        "members": zipped('{"Records"') + zipped(": []}"),
        "padded": GOOD + bytes(512),
        "garbage-behind": GOOD + b"<html>",
        "named": _with_name(GOOD),
        "indented": zipped(json.dumps(json.loads(text), indent=4)),
        "spaced": zipped("\r\n\t " + text.replace(": ", "\n:\t") + "\n"),
        "escaped-keys": zipped(text.replace('"errorCode"', '"error\\u0043ode"')),
        "escaped-source": zipped(text.replace("sqs.amazonaws", "\\u0073qs.amazonaws")),
        "escaped-root": zipped(text.replace('"Records"', '"\\u0052ecords"')),
        "unicode": zipped(
            json.dumps(
                {"Records": [record("11-10 10:00", errorMessage="\u2028é😀")]}, ensure_ascii=False
            )
        ),
        "surrogate": zipped(_plain(errorCode="\ud800", awsRegion="\udfff")),
        "raw-surrogate": zipped(b'{"Records": [{"a": "\xed\xa0\x80"}]}'),
        "mark": zipped(b"\xef\xbb\xbf" + text.encode()),
        "utf-16": zipped(text.encode("utf-16")),
        "nested-version": around('{"eventVersion": "1", "Records": [{"errorCode": "X"}]}'),
        "nan": around("NaN"),
        "beyond-a-double": zipped(text.replace('"eventID": "', '"eventID": 1e999, "x": "')),
        "code-beyond": zipped(text.replace('"MessageNotInflight"', "1e999")),
        "long-number": around("9" * 5_000),
        "long-string": around(f'"{"x" * 20_000_001}"'),
        "nested": around("[" * 1_200 + "]" * 1_200),
        "empty": zipped('{"Records": []}'),
        "doubled-root": zipped('{"Records": 5, ' + text[1:]),
        "doubled-key": zipped(
            text.replace(_FIRST, f'"eventSource": 7, "errorCode": null, {_FIRST}')
        ),
        "doubled-null": zipped(text.replace('"requestID"', '"errorCode": null, "requestID"')),
        "types": content([None, 7, "x", [], {}, {"eventSource": 1}]),
        "texts": content([json.dumps(record("11-10 10:00")), *burst("11-10 10:01")]),
        "codes": content([record("11-10 10:00", errorCode=each) for each in _CODES]),
        "ids": content([record("11-10 10:00", eventID=each) for each in _IDS]),
        "envelopes": content(
            [
                {"detail": record("11-10 10:00"), "region": "eu-west-1"},
                {"detail": None},
                {"detail": [], "eventSource": None},
                {"detail": 1, "errorCode": "x"},
            ]
        ),
        "visibility": content(
            [
                record("11-10 10:00", requestParameters={"visibilityTimeout": each})
                for each in (30, 3e1, "30")
            ]
        ),
        "version-twice": zipped(_COMPACT.replace('"eventID"', '"eventVersion":"1.0","eventID"')),
        "version-behind": zipped(_COMPACT.replace('{"eventVersion":', '{"x":1,"eventVersion":')),
        "version-first": zipped(f'{{"eventVersion":"1","Records":[{_COMPACT_RECORD}]}}'),
        "version-in-text": content([record("11-10 10:00", errorMessage='{"eventVersion":1')] * 2),
        "next-without": zipped(f'{{"Records":[{_COMPACT_RECORD},{{}},{_COMPACT_RECORD} , 7]}}'),
        "spaces-behind": zipped(f'{{"Records":[{_COMPACT_RECORD} ,\n {_COMPACT_RECORD}\t]\n}}'),
        "not-ascii": zipped(_COMPACT.replace('"eventID"', '"é":"😀","eventID"')),
        "many": content(burst("11-10 10:00", calls=1_000, seconds=1)),
    }


def _with_name(written: bytes) -> bytes:
    """The same member with a file's name in its header."""
    return written[:3] + b"\x08" + written[4:10] + b"x.json\0" + written[10:]


LARGEST = b'{"Records": []' + b" " * (trail_file.MAXIMUM_LOG_FILE_BYTES - 15) + b"}"
