"""Delivering what CloudTrail records: events to the default bus, files to the trails' buckets.

On AWS it is minutes late, and events come twice, in another order or not at all; not so here.
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
Taken = tuple[Record, tuple[Destination, ...]]
# Contracts: trail files and events are flushed within 5 seconds.
FLUSH_SECONDS = 2.0
logger = logging.getLogger("mendq.cloudtrail")


@dataclass
class Delivery:
    """A thread of its own, so that no call waits for what is written about it."""

    put_event: Callable[[Record], None]
    put_object: Callable[[str, str, bytes], None]

    def __post_init__(self) -> None:
        self._taken: queue.SimpleQueue[Taken | None] = queue.SimpleQueue()
        self._files: dict[Destination, list[Record]] = defaultdict(list)
        self._thread = threading.Thread(target=self._run, name="cloudtrail", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the files of what was taken, then end."""
        self._taken.put(None)
        self._thread.join()

    def take(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        """Deliver a record that at least one trail logs."""
        self._taken.put((record, destinations))

    def _run(self) -> None:
        flush_at, stopping = time.monotonic() + FLUSH_SECONDS, False
        while not stopping:
            try:
                taken = self._taken.get(timeout=max(0.0, flush_at - time.monotonic()))
                stopping = taken is None
                if taken:
                    self._deliver(*taken)
            except queue.Empty:
                pass
            if stopping or time.monotonic() >= flush_at:
                self._flush()
                flush_at = time.monotonic() + FLUSH_SECONDS

    def _deliver(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        for destination in destinations:
            self._files[destination].append(record)
        try:
            self.put_event(record)
        except Exception:
            logger.exception("an event did not reach the bus")

    def _flush(self) -> None:
        files, self._files = self._files, defaultdict(list)
        for destination, records in files.items():
            content = json.dumps({"Records": records}, separators=(",", ":")).encode()
            key = file_key(destination, datetime.now(UTC))
            try:
                self.put_object(destination.bucket, key, gzip.compress(content))
            except Exception:
                logger.exception("a trail file could not be written to %s", destination.bucket)


def file_key(destination: Destination, published: datetime) -> str:
    """The key of a file in the trail's bucket; the date is the one of publishing.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
    """
    _, _, _, region, account, _ = destination.trail_arn.split(":", 5)
    root = f"{destination.prefix}/AWSLogs" if destination.prefix else "AWSLogs"
    folder = f"{root}/{account}/CloudTrail/{region}/{published:%Y/%m/%d}"
    unique = secrets.token_hex(8)  # tells files of one minute apart
    return f"{folder}/{account}_CloudTrail_{region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"
