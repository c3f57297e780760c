"""A made-up trail on disk, the same every time.

Some 1.77 KB a record and 7 : 1 by gzip, as the trails that the goals were set on. The shapes are
AWS's samples (`texts/records.json`); every name in them is made up. 70 of 100 records are calls of
SQS, one of 100 failed, and who fails is one queue of the half hour, so that failures come in
bursts. What was made once lies below build/bench/ and is taken again.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from string import Template
from typing import NamedTuple
from uuid import UUID

from bench.rounds import ROOT

TEXTS = json.loads((ROOT / "bench" / "texts" / "records.json").read_text())
DAY = datetime(2026, 11, 10, tzinfo=UTC)
DAY_SECONDS = 86_400
SQS_SHARE, FAILED_SHARE = 0.70, 0.01
QUEUES, SESSIONS, BURST_SECONDS = 40, 3_000, 1_800
# A part of the cache's name: another shape of the records, or of their truth, is another trail.
SHAPE = 3
BLOCK_RECORDS = 100
DELIVERY = timedelta(minutes=5)
BRANCHES: list[tuple[str, str]] = [(account, region) for account, region in TEXTS["branches"]]


class Truth(NamedTuple):
    """What lies in a trail; `raw_bytes` is what its files hold when inflated."""

    records: int
    failed_sqs_calls: int
    raw_bytes: int


class Trail(NamedTuple):
    """A trail's root (the parent of AWSLogs), and what lies in it."""

    root: Path
    truth: Truth

    def files(self) -> list[Path]:
        """Every file."""
        return sorted(self.root.rglob("*.json.gz"))


@cache
def trail(files: int, records_per_file: int, folder: Path = ROOT / "build" / "bench") -> Trail:
    """Return the trail of that size below `folder`, made where it is not there yet.

    The same number of records gives the same failed calls, in however many files of hundreds.
    """
    root = folder / f"trail-{files}x{records_per_file}-v{SHAPE}"
    truth_file = root / "truth.json"
    if not truth_file.exists():
        shutil.rmtree(root, ignore_errors=True)
        with ProcessPoolExecutor(min(os.cpu_count() or 1, files)) as processes:
            write = partial(_write, root, files, records_per_file)
            written = processes.map(write, range(files), chunksize=max(1, files // 64))
            truth = Truth(*map(sum, zip(*written, strict=True)))
        truth_file.write_text(json.dumps(truth._asdict()) + "\n")
    return Trail(root, Truth(**json.loads(truth_file.read_text())))


def _write(root: Path, files: int, size: int, number: int) -> Truth:
    """Write a file; records follow each other through the day, from file to file."""
    branch = BRANCHES[number % len(BRANCHES)]
    first, every = number * size, files * size
    texts, failed = [], 0
    for at in range(first, first + size):
        if (at - first) % BLOCK_RECORDS == 0:
            draw = Random(str(at))  # noqa: S311 - the same files every time are the point
        text, is_failed = _record(branch, draw, DAY_SECONDS * at // every)
        texts.append(text)
        failed += is_failed
    raw = f'{{"Records":[{",".join(texts)}]}}'.encode()
    # One member without a time in it, at the level that gives 7 : 1 on these texts.
    member = zlib.compressobj(level=2, wbits=31)
    content = member.compress(raw) + member.flush()
    path = root / _name(branch, number, DAY_SECONDS * (first + size - 1) // every)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Truth(size, failed, len(raw))


def _name(branch: tuple[str, str], number: int, last_second: int) -> str:
    """As CloudTrail names them; the last files of a day lie in the next day's folder."""
    account, region = branch
    published = DAY + timedelta(seconds=last_second) + DELIVERY
    unique = sha256(str(number).encode()).hexdigest()[:16]
    stem = f"{account}_CloudTrail_{region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"
    return f"AWSLogs/{account}/CloudTrail/{region}/{published:%Y/%m/%d}/{stem}"


def _record(branch: tuple[str, str], draw: Random, second: int) -> tuple[str, bool]:
    """A record as JSON, and whether it is a failed call of SQS."""
    is_sqs, failed = draw.random() < SQS_SHARE, draw.random() < FAILED_SHARE
    kind = draw.getrandbits(16) % 4
    queue = second // BURST_SECONDS * 7 % QUEUES if failed else draw.randrange(QUEUES)
    session = _session(draw.randrange(SESSIONS))
    digits = f"{draw.getrandbits(704):0176x}"
    varying = {
        "time": (DAY + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "digest": digits[128:160],
        "group": digits[160:168],
        "host": digits[144:],
    }
    for n, name in enumerate(("event", "request", "message", "shared")):
        varying[name] = str(UUID(digits[32 * n : 32 * n + 32]))
    role = session["role"]
    template = _template(branch, is_sqs=is_sqs, failed=failed, kind=kind, queue=queue, role=role)
    return template % (varying | session), is_sqs and failed


@cache
def _session(number: int) -> dict[str, str]:
    """An instance that assumed a role."""
    draw = Random(f"session {number}")  # noqa: S311 - the same again
    began = DAY + timedelta(seconds=draw.randrange(-3600, DAY_SECONDS))
    return {
        "role": f"{draw.choice(TEXTS['services'])}-worker",
        "key": "".join(draw.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        "instance": f"i-0{draw.getrandbits(64):016x}",
        "began": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "address": f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(256)}",
    }


@cache
def _template(  # noqa: PLR0913 - so much decides a record's shape
    branch: tuple[str, str], *, is_sqs: bool, failed: bool, kind: int, queue: int, role: str
) -> str:
    """JSON with %(name)s for what varies."""
    services, failures, calls = TEXTS["services"], TEXTS["failures"], TEXTS["sqs_calls"]
    if is_sqs:
        event, code, message = failures[queue % len(failures)]
        event = event if failed else list(calls)[kind]
        called = {"eventName": event, **TEXTS["sqs"], **calls[event]}
    else:
        source, event = TEXTS["other_calls"][kind]
        code, message = "AccessDenied", "Access Denied"
        called = {"eventSource": source, "eventName": event, **TEXTS["other"]}
    if failed:
        called |= {"errorCode": code, "errorMessage": message}
        called |= {"responseElements": None} if is_sqs else {}
    account, region = branch
    return Template(json.dumps({**TEXTS["record"], **called}, separators=(",", ":"))).substitute(
        account=account,
        region=region,
        role=role,
        role_id=f"AROA{sha256(role.encode()).hexdigest()[:17].upper()}",
        agent=TEXTS["agents"][len(role) % 2],
        queue=f"{services[queue % len(services)]}-{queue:02}",
        bucket=f"{services[kind]}-documents-{account}-{region}",
    )
