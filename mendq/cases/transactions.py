"""DynamoDB transactions of the case store: their parts, conditions and conflicts."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.errors import CaseStoreUnavailable, code_of
from mendq.cases import items, view
from mendq.cases.view import AttributeRecord, CaseStoreView
from mendq.model.case import Case, State
from mendq.model.evidence import to_text
from mendq.notifications.notification import NotificationRecord
from mendq.notifications.queue_lines import Configuration

CANCELLED = "TransactionCanceledException"
TRIES = 4
FIRST_PAUSE_SECONDS = 0.05
Answer = TypeVar("Answer")


def unconflicted(call: Callable[[], Answer]) -> Answer:
    """Call again where another transaction was at the same item; raises the last error."""
    for attempt in range(TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if not _is_conflict(error):
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
    return call()


def failed_condition(error: ClientError) -> int:
    """The index of the first condition that failed; raises CaseStoreUnavailable where none did."""
    for index, reason in enumerate(_reasons(error)):
        if reason.get("Code") == "ConditionalCheckFailed":
            return index
    reasons = json.dumps(_reasons(error), default=str)
    raise CaseStoreUnavailable(f"the case store was busy: {reasons}") from error


@contextmanager
def case_store_errors() -> Iterator[None]:
    """Turn AWS's errors into CaseStoreUnavailable."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CaseStoreUnavailable(str(error)) from error


def _is_conflict(error: ClientError) -> bool:
    codes = {reason.get("Code") for reason in _reasons(error)}
    lost = "ConditionalCheckFailed" in codes
    return code_of(error) == CANCELLED and "TransactionConflict" in codes and not lost


def _reasons(error: ClientError) -> list[dict[str, Any]]:
    return [dict(each) for each in error.response.get("CancellationReasons", [])]


Part = dict[str, Any]
# What is known of a queue is worth a comparison for as long as CloudTrail's history goes back.
KNOWN_DAYS = 90
TRANSITION_DAYS = 400


@dataclass(frozen=True)
class Entry:
    """One transition and all that is written with it; `seen` is what it was decided on.

    `owner` is whose claim ends with it, `written_by` the run that writes it down; `due_at` when it
    is to be looked at, which what has ended is too until it is filed; `claims_now` the time that
    others' claims have run out by, where the case's own was put forward.
    """

    case: Case
    seen: CaseStoreView
    owner: str
    written_by: str
    changes: Mapping[str, AttributeRecord]
    attributes: Mapping[str, str]
    due_at: datetime
    page: NotificationRecord | None = None
    claims_now: datetime | None = None


def record_parts(entry: Entry) -> list[Part]:
    """Move the case, end its evidence, change records and claims, note the configuration."""
    case = entry.case
    claims_now = entry.claims_now or case.at
    moved = case_unmoved(case, entry.seen, entry.written_by, entry.owner, claims_now)
    item = {**moved.pop("Key"), **_case_item(entry)}
    parts: list[Part] = [
        {"Put": {"Item": item, **moved}},
        {"Put": {"Item": _transition_item(case)}},
        {"Delete": {"Key": items.evidence_key(case.queue_arn, case.symptom)}},
        *(
            {"Put": _attribute_put(case.queue_arn, attribute, record, entry.owner)}
            for attribute, record in entry.changes.items()
        ),
    ]
    if entry.attributes:
        parts.append({"Put": _configuration_put(entry)})
    if entry.page:
        key = items.notification_key(case.queue_arn, case.symptom)
        parts.append({"Put": {"Item": {**key, **notification_item(entry.page)}}})
    return parts


def notification_item(page: NotificationRecord) -> dict[str, Any]:
    """Without its key."""
    item: dict[str, Any] = {
        "at": items.epoch(page.at),
        "urgent": {"BOOL": page.urgent},
        "announced": {
            "S": json.dumps({news: to_text(when) for news, when in page.announced.items()})
        },
    }
    if page.body:
        texts = {each: {"S": getattr(page, each)} for each in items.PAGE_TEXTS}
        item |= {**texts, "since": items.epoch(page.since or page.at)}
    return item


def _case_item(entry: Entry) -> dict[str, Any]:
    """Without its key; it stands in the index, an ended one until it is filed and told."""
    case = entry.case
    item = {
        "case_id": {"S": case.case_id},
        "symptom": {"S": case.symptom},
        "n": {"N": str(case.n)},
        "state": {"S": case.state},
        "code": {"S": case.code},
        "document": {"S": json.dumps(case.document())},
        "written_by": {"S": entry.written_by},
        "opened_at": items.epoch(case.opened_at or case.at),
        items.UNFILED: items.marked({*entry.seen.unfiled, (case.case_id, case.n)}),
        view.PARTITION: {"S": view.EVERY_CASE},
        view.SORT: items.epoch(entry.due_at),
    }
    if case.state is State.INEFFECTIVE:
        # What the calls said of themselves decides about the next step too.
        item["failures"] = {"S": items.failures_text(entry.seen.failures)}
    return item


def _transition_item(case: Case) -> dict[str, Any]:
    return {
        **items.transition_key(case.case_id, case.n),
        "document": {"S": json.dumps(case.document())},
        "opened_at": items.epoch(case.opened_at or case.at),
        "expires_at": items.epoch(case.at + timedelta(days=TRANSITION_DAYS)),
    }


def case_unmoved(
    case: Case, seen: CaseStoreView, written_by: str, owner: str, claims_now: datetime
) -> Part:
    """Where it was when it was looked at; or this very run has written it, and lost the answer.

    Nor may anybody but `owner` hold a claim that still runs at `claims_now`: what they write is to
    be recorded.
    """
    previous = seen.case
    return {
        "Key": items.case_key(case.queue_arn, case.symptom),
        "ConditionExpression": "attribute_not_exists(pk) "
        "OR (document = :mine AND written_by = :me) OR (case_id = :previous AND n = :at_n "
        "AND (attribute_not_exists(failures) OR failures = :failures) "
        "AND (attribute_not_exists(claim_owner) OR claim_owner = :owner "
        "OR claim_until <= :at))",
        "ExpressionAttributeValues": {
            ":owner": {"S": owner},
            ":at": items.epoch(claims_now),
            ":failures": {"S": items.failures_text(seen.failures)},
            ":previous": {"S": previous.case_id if previous else ""},
            ":at_n": {"N": str(previous.n if previous else 0)},
            ":mine": {"S": json.dumps(case.document())},
            ":me": {"S": written_by},
        },
    }


def _configuration_put(entry: Entry) -> Part:
    case = entry.case
    now = Configuration.after(entry.seen.known, entry.attributes, case.at)
    item = {
        **items.configuration_key(case.queue_arn),
        "at": items.epoch(now.at),
        "attributes": {"S": json.dumps(dict(now.attributes), sort_keys=True)},
        "since": items.epoch(now.since),
        "expires_at": items.epoch(now.at + timedelta(days=KNOWN_DAYS)),
    }
    if now.earlier is not None:
        earlier = [to_text(now.earlier.at), dict(now.earlier.attributes)]
        item["earlier"] = {"S": json.dumps(earlier, sort_keys=True)}
    return {"Item": item}


def _attribute_put(queue_arn: str, attribute: str, record: AttributeRecord, owner: str) -> Part:
    """Replaces the record and ends the claim, which has to be nobody's or `owner`'s."""
    item: dict[str, Any] = {
        **items.attribute_key(queue_arn, attribute),
        "writes": {"S": items.writes_text(record.writes)},
    }
    if record.person_value is not None:
        item["person_value"] = {"S": record.person_value}
    if record.owes_a_notification:
        item["owes_a_notification"] = {"BOOL": True}
    for name, moment in (
        ("overridden_until", record.overridden_until),
        ("queue_created_at", record.queue_created_at),
    ):
        if moment is not None:
            item[name] = items.epoch(moment)
    return {
        "Item": item,
        "ConditionExpression": "attribute_not_exists(claim_owner) OR claim_owner = :owner",
        "ExpressionAttributeValues": {":owner": {"S": owner}},
    }
