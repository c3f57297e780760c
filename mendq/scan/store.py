"""Store data of the hourly scan for its next runs.

The case store holds the scan's position, the number of metrics that were read, the faults that were
reported, notes about the stored baselines, and what the next scan must know about each queue. In a
scan-only stack it also holds notes about what was reported, and a summary of the newest run. The
case bucket holds the findings of each hour, and answers of AWS that the next hour's scan uses in
place of new calls.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
"""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
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
from mendq.aws.queue import read_queue_attributes
from mendq.cases import items
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import findings_key, start_of_hour
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.spent_metrics import SpentMetrics
from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.model.facts import QueueFacts
from mendq.model.queue import DEFAULT_NUMBER_BY_ATTRIBUTE, queue_arn_or_none
from mendq.model.time_text import format_time
from mendq.model.traffic import QueueRecord, ScanHistory, hour_number
from mendq.scan.reader import AnswerByCall, AnswerCache
from mendq.scan.report_notes import ReportNote
from mendq.scan.selection import admit_topics

# The claim lasts as long as the Lambda may run. A run that dies delays two later runs at most.
CLAIM_DURATION = timedelta(minutes=15)
# Set while the runs of an hour scan the queues that an earlier hour's scan did not reach.
_LEFTOVER_KEY = "leftover"
_SCAN_KEY = items.item_key(ACCOUNT_PARTITION, "scan")
_REPORT_NOTES_KEY = items.item_key(ACCOUNT_PARTITION, "reported")
# The notes about baselines and the records of queues are spread over these items.
_SHARDS = "0123456789abcdef"
_RECORD_HOURS = 7 * 24
# Not listed are deleted queues, and DLQs that Mendq made and that are not managed.
_UNLISTED_RECORD_HOURS = 24
# DynamoDB stores at most 400 KB in an item.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
_MAXIMUM_HISTORY_BYTES = 350_000
SCAN_SUMMARY_KEY = items.item_key(ACCOUNT_PARTITION, "scan_summary")


class Stretch(Struct, frozen=True):
    """The part of an hour's scan that a run has claimed. `hourly.py` has the rules.

    Attributes:
        hour: The hour that the run counts for.
        after_queue: The run begins after the queue of this name. Empty: at the first queue.
        is_first: True if this is the first claim in this hour, or if no position is stored. The
            run's results then replace any that are stored for this hour.
        is_leftover: True if the run must scan the queues that an earlier hour's scan did not reach.
    """

    hour: datetime
    after_queue: str = ""
    is_first: bool = True
    is_leftover: bool = False


class ScanStore(SpentMetrics, frozen=True):
    """The scan's items in the case store. `owner` is the run's own token.

    Raises:
        CaseStoreUnavailable: by every method.
    """

    owner: str

    def claim_stretch(self, now: datetime) -> Stretch | None:
        """Claim the rest of this hour's scan, or of the last scan if that is not done.

        Return the claimed part; None if this hour's scan is done or another run has claimed it.
        """
        hour = start_of_hour(now)
        scan_item = self.get(_SCAN_KEY)
        is_same_round = items.read_text(scan_item, "round") == format_time(hour)
        is_round_done = "done" in scan_item
        if is_same_round and is_round_done:
            return None
        after_queue = "" if is_round_done else items.read_text(scan_item, "after")
        was_leftover = is_same_round and _LEFTOVER_KEY in scan_item
        is_leftover = bool(after_queue) and (was_leftover or not is_same_round)
        if not self._claim_round(scan_item, hour, now, is_leftover=is_leftover):
            return None
        return Stretch(
            hour=hour,
            after_queue=after_queue,
            is_first=not (is_same_round and after_queue),
            is_leftover=is_leftover,
        )

    def _claim_round(
        self, scan_item: items.Item, hour: datetime, now: datetime, *, is_leftover: bool
    ) -> bool:
        """Claim an hour's scan. Return False if another run has claimed it.

        Return False too if another run has begun a new hour's scan since `scan_item` was read.
        """
        value_by_placeholder: dict[str, Any] = {
            "round": format_time(hour),
            "me": self.owner,
            "now": now,
            "until": now + CLAIM_DURATION,
        }
        update_expression = "SET #round = :round, #owner = :me, #until = :until"
        removed_names = []
        if is_leftover:
            # Stored with the claim, so that a run that dies does not lose it.
            update_expression += f", {_LEFTOVER_KEY} = :leftover"
            value_by_placeholder["leftover"] = True
        else:
            removed_names.append(_LEFTOVER_KEY)
        if "done" in scan_item:
            removed_names += ["done", "#after"]
        if removed_names:
            update_expression += f" REMOVE {', '.join(removed_names)}"
        same_round_condition = "attribute_not_exists(#round)"
        if "round" in scan_item:
            same_round_condition = "#round = :seen"
            value_by_placeholder["seen"] = scan_item["round"]
        unclaimed_condition = "(attribute_not_exists(#until) OR #until < :now OR #owner = :me)"
        return self.change(
            _SCAN_KEY,
            update_expression,
            f"{unclaimed_condition} AND {same_round_condition}",
            **value_by_placeholder,
        )

    def end_stretch(
        self,
        stretch: Stretch,
        after_queue: str,
        *,
        is_round_done: bool,
        is_leftover_done: bool = False,
    ) -> None:
        """Store the scan's position and release the claim.

        Args:
            stretch: The part that this run has claimed. Nothing happens if another run has claimed
                the scan since.
            after_queue: The name of the queue after which the next run continues.
            is_round_done: True if this hour's scan is done.
            is_leftover_done: True if the queues that an earlier hour's scan did not reach are done.
        """
        value_by_placeholder: dict[str, Any] = {
            "after": after_queue,
            "me": self.owner,
            "round": format_time(stretch.hour),
        }
        update_expression = "SET #after = :after"
        if is_round_done:
            value_by_placeholder["done"] = True
            update_expression += ", done = :done"
        update_expression += " REMOVE #owner, #until"
        if is_leftover_done:
            update_expression += f", {_LEFTOVER_KEY}"
        self.change(
            _SCAN_KEY, update_expression, "#owner = :me AND #round = :round", **value_by_placeholder
        )

    def admit_faults(self, topics: Sequence[str], now: datetime) -> frozenset[str]:
        """Return the faults in configurations that may be reported now, out of `topics`.

        `admit_topics` selects them. Faults that are reported for the first time are stored.
        """
        key = items.item_key(ACCOUNT_PARTITION, "said_of_configuration")
        stored_notes = frozenset(items.read_texts(self.get(key), "queues"))
        admission = admit_topics(stored_notes, topics, now)
        self.change_set(
            key,
            "queues",
            now + EXPIRED_PROPOSAL_SILENCE,
            admission.notes_to_drop,
            admission.notes_to_add,
        )
        return frozenset(admission.topics)

    def read_report_notes(self) -> Mapping[str, ReportNote]:
        """Return the notes about what was reported, by key (`report_notes.py`).

        Empty if there are none, or if the stored item cannot be read: then everything is reported
        again, which does less harm than silence.
        """
        note_by_key: Mapping[str, ReportNote] = {}
        notes_item = self.get(_REPORT_NOTES_KEY)
        with suppress(CaseStoreUnreadable), items.convert_decode_errors("the notes of reports"):
            note_by_key = items.read_json(notes_item, "notes", dict[str, ReportNote], "{}")
        return note_by_key

    def store_report_notes(self, note_by_key: Mapping[str, ReportNote]) -> None:
        """Replace the notes about what was reported."""
        self.change(_REPORT_NOTES_KEY, "SET notes = :notes", notes=items.encode_json(note_by_key))

    def store_summary(self, document: Mapping[str, Any]) -> None:
        """Replace the summary of the newest run of a scan-only stack. `mendq doctor` reads it."""
        self.change(SCAN_SUMMARY_KEY, "SET summary = :summary", summary=items.encode_json(document))

    def read_history(self, now: datetime) -> dict[str, QueueRecord]:
        """Return what the last scans remember, by queue name (`mendq/model/traffic.py`).

        Empty without an earlier scan. A part that cannot be read is left out, and so are records
        from the future: a forged one could keep a queue from being measured.
        """
        hour = hour_number(now)
        history = dict[str, QueueRecord]()
        for shard in _SHARDS:
            for queue_name, record in self._read_history_shard(shard).items():
                hours = (record.scanned_hour, record.active_hour, record.sums_hour)
                if max(*hours, record.first_seen_hour) <= hour:
                    history[queue_name] = record
        return history

    def store_history(
        self, record_by_queue_name: ScanHistory, listed_names: Container[str] | None, now: datetime
    ) -> None:
        """Store the records of the scanned queues.

        Drop those that no scan has read for a week, or for a day if the queue is not listed any
        more. If an item would still be too large, drop records of queues that are not listed, then
        those that were scanned longest ago.

        Args:
            record_by_queue_name: The new records.
            listed_names: The names of all managed queues; None if some could not be listed.
            now: The time of the scan.
        """
        hour = hour_number(now)
        records_by_shard: dict[str, dict[str, QueueRecord]] = defaultdict(dict)
        for queue_name, record in record_by_queue_name.items():
            records_by_shard[shard_of(queue_name)][queue_name] = record
        for shard, new_records in sorted(records_by_shard.items()):
            records = {**self._read_history_shard(shard), **new_records}
            self.change(
                _history_key(shard),
                "SET history = :history",
                history=items.encode_json(_select_records(records, listed_names, hour)),
            )

    def _read_history_shard(self, shard: str) -> Mapping[str, QueueRecord]:
        """Return the records of one item; empty if there is none or it cannot be read."""
        history_item = self.get(_history_key(shard))
        record_by_queue_name: Mapping[str, QueueRecord] = {}
        with suppress(CaseStoreUnreadable), items.convert_decode_errors(f"the history {shard}"):
            record_by_queue_name = items.read_json(
                history_item, "history", dict[str, QueueRecord], "{}"
            )
        return record_by_queue_name

    def read_baseline_notes(self, shard: str) -> Mapping[str, BaselineNote]:
        """Return the notes about stored baselines by queue name.

        `store_baseline_notes` stored them. Empty if there are none, or if the stored item cannot be
        read.
        """
        baselines_item = self.get(items.item_key(ACCOUNT_PARTITION, f"baselines#{shard}"))
        note_by_queue_name: Mapping[str, BaselineNote] = {}
        with suppress(CaseStoreUnreadable), items.convert_decode_errors(f"the baselines {shard}"):
            note_by_queue_name = items.read_json(
                baselines_item, "baselines", dict[str, list[str]], "{}"
            )
        return note_by_queue_name

    def store_baseline_notes(
        self, shard: str, note_by_queue_name: Mapping[str, BaselineNote]
    ) -> None:
        """Store which queues of the shard have a stored baseline (a healthy configuration).

        The notes replace the previous notes of the shard.
        """
        key = items.item_key(ACCOUNT_PARTITION, f"baselines#{shard}")
        self.change(key, "SET baselines = :noted", noted=items.encode_json(note_by_queue_name))


# A note about a stored baseline, by which a changed one is recognized: a digest of the
# configuration, and the faults that the queue had. The digest is different every year, so that each
# baseline is stored again at least once a year.
BaselineNote = Sequence[str]


def make_baseline_note(
    configuration: Mapping[str, str], faults: Iterable[str], now: datetime
) -> BaselineNote:
    """Return the note about a baseline: a digest of configuration and year, and the faults."""
    configuration_digest = sha256(
        f"{now:%Y} {items.encode_json(configuration)}".encode()
    ).hexdigest()[:16]
    return (configuration_digest, *sorted(faults))


def must_store_baseline(new_note: BaselineNote, stored_note: BaselineNote | None) -> bool:
    """Return True if the baseline must be stored.

    It is stored if there is none yet, or if the configuration changed and the queue has no new
    fault since the stored baseline.
    """
    return stored_note is None or (
        new_note[0] != stored_note[0] and {*new_note[1:]} <= {*stored_note[1:]}
    )


def shard_of(queue: str) -> str:
    """Return the shard of a queue, one of _SHARDS, by its ARN or its name.

    Notes about baselines and records of queues are spread over 16 items. An item has room for about
    3,000 queues.
    """
    return sha256(queue.encode()).hexdigest()[0]


def _select_records(
    record_by_queue_name: ScanHistory, listed_names: Container[str] | None, hour: int
) -> dict[str, QueueRecord]:
    """Return the records to keep in one item: at most _MAXIMUM_HISTORY_BYTES of JSON."""

    def is_listed(queue_name: str) -> bool:
        return listed_names is None or queue_name in listed_names

    recent_names = [
        queue_name
        for queue_name, record in record_by_queue_name.items()
        if hour - record.scanned_hour
        <= (_RECORD_HOURS if is_listed(queue_name) else _UNLISTED_RECORD_HOURS)
    ]
    recent_names.sort(
        key=lambda queue_name: (
            not is_listed(queue_name),
            hour - record_by_queue_name[queue_name].scanned_hour,
            queue_name,
        )
    )
    kept_records: dict[str, QueueRecord] = {}
    byte_count = 0
    for queue_name in recent_names:
        record = record_by_queue_name[queue_name]
        byte_count += len(items.encode_json({queue_name: record}))
        if byte_count > _MAXIMUM_HISTORY_BYTES:
            break
        kept_records[queue_name] = record
    return kept_records


def _history_key(shard: str) -> items.Key:
    """Return the key of the item with the records of a shard's queues."""
    return items.item_key(ACCOUNT_PARTITION, f"history#{shard}")


def read_findings_document(hour: datetime, bucket: CaseBucket) -> dict[str, Any]:
    """Return the document with the findings that an hour's scan stored.

    Its form is not checked: if someone else wrote the object, it may be any JSON. Raises botocore's
    errors, ValueError and RecursionError.
    """
    response = bucket.client.get_object(Bucket=bucket.name, Key=findings_key(hour))
    document: dict[str, Any] = json.loads(response["Body"].read(MAXIMUM_OBJECT_BYTES))
    return document


# The largest object that is read: enough for about 16,000 unmanaged queues. An object of this size
# that someone else wrote takes half of the Lambda's memory.
MAXIMUM_OBJECT_BYTES = 20_000_000
# The form of the attributes that Mendq reads as numbers. SQS writes them without a sign, and some
# emulators write times with a fraction. With 11 digits a time is before the year 5139.
_COUNT_PATTERN = re.compile("[0-9]{1,11}")
_TIME_PATTERN = re.compile(r"[0-9]{1,11}(\.[0-9]{1,9})?")
_PATTERN_BY_NUMBER_ATTRIBUTE = {
    **dict.fromkeys(DEFAULT_NUMBER_BY_ATTRIBUTE, _COUNT_PATTERN),
    "ApproximateNumberOfMessages": _COUNT_PATTERN,
    "ApproximateNumberOfMessagesDelayed": _COUNT_PATTERN,
    "ApproximateNumberOfMessagesNotVisible": _COUNT_PATTERN,
    "CreatedTimestamp": _TIME_PATTERN,
    "LastModifiedTimestamp": _TIME_PATTERN,
}
_ONE_HOUR = timedelta(hours=1)


class StoredAnswers(Struct, frozen=True):
    """SQS's answers of an hour's scan that the next hour's scan may use.

    Attributes:
        round: The hour, as text.
        attributes: The attributes of unmanaged queues without visible messages, by queue ARN.
        sources: The ARNs of the queues that name a queue as their DLQ, by the ARN of that queue.
    """

    round: str
    attributes: dict[str, dict[str, str]]
    sources: dict[str, tuple[str, ...]]


def read_last_scan_answers(
    hour: datetime, bucket: CaseBucket, managed_arns: Container[str]
) -> AnswerByCall:
    """Return answers of the last hour's scan, by call, that this hour's scan may use.

    For each queue, answers are used only in every second hour. Attributes of a managed queue are
    never used. Empty if the stored object cannot be read: then everything is read from AWS.
    """
    stored_answers = _read_stored_answers(hour - _ONE_HOUR, bucket)
    answer_by_call: dict[Any, Any] = {}
    for arn, attributes in stored_answers.attributes.items():
        if _may_reuse_answers(arn, hour) and arn not in managed_arns:
            answer_by_call[read_queue_attributes, arn] = attributes
    for arn, source_arns in stored_answers.sources.items():
        if _may_reuse_answers(arn, hour):
            answer_by_call[list_source_arns, arn] = source_arns
    return answer_by_call


def _may_reuse_answers(queue_arn: str, hour: datetime) -> bool:
    """Return True if the last hour's answers for this queue may be used in this hour.

    This is so in every second hour: for half of the queues in even hours, for the others in odd
    hours.
    """
    return int(shard_of(queue_arn), 16) % 2 == hour.hour % 2


def store_answers(
    stretch: Stretch, bucket: CaseBucket, answer_cache: AnswerCache, managed_arns: Container[str]
) -> None:
    """Store this run's answers for the next hour's scan, with those of this hour's earlier runs.

    Errors of S3 are ignored: the next hour's scan then makes more calls.
    """
    stored_answers = (
        StoredAnswers("", {}, {})
        if stretch.is_first
        else _read_stored_answers(stretch.hour, bucket)
    )
    for arn, attributes in answer_cache.iterate_answers(read_queue_attributes):
        if arn in managed_arns or not _has_readable_numbers(attributes):
            continue
        if not QueueFacts(arn, attributes).visible:
            stored_answers.attributes[arn] = {**attributes}
    stored_answers.sources.update(answer_cache.iterate_answers(list_source_arns))
    new_answers = StoredAnswers(
        format_time(stretch.hour), stored_answers.attributes, stored_answers.sources
    )
    compressed_answers = zlib.compress(msgspec.json.encode(new_answers))
    with suppress(ClientError, BotoCoreError):
        bucket.client.put_object(
            Bucket=bucket.name, Key=_answers_key(stretch.hour), Body=compressed_answers
        )


def _read_stored_answers(hour: datetime, bucket: CaseBucket) -> StoredAnswers:
    """Return the answers that this hour's scan stored; empty if there are none.

    Empty too, without an error, if S3 fails, or if the object is of another hour or not as Mendq
    writes it.
    """
    with suppress(ClientError, BotoCoreError, zlib.error, ValueError, RecursionError):
        response = bucket.client.get_object(Bucket=bucket.name, Key=_answers_key(hour))
        compressed_answers = response["Body"].read(MAXIMUM_OBJECT_BYTES)
        json_text = zlib.decompressobj().decompress(compressed_answers, MAXIMUM_OBJECT_BYTES)
        stored_answers = msgspec.json.decode(json_text, type=StoredAnswers)
        if stored_answers.round == format_time(hour) and _has_readable_answers(stored_answers):
            return stored_answers
    return StoredAnswers("", {}, {})


def _has_readable_answers(stored_answers: StoredAnswers) -> bool:
    """Return True if every number and every ARN in the answers has the form that SQS gives it.

    Someone else may have written the object. A text in place of a number would raise an error in
    every scan that uses the answer.
    """
    has_readable_sources = all(
        queue_arn_or_none(source_arn)
        for source_arns in stored_answers.sources.values()
        for source_arn in source_arns
    )
    return has_readable_sources and all(
        map(_has_readable_numbers, stored_answers.attributes.values())
    )


def _has_readable_numbers(attributes: Mapping[str, str]) -> bool:
    """Return True if each attribute that Mendq reads as a number has the form of one."""
    return all(
        _PATTERN_BY_NUMBER_ATTRIBUTE[name].fullmatch(attributes[name])
        for name in _PATTERN_BY_NUMBER_ATTRIBUTE.keys() & attributes.keys()
    )


def _answers_key(hour: datetime) -> str:
    """Return the S3 key of an hour's answers.

    Two objects alternate by hour: a scan reads the last hour's and writes this hour's.
    """
    return f"findings/answers-{hour.hour % 2}.json.z"
