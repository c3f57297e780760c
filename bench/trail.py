"""Make a CloudTrail trail on disk. The same size gives the same bytes every time.

A record has about 1.77 KB, and gzip makes it seven times smaller, as in the trails for which the
goals were set. The records follow AWS's samples (`texts/records.json`); all names are made up. 70
of 100 records are SQS calls, and one of 100 calls failed. In each half hour only one queue has
failures, so that they come in bursts. A trail is kept below build/bench/ and used again.
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
SQS_SHARE = 0.70
FAILED_SHARE = 0.01
QUEUES = 40
# The number of sessions, each an instance with an assumed role, that make the calls.
SESSIONS = 3_000
# For this time all failures are those of one queue.
BURST_SECONDS = 1_800
# The version in the name of a trail's folder. Raise it if records or `truth.json` change.
SHAPE = 3
# The random generator is seeded anew after this number of records, so that the division into files
# does not change them.
BLOCK_RECORDS = 100
# The time from a file's last call until CloudTrail publishes the file.
DELIVERY = timedelta(minutes=5)
# The accounts and regions of the trail.
BRANCHES: list[tuple[str, str]] = [(account, region) for account, region in TEXTS["branches"]]


class Truth(NamedTuple):
    """The true counts of a trail, with which the results of readers are compared."""

    records: int
    failed_sqs_calls: int
    raw_bytes: int  # of all files, unpacked


class MadeUpTrail(NamedTuple):
    """A trail on disk."""

    root: Path  # the folder that contains AWSLogs
    truth: Truth

    def files(self) -> list[Path]:
        """Return all log files, sorted by path."""
        return sorted(self.root.rglob("*.json.gz"))


@cache
def make_trail(
    files: int, records_per_file: int, folder: Path = ROOT / "build" / "bench"
) -> MadeUpTrail:
    """Return the trail of this size below `folder`. Make it if it does not exist yet.

    Trails with the same total number of records have the same failed calls, if the number of
    records in a file is a multiple of BLOCK_RECORDS.
    """
    root = folder / f"trail-{files}x{records_per_file}-v{SHAPE}"
    truth_file = root / "truth.json"
    if not truth_file.exists():
        shutil.rmtree(root, ignore_errors=True)
        with ProcessPoolExecutor(min(os.cpu_count() or 1, files)) as processes:
            write = partial(_write_file, root, files, records_per_file)
            truths = list(processes.map(write, range(files), chunksize=max(1, files // 64)))
            truth = Truth(
                records=sum(truth.records for truth in truths),
                failed_sqs_calls=sum(truth.failed_sqs_calls for truth in truths),
                raw_bytes=sum(truth.raw_bytes for truth in truths),
            )
        truth_file.write_text(json.dumps(truth._asdict()) + "\n")
    return MadeUpTrail(root, Truth(**json.loads(truth_file.read_text())))


def _write_file(root: Path, files: int, size: int, number: int) -> Truth:
    """Write one file of the trail and return its counts.

    The records of all files together are spread evenly over the day.

    Args:
        root: The trail's root.
        files: The number of files in the trail.
        size: The number of records in a file.
        number: The file's number, from 0.
    """
    branch = BRANCHES[number % len(BRANCHES)]
    first = number * size
    all_records = files * size
    texts: list[str] = []
    failed = 0
    for position in range(first, first + size):
        if (position - first) % BLOCK_RECORDS == 0:
            draw = Random(str(position))  # noqa: S311 - the files must be the same every time
        text, is_failed = _make_record(branch, draw, DAY_SECONDS * position // all_records)
        texts.append(text)
        if is_failed:
            failed += 1
    raw = f'{{"Records":[{",".join(texts)}]}}'.encode()
    # One gzip member whose header has no time. This level makes the texts seven times smaller.
    member = zlib.compressobj(level=2, wbits=31)
    content = member.compress(raw) + member.flush()
    path = root / _path_of(branch, number, DAY_SECONDS * (first + size - 1) // all_records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Truth(size, failed, len(raw))


def _path_of(branch: tuple[str, str], number: int, last_second: int) -> str:
    """Return a file's path as CloudTrail would name it.

    `last_second` is the second of the day of the file's last call. CloudTrail publishes the last
    files of a day in the next day's folder.
    """
    account, region = branch
    published = DAY + timedelta(seconds=last_second) + DELIVERY
    unique = sha256(str(number).encode()).hexdigest()[:16]
    stem = f"{account}_CloudTrail_{region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"
    return f"AWSLogs/{account}/CloudTrail/{region}/{published:%Y/%m/%d}/{stem}"


def _make_record(branch: tuple[str, str], draw: Random, second: int) -> tuple[str, bool]:
    """Return a record of this second of the day as JSON, and True if it is a failed SQS call."""
    is_sqs = draw.random() < SQS_SHARE
    failed = draw.random() < FAILED_SHARE
    kind = draw.getrandbits(16) % 4
    queue = second // BURST_SECONDS * 7 % QUEUES if failed else draw.randrange(QUEUES)
    session = _make_session(draw.randrange(SESSIONS))
    digits = f"{draw.getrandbits(704):0176x}"
    varying = {
        "time": (DAY + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "digest": digits[128:160],
        "group": digits[160:168],
        "host": digits[144:],
    }
    for position, name in enumerate(("event", "request", "message", "shared")):
        varying[name] = str(UUID(digits[32 * position : 32 * position + 32]))
    role = session["role"]
    template = _make_template(
        branch, is_sqs=is_sqs, failed=failed, kind=kind, queue=queue, role=role
    )
    return template % (varying | session), is_sqs and failed


@cache
def _make_session(number: int) -> dict[str, str]:
    """Return the fields of a caller: an instance with an assumed role."""
    draw = Random(f"session {number}")  # noqa: S311 - the session must be the same every time
    began = DAY + timedelta(seconds=draw.randrange(-3600, DAY_SECONDS))
    return {
        "role": f"{draw.choice(TEXTS['services'])}-worker",
        "key": "".join(draw.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        "instance": f"i-0{draw.getrandbits(64):016x}",
        "began": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "address": f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(256)}",
    }


@cache
def _make_template(  # noqa: PLR0913 - so much decides a record's shape
    branch: tuple[str, str], *, is_sqs: bool, failed: bool, kind: int, queue: int, role: str
) -> str:
    """Return a record as JSON in which `%(name)s` stands for each part that varies.

    Args:
        branch: Account and region.
        is_sqs: True for an SQS call, False for a call of another service.
        failed: True for a failed call.
        kind: Chooses one of four calls.
        queue: The number of the queue. It also decides how the call failed.
        role: The caller's role.
    """
    services = TEXTS["services"]
    failures = TEXTS["failures"]
    calls = TEXTS["sqs_calls"]
    if is_sqs:
        event, code, message = failures[queue % len(failures)]
        if not failed:
            event = list(calls)[kind]
        fields = {"eventName": event, **TEXTS["sqs"], **calls[event]}
    else:
        source, event = TEXTS["other_calls"][kind]
        code = "AccessDenied"
        message = "Access Denied"
        fields = {"eventSource": source, "eventName": event, **TEXTS["other"]}
    if failed:
        fields |= {"errorCode": code, "errorMessage": message}
        if is_sqs:
            fields["responseElements"] = None
    account, region = branch
    record = json.dumps({**TEXTS["record"], **fields}, separators=(",", ":"))
    return Template(record).substitute(
        account=account,
        region=region,
        role=role,
        role_id=f"AROA{sha256(role.encode()).hexdigest()[:17].upper()}",
        agent=TEXTS["agents"][len(role) % 2],
        queue=f"{services[queue % len(services)]}-{queue:02}",
        bucket=f"{services[kind]}-documents-{account}-{region}",
    )
