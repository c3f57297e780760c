"""Deliver CloudTrail's records: as events to the default bus, as log files to the trails' buckets.

On AWS, delivery takes minutes, and an event can come twice, out of order or not at all. Here every
event comes once, in order, within seconds. A record whose delivery fails is logged and lost.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
"""

from __future__ import annotations

import gzip
import json
import logging
import queue
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local_account.cloudtrail.trails import Destination

Record = Mapping[str, Any]
# A record, and the trails that log it.
RecordWithDestinations = tuple[Record, tuple[Destination, ...]]
# docs/local-account.md promises log files within 5 seconds.
FLUSH_INTERVAL_SECONDS = 2.0
logger = logging.getLogger("mendq.cloudtrail")


@dataclass
class Delivery:
    """Delivers CloudTrail records in a thread of its own, so that no call waits for the delivery.

    Attributes:
        put_event: Puts a record on the default bus.
        put_object: Writes an object, given bucket, key and content.
    """

    put_event: Callable[[Record], None]
    put_object: Callable[[str, str, bytes], None]

    def __post_init__(self) -> None:
        self._undelivered_records: queue.SimpleQueue[RecordWithDestinations | None] = (
            queue.SimpleQueue()
        )
        self._records_by_destination: dict[Destination, list[Record]] = defaultdict(list)
        self._thread = threading.Thread(
            target=self._deliver_until_stopped, name="cloudtrail", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Deliver all queued records, write their log files, and end the thread."""
        self._undelivered_records.put(None)
        self._thread.join()

    def deliver_later(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        """Queue a record for delivery. `destinations` are the trails that log the record."""
        self._undelivered_records.put((record, destinations))

    def _deliver_until_stopped(self) -> None:
        """Deliver queued records. Write log files every FLUSH_INTERVAL_SECONDS and at the end."""
        next_flush_at = time.monotonic() + FLUSH_INTERVAL_SECONDS
        is_stopping = False
        while not is_stopping:
            try:
                next_delivery = self._undelivered_records.get(
                    timeout=max(0.0, next_flush_at - time.monotonic())
                )
                is_stopping = next_delivery is None
                if next_delivery:
                    self._deliver_record(*next_delivery)
            except queue.Empty:
                pass
            if is_stopping or time.monotonic() >= next_flush_at:
                self._write_log_files()
                next_flush_at = time.monotonic() + FLUSH_INTERVAL_SECONDS

    def _deliver_record(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        for destination in destinations:
            self._records_by_destination[destination].append(record)
        try:
            self.put_event(record)
        except Exception:
            logger.exception("an event did not reach the bus")

    def _write_log_files(self) -> None:
        """Write one log file for each trail that has new records."""
        records_by_destination = self._records_by_destination
        self._records_by_destination = defaultdict(list)
        for destination, records in records_by_destination.items():
            content = json.dumps({"Records": records}, separators=(",", ":")).encode()
            key = make_file_key(destination, datetime.now(UTC))
            try:
                self.put_object(destination.bucket, key, gzip.compress(content))
            except Exception:
                logger.exception("a trail file could not be written to %s", destination.bucket)


def make_file_key(destination: Destination, published_at: datetime) -> str:
    """Return a new S3 key for a log file. The key has the date and time of `published_at`.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
    """
    _, _, _, region, account, _ = destination.trail_arn.split(":", 5)
    root_folder = f"{destination.prefix}/AWSLogs" if destination.prefix else "AWSLogs"
    folder = f"{root_folder}/{account}/CloudTrail/{region}/{published_at:%Y/%m/%d}"
    minute_text = f"{published_at:%Y%m%dT%H%MZ}"
    unique_suffix = secrets.token_hex(8)  # so that files of one minute have different keys
    return f"{folder}/{account}_CloudTrail_{region}_{minute_text}_{unique_suffix}.json.gz"
