"""Make a CloudTrail trail on disk. The same size gives the same bytes every time.

A record has about 1.77 KB, and gzip makes it seven times smaller, as in the trails for which the
goals were set. The records follow AWS's samples (`texts/records.json`); all names are made up. 70
of 100 records are SQS calls, and one of 100 calls failed. In each half hour all failed SQS calls
are about queues of one name, so that they come in bursts. A trail is kept below build/bench/ and
used again.
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

RECORD_SAMPLES = json.loads((ROOT / "bench" / "texts" / "records.json").read_text())
TRAIL_DAY = datetime(2026, 11, 10, tzinfo=UTC)
DAY_SECONDS = 86_400
SQS_CALL_SHARE = 0.70
FAILED_CALL_SHARE = 0.01
QUEUE_COUNT = 40
# The number of sessions, each an instance with an assumed role, that make the calls.
SESSION_COUNT = 3_000
# The length of a burst. All SQS calls that fail in this time are about queues of one name.
BURST_SECONDS = 1_800
# The version in the name of a trail's folder. Raise it if records or `truth.json` change.
TRAIL_VERSION = 3
# The random generator is seeded anew after this number of records of a file, so that the division
# into files does not change which calls fail.
RECORDS_PER_SEED = 100
# The time from a file's last call until CloudTrail publishes the file.
DELIVERY_DELAY = timedelta(minutes=5)
# The accounts and regions of the trail.
ACCOUNTS_AND_REGIONS: list[tuple[str, str]] = [
    (account, region) for account, region in RECORD_SAMPLES["branches"]
]


class TrueCounts(NamedTuple):
    """The true counts of a made-up trail. The results of readers are compared with them."""

    records: int
    failed_sqs_calls: int
    raw_bytes: int  # of all files, unpacked


class MadeUpTrail(NamedTuple):
    """A made-up trail on disk."""

    root: Path  # the folder that contains AWSLogs
    true_counts: TrueCounts

    def list_files(self) -> list[Path]:
        """Return all log files, sorted by path."""
        return sorted(self.root.rglob("*.json.gz"))


@cache
def make_trail(
    file_count: int, records_per_file: int, folder: Path = ROOT / "build" / "bench"
) -> MadeUpTrail:
    """Return the trail of this size below `folder`. Make it if it does not exist yet.

    In two trails with the same total number of records, the same calls fail at the same times, if
    the number of records in a file is a multiple of RECORDS_PER_SEED. Their accounts and Regions
    can differ.
    """
    trail_root = folder / f"trail-{file_count}x{records_per_file}-v{TRAIL_VERSION}"
    true_counts_file = trail_root / "truth.json"
    if not true_counts_file.exists():
        shutil.rmtree(trail_root, ignore_errors=True)
        with ProcessPoolExecutor(min(os.cpu_count() or 1, file_count)) as process_pool:
            write_file = partial(_write_file, trail_root, file_count, records_per_file)
            file_counts = list(
                process_pool.map(write_file, range(file_count), chunksize=max(1, file_count // 64))
            )
            true_counts = TrueCounts(
                records=sum(counts_of_file.records for counts_of_file in file_counts),
                failed_sqs_calls=sum(
                    counts_of_file.failed_sqs_calls for counts_of_file in file_counts
                ),
                raw_bytes=sum(counts_of_file.raw_bytes for counts_of_file in file_counts),
            )
        true_counts_file.write_text(json.dumps(true_counts._asdict()) + "\n")
    return MadeUpTrail(trail_root, TrueCounts(**json.loads(true_counts_file.read_text())))


def _write_file(
    trail_root: Path, file_count: int, records_per_file: int, file_number: int
) -> TrueCounts:
    """Write one file of the trail and return its counts.

    The records of all files together are spread evenly over the day.

    Args:
        trail_root: The trail's root.
        file_count: The number of files in the trail.
        records_per_file: The number of records in a file.
        file_number: The file's number, from 0.
    """
    account_and_region = ACCOUNTS_AND_REGIONS[file_number % len(ACCOUNTS_AND_REGIONS)]
    first_record_position = file_number * records_per_file
    record_count = file_count * records_per_file
    record_texts: list[str] = []
    failed_sqs_call_count = 0
    for record_position in range(first_record_position, first_record_position + records_per_file):
        if (record_position - first_record_position) % RECORDS_PER_SEED == 0:
            random_generator = Random(str(record_position))  # noqa: S311 - the files must be the same every time
        record_text, is_failed_call = _make_record(
            account_and_region, random_generator, DAY_SECONDS * record_position // record_count
        )
        record_texts.append(record_text)
        if is_failed_call:
            failed_sqs_call_count += 1
    json_bytes = f'{{"Records":[{",".join(record_texts)}]}}'.encode()
    # One gzip member whose header has no time. This level makes the texts seven times smaller.
    compressor = zlib.compressobj(level=2, wbits=31)
    compressed_bytes = compressor.compress(json_bytes) + compressor.flush()
    path = trail_root / _make_path(
        account_and_region,
        file_number,
        DAY_SECONDS * (first_record_position + records_per_file - 1) // record_count,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed_bytes)
    return TrueCounts(records_per_file, failed_sqs_call_count, len(json_bytes))


def _make_path(
    account_and_region: tuple[str, str], file_number: int, last_second_of_day: int
) -> str:
    """Return the path that CloudTrail would give a file, below the trail's root.

    `last_second_of_day` is the time of the file's last call, in seconds since midnight. CloudTrail
    publishes the last files of a day in the next day's folder.
    """
    account, region = account_and_region
    published_at = TRAIL_DAY + timedelta(seconds=last_second_of_day) + DELIVERY_DELAY
    file_suffix = sha256(str(file_number).encode()).hexdigest()[:16]
    file_name = f"{account}_CloudTrail_{region}_{published_at:%Y%m%dT%H%MZ}_{file_suffix}.json.gz"
    return f"AWSLogs/{account}/CloudTrail/{region}/{published_at:%Y/%m/%d}/{file_name}"


def _make_record(
    account_and_region: tuple[str, str], random_generator: Random, second_of_day: int
) -> tuple[str, bool]:
    """Return a record as JSON, and True if it is a failed SQS call.

    `second_of_day` is the time of the call, in seconds since midnight.
    """
    is_sqs_call = random_generator.random() < SQS_CALL_SHARE
    is_failed_call = random_generator.random() < FAILED_CALL_SHARE
    call_sample_number = random_generator.getrandbits(16) % 4
    queue_number = (
        second_of_day // BURST_SECONDS * 7 % QUEUE_COUNT
        if is_failed_call
        else random_generator.randrange(QUEUE_COUNT)
    )
    session_fields = _make_session(random_generator.randrange(SESSION_COUNT))
    random_hex_digits = f"{random_generator.getrandbits(704):0176x}"
    varying_fields = {
        "time": (TRAIL_DAY + timedelta(seconds=second_of_day)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "digest": random_hex_digits[128:160],
        "group": random_hex_digits[160:168],
        "host": random_hex_digits[144:],
    }
    for id_position, name in enumerate(("event", "request", "message", "shared")):
        varying_fields[name] = str(
            UUID(random_hex_digits[32 * id_position : 32 * id_position + 32])
        )
    role_name = session_fields["role"]
    record_template = _make_template(
        account_and_region,
        is_sqs_call=is_sqs_call,
        is_failed_call=is_failed_call,
        call_number=call_sample_number,
        queue_number=queue_number,
        role_name=role_name,
    )
    return record_template % (varying_fields | session_fields), is_sqs_call and is_failed_call


@cache
def _make_session(session_number: int) -> dict[str, str]:
    """Return the fields of a caller's session: an instance that uses an assumed role."""
    random_generator = Random(f"session {session_number}")  # noqa: S311 - the session must be the same every time
    session_start = TRAIL_DAY + timedelta(seconds=random_generator.randrange(-3600, DAY_SECONDS))
    return {
        "role": f"{random_generator.choice(RECORD_SAMPLES['services'])}-worker",
        "key": "".join(random_generator.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)),
        "instance": f"i-0{random_generator.getrandbits(64):016x}",
        "began": session_start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "address": ".".join(["10", *(str(random_generator.randrange(256)) for _ in range(3))]),
    }


@cache
def _make_template(  # noqa: PLR0913 - so much decides a record's shape
    account_and_region: tuple[str, str],
    *,
    is_sqs_call: bool,
    is_failed_call: bool,
    call_number: int,
    queue_number: int,
    role_name: str,
) -> str:
    """Return a record as JSON with a placeholder `%(name)s` for each part that varies.

    Args:
        account_and_region: Account and region.
        is_sqs_call: True for an SQS call, False for a call of another service.
        is_failed_call: True for a failed call.
        call_number: Chooses one of four calls. Not used for a failed SQS call.
        queue_number: The number of the queue. It also decides which SQS call failed, and how.
        role_name: The caller's role.
    """
    service_names = RECORD_SAMPLES["services"]
    failure_samples = RECORD_SAMPLES["failures"]
    fields_by_sqs_call = RECORD_SAMPLES["sqs_calls"]
    if is_sqs_call:
        event_name, error_code, error_message = failure_samples[queue_number % len(failure_samples)]
        if not is_failed_call:
            event_name = list(fields_by_sqs_call)[call_number]
        record_fields = {
            "eventName": event_name,
            **RECORD_SAMPLES["sqs"],
            **fields_by_sqs_call[event_name],
        }
    else:
        event_source, event_name = RECORD_SAMPLES["other_calls"][call_number]
        error_code = "AccessDenied"
        error_message = "Access Denied"
        record_fields = {
            "eventSource": event_source,
            "eventName": event_name,
            **RECORD_SAMPLES["other"],
        }
    if is_failed_call:
        record_fields |= {"errorCode": error_code, "errorMessage": error_message}
        if is_sqs_call:
            record_fields["responseElements"] = None
    account, region = account_and_region
    record_json = json.dumps({**RECORD_SAMPLES["record"], **record_fields}, separators=(",", ":"))
    return Template(record_json).substitute(
        account=account,
        region=region,
        role=role_name,
        role_id=f"AROA{sha256(role_name.encode()).hexdigest()[:17].upper()}",
        agent=RECORD_SAMPLES["agents"][len(role_name) % 2],
        queue=f"{service_names[queue_number % len(service_names)]}-{queue_number:02}",
        bucket=f"{service_names[call_number]}-documents-{account}-{region}",
    )
