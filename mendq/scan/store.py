"""Store data of the hourly scan for its next runs.

The case store holds the scan's position, the number of metrics that were read, and the faults that
were reported. The case bucket holds the findings of each hour, and answers of AWS that the next
hour's scan uses in place of new calls.

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
from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.model.evidence import format_time
from mendq.model.facts import QueueFacts
from mendq.scan.reader import AnswerCache, Recalled
from mendq.scan.selection import admit_topics

# The claim lasts as long as the Lambda may run. A run that dies delays two later runs at most.
CLAIM = timedelta(minutes=15)
_SCAN = items.key(items.ACCOUNT, "scan")


class Stretch(Struct, frozen=True):
    """The part of an hour's scan that a run has claimed. `hourly.py` has the rules.

    Attributes:
        hour: The hour that the run counts for.
        after: The run begins after the queue of this name. Empty: at the first queue.
        is_first: True if no results of this hour are stored yet.
        is_left: True if the run must scan the queues that an earlier hour's scan did not reach.
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
        """Claim the rest of this hour's scan, or of the last scan if that is not done.

        Return the claimed part; None if this hour's scan is done or another run has claimed it.
        """
        hour = start_of_hour(now)
        item = self.get(_SCAN)
        is_same_round = items.text_in(item, "round") == format_time(hour)
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
        """Claim an hour's scan. Return False if another run has claimed it.

        Return False too if another run has begun a new hour's scan since `item` was read.
        """
        values: dict[str, Any] = {
            "round": format_time(hour),
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
        """Store the scan's position and release the claim.

        Args:
            stretch: The part that this run has claimed. Nothing happens if another run has claimed
                the scan since.
            after: The name of the queue after which the next run continues.
            done: True if this hour's scan is done.
        """
        values: dict[str, Any] = {
            "after": after,
            "me": self.owner,
            "round": format_time(stretch.hour),
        }
        change = "SET #after = :after"
        if done:
            values["done"] = True
            change += ", done = :done"
        change += " REMOVE #owner, #until"
        self.change(_SCAN, change, "#owner = :me AND #round = :round", **values)

    def spend(self, metrics: int, most: int, now: datetime) -> bool:
        """Count metrics as read on this day. Return False, and count none, if more than `most`
        would be read then.
        """
        room = "attribute_not_exists(asked) OR asked <= :left"
        return metrics <= most and self._count(metrics, now, room, left=most - metrics)

    def note_spent(self, metrics: int, now: datetime) -> None:
        """Count metrics as read on this day, without a limit."""
        if metrics:
            self._count(metrics, now)

    def _count(self, metrics: int, now: datetime, condition: str = "", **values: int) -> bool:
        """Add `metrics` to the day's number of read metrics. Return False, and add nothing, if the
        condition does not hold.
        """
        key = items.key(items.ACCOUNT, f"metrics#{now:%Y-%m-%d}")
        expires = now + timedelta(days=2)
        change = "ADD asked :n SET expires_at = :expires"
        return self.change(key, change, condition, n=metrics, expires=expires, **values)

    def admit(self, topics: Sequence[str], now: datetime) -> frozenset[str]:
        """Return those of these faults in configurations that may be reported now (`admit_topics`).

        The new ones are stored as reported.
        """
        key = items.key(items.ACCOUNT, "said_of_configuration")
        notes = frozenset(items.texts_in(self.get(key), "queues"))
        admission = admit_topics(notes, topics, now)
        self.change_set(
            key,
            "queues",
            now + EXPIRED_PROPOSAL_SILENCE,
            admission.notes_to_drop,
            admission.notes_to_add,
        )
        return frozenset(admission.topics)

    def noted_baselines(self, shard: str) -> Mapping[str, Noted]:
        """Return the notes about stored baselines by queue name, as `note_baselines` stored them.

        Empty if there are none, or if the stored item cannot be read.
        """
        item = self.get(items.key(items.ACCOUNT, f"baselines#{shard}"))
        noted: Mapping[str, Noted] = {}
        with suppress(CaseStoreUnreadable), items.reading(f"the baselines {shard}"):
            noted = items.json_in(item, "baselines", dict[str, list[str]], "{}")
        return noted

    def note_baselines(self, shard: str, noted: Mapping[str, Noted]) -> None:
        """Replace the shard's notes about stored baselines. The keys of `noted` are queue names."""
        key = items.key(items.ACCOUNT, f"baselines#{shard}")
        self.change(key, "SET baselines = :noted", noted=items.as_json(noted))


# A note about a stored baseline, by which a changed one is recognized: a digest of the
# configuration, and the faults that the queue had. The digest is different every year, so that each
# baseline is stored again at least once a year.
Noted = Sequence[str]


def as_noted(configuration: Mapping[str, str], faults: Iterable[str], now: datetime) -> Noted:
    """Return the note about a baseline: a digest of configuration and year, and the faults."""
    digest = sha256(f"{now:%Y} {items.as_json(configuration)}".encode()).hexdigest()[:16]
    return (digest, *sorted(faults))


def is_new(now: Noted, before: Noted | None) -> bool:
    """Return True if the baseline must be stored.

    This is so if none is stored, or if the configuration changed and the queue has no fault that it
    did not have at the last stored baseline.
    """
    return before is None or (now[0] != before[0] and {*now[1:]} <= {*before[1:]})


def shard_of(queue_arn: str) -> str:
    """Return the shard of a queue, `0` to `f`: the notes about baselines are spread over 16 items.

    An item has room for about 4,000 queues.
    """
    return sha256(queue_arn.encode()).hexdigest()[0]


def findings_of(hour: datetime, bucket: CaseBucket) -> dict[str, Any]:
    """Return the document with the findings that an hour's scan stored.

    Its form is not checked: if someone else wrote the object, it may be any JSON. Raises botocore's
    errors, ValueError and RecursionError.
    """
    answer = bucket.client.get_object(Bucket=bucket.name, Key=findings_key(hour))
    document: dict[str, Any] = json.loads(answer["Body"].read(MOST_ANSWER_BYTES))
    return document


# The largest object that is read: enough for about 16,000 unmanaged queues. An object of this size
# that someone else wrote takes half of the Lambda's memory.
MOST_ANSWER_BYTES = 20_000_000
_AN_HOUR = timedelta(hours=1)


class Answers(Struct, frozen=True):
    """SQS's answers of an hour's scan that the next hour's scan may use.

    Attributes:
        round: The hour, as text.
        attributes: The attributes of unmanaged queues without visible messages, by queue ARN.
        sources: The ARNs of the queues that name a queue as their DLQ, by the ARN of that queue.
    """

    round: str
    attributes: dict[str, dict[str, str]]
    sources: dict[str, tuple[str, ...]]


def recall_answers(hour: datetime, bucket: CaseBucket, managed: Container[str]) -> Recalled:
    """Return answers of the last hour's scan, by call, that this hour's scan may use.

    For each queue, answers are used only in every second hour. Attributes of a managed queue are
    never used. Empty if the stored object cannot be read: then everything is read from AWS.
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
    """Return True if the last hour's answers for this queue may be used in this hour.

    This is so in every second hour: for half of the queues in even hours, for the others in odd
    hours.
    """
    return int(shard_of(queue_arn), 16) % 2 == hour.hour % 2


def note_answers(
    stretch: Stretch, bucket: CaseBucket, asked: AnswerCache, managed: Container[str]
) -> None:
    """Store this run's answers for the next hour's scan.

    Errors of S3 are ignored: the next hour's scan then makes more calls.
    """
    noted = Answers("", {}, {}) if stretch.is_first else _answers(stretch.hour, bucket)
    for arn, attributes in asked.answers_of(attributes_of):
        if arn not in managed and not QueueFacts(arn, attributes).visible:
            noted.attributes[arn] = {**attributes}
    noted.sources.update(asked.answers_of(list_source_arns))
    now = Answers(format_time(stretch.hour), noted.attributes, noted.sources)
    body = zlib.compress(msgspec.json.encode(now))
    with suppress(ClientError, BotoCoreError):
        bucket.client.put_object(Bucket=bucket.name, Key=_answers_key(stretch.hour), Body=body)


def _answers(hour: datetime, bucket: CaseBucket) -> Answers:
    """Return the answers that this hour's scan stored; empty if there are none.

    Empty too, without an error, if S3 fails or someone else wrote the object.
    """
    with suppress(ClientError, BotoCoreError, zlib.error, ValueError, RecursionError):
        answer = bucket.client.get_object(Bucket=bucket.name, Key=_answers_key(hour))
        body = answer["Body"].read(MOST_ANSWER_BYTES)
        text = zlib.decompressobj().decompress(body, MOST_ANSWER_BYTES)
        answers = msgspec.json.decode(text, type=Answers)
        if answers.round == format_time(hour):
            return answers
    return Answers("", {}, {})


def _answers_key(hour: datetime) -> str:
    """Return the S3 key of the answer cache. Two objects alternate by hour: a scan reads the last
    hour's and writes this hour's.
    """
    return f"findings/answers-{hour.hour % 2}.json.z"
