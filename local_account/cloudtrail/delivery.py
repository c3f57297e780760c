"""Delivering as CloudTrail does: events to the default bus, files to the trails' buckets.

It may go wrong on AWS: late, twice, in another order, not at all. Off by default here.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
"""

from __future__ import annotations

import gzip
import heapq
import itertools
import json
import logging
import random
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from local_account.cloudtrail.faults import DeliveryFaults
from local_account.cloudtrail.trails import Destination

Record = Mapping[str, Any]
# Contracts: trail files and events are flushed within 5 seconds.
FLUSH_SECONDS = 2.0
logger = logging.getLogger("mendq.cloudtrail")


class Delivery:
    """A thread of its own, so that no call waits for what is written about it."""

    def __init__(
        self,
        put_event: Callable[[Record], None],
        put_object: Callable[[str, str, bytes], None],
        faults: DeliveryFaults = DeliveryFaults(),  # noqa: B008  frozen
    ) -> None:
        self._put_event = put_event
        self._put_object = put_object
        self._faults = faults
        # Of each trail, by ARN: its last file, and S3's error code where the latest was refused.
        self.written_at: dict[str, datetime] = {}
        self.refused_with: dict[str, str] = {}
        self._fault_chance = random.Random(faults.seed)  # noqa: S311  repeatable, not secret
        self._due: list[tuple[float, int, Record, tuple[Destination, ...]]] = []
        self._order = itertools.count()
        self._files: dict[Destination, list[Record]] = defaultdict(list)
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="cloudtrail", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write the files of what arrived, then end; what is still delayed is lost."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def take(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        """Deliver a record that at least one trail logs."""
        with self._changed:
            for lag in self._faults.deliveries(self._fault_chance):
                due = (time.monotonic() + lag, next(self._order), record, destinations)
                heapq.heappush(self._due, due)
            self._changed.notify()

    def latest(self, trail_arn: str) -> dict[str, Any]:
        """The time of a trail's last file, and S3's error where the latest was refused."""
        known: dict[str, Any] = {}
        if written_at := self.written_at.get(trail_arn):
            known["LatestDeliveryTime"] = int(written_at.timestamp())
        if error := self.refused_with.get(trail_arn):
            known["LatestDeliveryError"] = error
        return known

    def _run(self) -> None:
        flush_at = time.monotonic() + FLUSH_SECONDS
        while True:
            with self._changed:
                wake_at = min([flush_at, *(each[0] for each in self._due[:1])])
                if not self._stopping and (lag := wake_at - time.monotonic()) > 0:
                    self._changed.wait(lag)
                stopping, arrived = self._stopping, self._arrived()
            for record, destinations in arrived:
                self._deliver(record, destinations)
            if stopping or time.monotonic() >= flush_at:
                self._flush()
                flush_at = time.monotonic() + FLUSH_SECONDS
            if stopping:
                return

    def _arrived(self) -> list[tuple[Record, tuple[Destination, ...]]]:
        now, arrived = time.monotonic(), []
        while self._due and self._due[0][0] <= now:
            _, _, record, destinations = heapq.heappop(self._due)
            arrived.append((record, destinations))
        return arrived

    def _deliver(self, record: Record, destinations: tuple[Destination, ...]) -> None:
        for destination in destinations:
            self._files[destination].append(record)
        try:
            self._put_event(record)
        except Exception:
            logger.exception("an event did not reach the bus")

    def _flush(self) -> None:
        files, self._files = self._files, defaultdict(list)
        for destination, records in files.items():
            published = datetime.now(UTC)
            key = file_key(destination, published)
            content = gzip.compress(
                json.dumps({"Records": records}, separators=(",", ":")).encode()
            )
            try:
                self._put_object(destination.bucket, key, content)
            except Exception as error:
                self.refused_with[destination.trail_arn] = _code_of(error)
                logger.exception("a trail file could not be written to %s", destination.bucket)
            else:
                self.refused_with.pop(destination.trail_arn, None)
                self.written_at[destination.trail_arn] = published


def file_key(destination: Destination, published: datetime) -> str:
    """The key of a file in the trail's bucket; the date is the one of publishing.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-log-file-examples.html
    """
    _, _, _, region, account, _ = destination.trail_arn.split(":", 5)
    root = f"{destination.prefix}/AWSLogs" if destination.prefix else "AWSLogs"
    folder = f"{root}/{account}/CloudTrail/{region}/{published:%Y/%m/%d}"
    unique = secrets.token_hex(8)  # tells files of one minute apart
    return f"{folder}/{account}_CloudTrail_{region}_{published:%Y%m%dT%H%MZ}_{unique}.json.gz"


def _code_of(error: Exception) -> str:
    """The code of an AWS error, the name of any other."""
    response = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code") or type(error).__name__)
