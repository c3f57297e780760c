"""Store what the hourly scan must remember: its position, the metrics it has read, and reported
faults.

The case bucket stores the findings of each hour, and answers that the next hour's scan uses instead
of new calls.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.dlqs import list_source_arns
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.queue import attributes_of
from mendq.cases import items
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import findings_key, start_of_hour
from mendq.cases.transactions import Table
from mendq.heal.repeats import REMEMBERED
from mendq.model.evidence import to_text
from mendq.model.facts import QueueFacts
from mendq.scan.reader import AnswerCache, Recalled
from mendq.scan.selection import admit_topics

# The claim lasts as long as the Lambda may run. A run that dies holds up two others at most.
CLAIM = timedelta(minutes=15)
_SCAN = items.key(items.ACCOUNT, "scan")


class Stretch(Struct, frozen=True):
    """The part of an hour's scan that a run has claimed. `hourly.py` has the rules.

    Attributes:
        hour: The hour.
        after: The run begins behind the queue of this name. Empty: at the first queue.
        is_first: True if no results of this hour are stored yet.
        is_left: True if these queues are left over from the last hour.
    """

    hour: datetime
    after: str = ""
    is_first: bool = True
    is_left: bool = False


class ScanStore(Table, frozen=True):
    """The scan's items in the case store. `owner` is the run's own token.

    Raises:
        CaseStoreUnavailable: by every method.
    """

    owner: str

    def begin(self, now: datetime) -> Stretch | None:
        """Claim the rest of this hour's scan, or of the last hour's if that is not done.

        Return None if this hour's scan is done or another run has claimed it.
        """
        hour = start_of_hour(now)
        item = self.get(_SCAN)
        is_same_round = items.text_in(item, "round") == to_text(hour)
        is_done = "done" in item
        if is_same_round and is_done:
            return None
        if not self._claim_round(item, hour, now):
            return None
        after = "" if is_done else items.text_in(item, "after")
        return Stretch(
            hour=hour,
            after=after,
            is_first=not (is_same_round and after),
            is_left=bool(after) and not is_same_round,
        )

    def _claim_round(self, item: items.Item, hour: datetime, now: datetime) -> bool:
        """Claim an hour's scan. Return False if another run has claimed it or continued it since it
        was read.
        """
        values: dict[str, Any] = {
            "round": to_text(hour),
            "me": self.owner,
            "now": now,
            "until": now + CLAIM,
        }
        change = "SET #round = :round, #owner = :me, #until = :until"
        if "done" in item:
            change += " REMOVE done, #after"
        unmoved = "attribute_not_exists(#round)"
        if "round" in item:
            unmoved = "#round = :seen"
            values["seen"] = item["round"]
        free = "(attribute_not_exists(#until) OR #until < :now OR #owner = :me)"
        return self.change(_SCAN, change, f"{free} AND {unmoved}", **values)

    def end(self, stretch: Stretch, after: str, *, done: bool) -> None:
        """Store how far the scan has come, and release the claim.

        Nothing happens if another run has taken over.
        """
        values: dict[str, Any] = {
            "after": after,
            "me": self.owner,
            "round": to_text(stretch.hour),
        }
        change = "SET #after = :after"
        if done:
            values["done"] = True
            change += ", done = :done"
        change += " REMOVE #owner, #until"
        self.change(_SCAN, change, "#owner = :me AND #round = :round", **values)

    def spend(self, metrics: int, most: int, now: datetime) -> bool:
        """Spend metrics of the day's budget. Return False if fewer are left."""
        room = "attribute_not_exists(asked) OR asked <= :left"
        return metrics <= most and self._count(metrics, now, room, left=most - metrics)

    def note_spent(self, metrics: int, now: datetime) -> None:
        """Count metrics that are read even if the budget is spent."""
        if metrics:
            self._count(metrics, now)

    def _count(self, metrics: int, now: datetime, condition: str = "", **values: int) -> bool:
        """Add to the day's number of read metrics. Return False if the condition does not hold."""
        key = items.key(items.ACCOUNT, f"metrics#{now:%Y-%m-%d}")
        expires = now + timedelta(days=2)
        change = "ADD asked :n SET expires_at = :expires"
        return self.change(key, change, condition, n=metrics, expires=expires, **values)

    def admit(self, topics: Sequence[str], now: datetime) -> frozenset[str]:
        """Return the faults in configurations that may be reported now, and store them as
        reported.
        """
        key = items.key(items.ACCOUNT, "said_of_configuration")
        notes = frozenset(items.texts_in(self.get(key), "queues"))
        admission = admit_topics(notes, topics, now)
        self.change_set(
            key, "queues", now + REMEMBERED, admission.notes_to_drop, admission.notes_to_add
        )
        return frozenset(admission.topics)

    def noted_baselines(self, shard: str) -> Mapping[str, Noted]:
        """Return by queue name what `note_baselines` stored last; empty if Mendq did not write the
        item.
        """
        item = self.get(items.key(items.ACCOUNT, f"baselines#{shard}"))
        noted: Mapping[str, Noted] = {}
        with suppress(CaseStoreUnreadable), items.reading(f"the baselines {shard}"):
            noted = items.json_in(item, "baselines", dict[str, list[str]], "{}")
        return noted

    def note_baselines(self, shard: str, noted: Mapping[str, Noted]) -> None:
        """Store which baselines were put, by queue name."""
        key = items.key(items.ACCOUNT, f"baselines#{shard}")
        self.change(key, "SET baselines = :noted", noted=items.as_json(noted))


# What identifies a stored baseline: a digest of the configuration that also changes every year, and
# the faults that the queue had.
Noted = Sequence[str]


def as_noted(configuration: Mapping[str, str], faults: Iterable[str], now: datetime) -> Noted:
    """Return what identifies a configuration: a digest that changes every year, and the queue's
    faults.
    """
    digest = sha256(f"{now:%Y} {items.as_json(configuration)}".encode()).hexdigest()[:16]
    return (digest, *sorted(faults))


def is_new(now: Noted, before: Noted | None) -> bool:
    """Return True if the baseline must be stored: the configuration changed, and it has no fault
    that the last stored one did not have.
    """
    return before is None or (now[0] != before[0] and {*now[1:]} <= {*before[1:]})


def shard_of(queue_arn: str) -> str:
    """Return which of sixteen items notes the queue's baseline. An item has room for about 4,000
    queues.
    """
    return sha256(queue_arn.encode()).hexdigest()[0]


def findings_of(hour: datetime, bucket: CaseBucket) -> dict[str, Any]:
    """Return the findings that an hour's scan stored, or any other JSON if someone else wrote the
    object.

    Raises botocore's errors, ValueError and RecursionError.
    """
    answer = bucket.client.get_object(Bucket=bucket.name, Key=findings_key(hour))
    document: dict[str, Any] = json.loads(answer["Body"].read(MOST_ANSWER_BYTES))
    return document


# Enough for about 16,000 unmanaged queues. A forged object of this size takes half of the Lambda's
# memory.
MOST_ANSWER_BYTES = 20_000_000
_AN_HOUR = timedelta(hours=1)


class Answers(Struct, frozen=True):
    """SQS's answers of an hour's scan: attributes of empty unmanaged queues, and sources of managed
    queues.

    Attributes:
        round: The hour, as text.
        attributes: Attributes by queue ARN.
        sources: ARNs of sources by queue ARN.
    """

    round: str
    attributes: dict[str, dict[str, str]]
    sources: dict[str, tuple[str, ...]]


def recall_answers(hour: datetime, bucket: CaseBucket, managed: Container[str]) -> Recalled:
    """Return the last hour's answers by call. Each queue is recalled in every second hour only.

    Attributes of a managed queue are never recalled. Empty if the stored object cannot be read:
    then everything is read from AWS.
    """
    before = _answers(hour - _AN_HOUR, bucket)
    recalled: dict[Any, Any] = {}
    for arn, attributes in before.attributes.items():
        if _is_recalled(arn, hour) and arn not in managed:
            recalled[attributes_of, arn] = attributes
    for arn, sources in before.sources.items():
        if _is_recalled(arn, hour):
            recalled[list_source_arns, arn] = sources
    return recalled


def _is_recalled(queue_arn: str, hour: datetime) -> bool:
    """Return True in every second hour, for one half of the queues in even hours."""
    return int(shard_of(queue_arn), 16) % 2 == hour.hour % 2


def note_answers(
    stretch: Stretch, bucket: CaseBucket, asked: AnswerCache, managed: Container[str]
) -> None:
    """Store this scan's answers for the next hour. If that fails, the next hour only makes more
    calls.
    """
    noted = Answers("", {}, {}) if stretch.is_first else _answers(stretch.hour, bucket)
    for arn, attributes in asked.answers_of(attributes_of):
        if arn not in managed and not QueueFacts(arn, attributes).visible:
            noted.attributes[arn] = {**attributes}
    noted.sources.update(asked.answers_of(list_source_arns))
    now = Answers(to_text(stretch.hour), noted.attributes, noted.sources)
    body = zlib.compress(msgspec.json.encode(now))
    with suppress(ClientError, BotoCoreError):
        bucket.client.put_object(Bucket=bucket.name, Key=_answers_key(stretch.hour), Body=body)


def _answers(hour: datetime, bucket: CaseBucket) -> Answers:
    """Return the answers that this hour's scan stored; empty if there are none. Never raises, even
    for a forged object.
    """
    with suppress(ClientError, BotoCoreError, zlib.error, ValueError, RecursionError):
        answer = bucket.client.get_object(Bucket=bucket.name, Key=_answers_key(hour))
        body = answer["Body"].read(MOST_ANSWER_BYTES)
        text = zlib.decompressobj().decompress(body, MOST_ANSWER_BYTES)
        answers = msgspec.json.decode(text, type=Answers)
        if answers.round == to_text(hour):
            return answers
    return Answers("", {}, {})


def _answers_key(hour: datetime) -> str:
    """Return the S3 key of the answer cache. Two objects alternate by hour: a scan reads the last
    hour's and writes this hour's.
    """
    return f"findings/answers-{hour.hour % 2}.json.z"
