"""Files that hold nothing which counts, and files that do although they look odd."""

from __future__ import annotations

import gzip

MEGABYTE = 1_000_000


def make_unreadable_files(text: bytes) -> dict[str, bytes]:
    """Return unreadable files with records that must not be counted.

    `trail_file_examples` has more.
    """
    whole = _compress(text)
    return {
        "truncated.json.gz": whole[: len(whole) // 2],
        "wrong-sum.json.gz": whole[:-8] + b"\0\0\0\0" + whole[-4:],
        "page.json.gz": b"<!DOCTYPE html><title>503 Slow Down</title>",
        "empty.json.gz": b"",
        "two.json.gz": whole + whole,
        "lower.json.gz": _compress(text.replace(b'"Records"', b'"records"')),
        "deep.json.gz": _compress(b'{"Records": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        "60-megabytes.json.gz": _compress(text[:-1] + b" " * (60 * MEGABYTE) + b"}"),
        **dict.fromkeys(("other.json", "_hidden.json.gz", ".hidden.json.gz", "log.gz"), whole),
    }


def make_odd_files(texts: list[bytes]) -> dict[str, bytes]:
    """Files whose names or sizes are unusual, each with another text of records."""
    names = [
        "111122223333_CloudTrail-Digest_us-east-1_copy.json.gz", "a b+c%20d=e.json.gz",
        "[ab]{c,d}*?.json.gz", "ä\u2028.json.gz", "CloudTrail-Insight.json.gz", "#x.json.gz",
        "co:lon.json.gz",
    ]  # fmt: skip
    files = {name: _compress(text) for name, text in zip(names, texts, strict=False)}
    large = texts[len(names)]
    halves, trailed = texts[len(names) + 1 : len(names) + 3]
    files["halves.json.gz"] = _compress(halves[:99]) + _compress(halves[99:])
    files["trailed.json.gz"] = _compress(trailed) + b"\0\0 and so on"
    return {**files, "large.json.gz": _compress(large[:-1] + b" " * (48 * MEGABYTE) + b"}")}


NEIGHBOURS = (
    "CloudTrail-Digest", "CloudTrail-Insight", "CloudTrail-NetworkActivity",
    "CloudTrail-Aggregated", "Config", "vpcflowlogs",
)  # fmt: skip


def _compress(text: bytes) -> bytes:
    return gzip.compress(text, compresslevel=1, mtime=0)
