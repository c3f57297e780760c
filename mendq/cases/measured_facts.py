"""Metrics that a scan hands to heal with a finding, so that heal need not read them again.

AWS bills each metric. So heal uses what the scan has just read, except before a write: heal then
measures the queue itself. Whoever may invoke heal could forge these facts. A forged finding can
lead to a case, a proposal or a page, but to no write.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from datetime import datetime, timedelta

from msgspec import DecodeError, Struct, ValidationError, msgpack

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.metrics import DaysOfTraffic, Measurement

# Older facts are not used. A scan calls heal at the end of its run, within 15 minutes.
LONGEST_AGE = timedelta(minutes=30)
# A call of heal has at most 20 findings, and Lambda takes 256 KB. A finding with more is sent
# without its metrics.
MOST_PACKED_CHARACTERS = 10_000
_MOST_UNPACKED_BYTES = 200_000


class MeasuredFacts(Struct, frozen=True, omit_defaults=True):
    """The metrics that a scan has read about one queue.

    Attributes:
        read_at: When the scan read them.
        measurement: The metrics of the queue.
        consumers: The queue's Lambda functions, with their metrics.
        days_of_traffic: The traffic of four days; None if it was not read.
    """

    read_at: datetime
    measurement: Measurement
    consumers: tuple[LambdaConsumer, ...] = ()
    days_of_traffic: DaysOfTraffic | None = None

    def fits(self, facts: Facts, now: datetime) -> bool:
        """Return True if they are new and the queue was not changed since the measured time."""
        is_new = timedelta(0) <= now - self.read_at <= LONGEST_AGE
        is_unchanged = facts.modified_at is None or facts.modified_at <= self.measurement.since
        return is_new and is_unchanged


def pack_measured_facts(measured_facts: MeasuredFacts) -> str:
    """Return the facts as a short text; an empty text if they are too large to send."""
    packed_text = b64encode(zlib.compress(msgpack.encode(measured_facts))).decode()
    return packed_text if len(packed_text) <= MOST_PACKED_CHARACTERS else ""


def unpack_measured_facts(packed_text: str) -> MeasuredFacts | None:
    """Return the facts of a text; None if it is empty or holds no such facts."""
    try:
        decompressor = zlib.decompressobj()
        data = decompressor.decompress(b64decode(packed_text), _MOST_UNPACKED_BYTES)
        return msgpack.decode(data, type=MeasuredFacts)
    except (zlib.error, ValueError, DecodeError, ValidationError, RecursionError):
        return None
