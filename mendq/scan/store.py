"""What a scan keeps: how far a round has come, what measuring has cost, who was told.

In the case bucket: what a round found, and what the next goes by instead of asking again.

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
from mendq.scan.reader import AskedOnce, Recalled
from mendq.scan.selection import admit_topics

# The claim lasts as long as the Lambda may run. A run that dies holds up two others at most.
CLAIM = timedelta(minutes=15)
_SCAN = items.key(items.ACCOUNT, "scan")


class Stretch(Struct, frozen=True):
    """The part of a round that a run has claimed. `hourly.py` has the rules.

    Attributes:
        hour: The round.
        after: The run begins behind the queue of this name. Empty: at the first queue.
        is_first: No results of this round are stored yet.
        is_left: These queues are left over from the last hour's round.
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
        """Claim the rest of the hour's round, or of the last hour's if that is not done.

        Return None if the round is done or another run has claimed it.
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
        """Claim a round. Return False if another run has claimed it or moved on since the read."""
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
        """Store how far the round has come, and release the claim.

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
        key, expires = items.key(items.ACCOUNT, f"metrics#{now:%Y-%m-%d}"), now + timedelta(days=2)
        change = "ADD asked :n SET expires_at = :expires"
        return self.change(key, change, condition, n=metrics, expires=expires, **values)

    def admit(self, topics: Sequence[str], now: datetime) -> frozenset[str]:
        """Those faults in configurations that people may be told of now, noted as told of."""
        key = items.key(items.ACCOUNT, "said_of_configuration")
        notes = frozenset(items.texts_in(self.get(key), "queues"))
        admission = admit_topics(notes, topics, now)
        self.change_set(
            key, "queues", now + REMEMBERED, admission.notes_to_drop, admission.notes_to_add
        )
        return frozenset(admission.topics)

    def noted_baselines(self, shard: str) -> Mapping[str, Noted]:
        """By queue name what was put last; nothing where what is there is none of ours."""
        found = self.get(items.key(items.ACCOUNT, f"baselines#{shard}"))
        noted: Mapping[str, Noted] = {}
        with suppress(CaseStoreUnreadable), items.reading(f"the baselines {shard}"):
            noted = items.json_in(found, "baselines", dict[str, list[str]], "{}")
        return noted

    def note_baselines(self, shard: str, noted: Mapping[str, Noted]) -> None:
        key = items.key(items.ACCOUNT, f"baselines#{shard}")
        self.change(key, "SET baselines = :noted", noted=items.as_json(noted))


# What tells a new configuration: a digest, another each year, and the faults it was put with.
Noted = Sequence[str]


def as_noted(configuration: Mapping[str, str], faults: Iterable[str], now: datetime) -> Noted:
    digest = sha256(f"{now:%Y} {items.as_json(configuration)}".encode()).hexdigest()[:16]
    return (digest, *sorted(faults))


def is_new(now: Noted, before: Noted | None) -> bool:
    """Whether it is to be put: one with a fault that it did not have then is not."""
    return before is None or (now[0] != before[0] and {*now[1:]} <= {*before[1:]})


def shard_of(queue_arn: str) -> str:
    """The one of sixteen items that it is noted in: an item has room for some 4,000 queues."""
    return sha256(queue_arn.encode()).hexdigest()[0]


def findings_of(hour: datetime, bucket: CaseBucket) -> dict[str, Any]:
    """What a round has put into the case bucket, or any JSON that somebody else has.

    Raises botocore's errors as they come, ValueError and RecursionError.
    """
    answer = bucket.client.get_object(Bucket=bucket.name, Key=findings_key(hour))
    document: dict[str, Any] = json.loads(answer["Body"].read(MOST_ANSWER_BYTES))
    return document


# Some 16,000 queues of which nothing is managed; forged ones take half of the Lambda's memory.
MOST_ANSWER_BYTES = 20_000_000
_AN_HOUR = timedelta(hours=1)


class Answers(Struct, frozen=True):
    """What SQS said in a round: of empty queues their attributes, of managed ones their sources."""

    round: str
    attributes: dict[str, dict[str, str]]
    sources: dict[str, tuple[str, ...]]


def recall_answers(hour: datetime, bucket: CaseBucket, managed: Container[str]) -> Recalled:
    """What the round before was answered, by what was asked; each queue's in every second round.

    A managed queue's attributes are never recalled. Nothing where nothing can be read: then all is
    asked.
    """
    before = _answers(hour - _AN_HOUR, bucket)
    kinds = ((attributes_of, before.attributes, managed), (list_source_arns, before.sources, ()))
    return {
        (read, arn): answer
        for read, answers, never in kinds
        for arn, answer in answers.items()
        if int(shard_of(arn), 16) % 2 == hour.hour % 2 and arn not in never
    }


def note_answers(
    stretch: Stretch, bucket: CaseBucket, asked: AskedOnce, managed: Container[str]
) -> None:
    """Note for the next round what was asked; that it fails costs the next round's calls alone."""
    noted = Answers("", {}, {}) if stretch.is_first else _answers(stretch.hour, bucket)
    for arn, each in asked.answers_of(attributes_of):
        if arn not in managed and not QueueFacts(arn, each).visible:
            noted.attributes[arn] = {**each}
    noted.sources.update(asked.answers_of(list_source_arns))
    now = Answers(to_text(stretch.hour), noted.attributes, noted.sources)
    body = zlib.compress(msgspec.json.encode(now))
    with suppress(ClientError, BotoCoreError):
        bucket.client.put_object(Bucket=bucket.name, Key=_answers_key(stretch.hour), Body=body)


def _answers(hour: datetime, bucket: CaseBucket) -> Answers:
    """Those of that very round, as far as there are any; whatever lies there raises nothing."""
    with suppress(ClientError, BotoCoreError, zlib.error, ValueError, RecursionError):
        answer = bucket.client.get_object(Bucket=bucket.name, Key=_answers_key(hour))
        body = answer["Body"].read(MOST_ANSWER_BYTES)
        text = zlib.decompressobj().decompress(body, MOST_ANSWER_BYTES)
        found = msgspec.json.decode(text, type=Answers)
        if found.round == to_text(hour):
            return found
    return Answers("", {}, {})


def _answers_key(hour: datetime) -> str:
    """Two of them by turns: a round reads the one and writes the other."""
    return f"findings/answers-{hour.hour % 2}.json.z"
