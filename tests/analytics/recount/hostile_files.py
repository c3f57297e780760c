"""Trail files that hold the same records in ever other bytes."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from tests.analytics.recount.hostile_calls import Publication

KEYS = re.compile(r'"(errorCode|eventID|eventSource|eventTime|Records)":')


def write_trail(
    random: Random, trail: Path, published: list[Publication], largest_file: int
) -> int:
    """Every record into a file of its account, region and publish day; how many files there are."""

    def get_file_key(each: Publication) -> tuple[str, str, str]:
        return each.account, each.region, each.at.strftime("%Y/%m/%d")

    ordered = sorted(published, key=lambda publication: (get_file_key(publication), publication.at))
    numbers = 0
    for (account, region, day), group in groupby(ordered, key=get_file_key):
        waiting = list(group)
        while waiting:
            taken = random.randrange(1, largest_file)
            records = [publication.record for publication in waiting[:taken]]
            stamp = waiting[0].at.strftime("%Y%m%dT%H%MZ")
            waiting = waiting[taken:]
            numbers += 1
            name = f"{account}_CloudTrail_{region}_{stamp}_{random.getrandbits(64):016x}.json.gz"
            path = make_folder_path(trail, account, region, day) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_records(random, records))
    return numbers


def make_folder_path(
    trail: Path, account: str, region: str, day: str, kind: str = "CloudTrail"
) -> Path:
    """One account of the three lies under its organization."""
    above = "AWSLogs/o-exampleorgid" if account.startswith("9") else "AWSLogs"
    return trail / above / account / kind / region / day


def encode_records(random: Random, records: list[Any]) -> bytes:
    encoding = random.choice(["utf-8"] * 8 + ["utf-8-sig", "utf-16"])
    text = random.choice(WRITINGS)(random, records).encode(encoding, "surrogatepass")
    if random.random() < 0.2:
        return gzip.compress(text, compresslevel=0, mtime=0)
    return gzip.compress(text, mtime=0)


def write_compact(random: Random, records: list[Any]) -> str:
    return json.dumps({"Records": records}, separators=(",", ":"), ensure_ascii=False)


def write_indented(random: Random, records: list[Any]) -> str:
    return "\n\t " + json.dumps({"Records": records}, indent=2, ensure_ascii=False) + " \r\n"


def write_escaped_keys(random: Random, records: list[Any]) -> str:
    """`"error\\u0043ode":` for `"errorCode":`; the slash of every ARN escaped."""

    def escape(found: re.Match[str]) -> str:
        at = random.randrange(len(found[1]))
        return f'"{found[1][:at]}\\u{ord(found[1][at]):04X}{found[1][at + 1 :]}":'

    text = json.dumps({"Records": records}, separators=(",", ":"))
    return KEYS.sub(escape, text).replace("/", "\\/")


def write_keys_twice(random: Random, records: list[Any]) -> str:
    """A key that is there twice: the last one counts. Numbers that only some readers take."""
    text = json.dumps({"Records": records})
    spoiling = '{"errorCode": "InternalFailure", "big": 1' + "0" * 400 + ', "not": NaN, '
    return re.sub(r'\{(?="eventVersion")', lambda _: spoiling, text)


WRITINGS: tuple[Callable[[Random, list[Any]], str], ...] = (
    write_compact, write_indented, write_escaped_keys, write_keys_twice,
)  # fmt: skip
