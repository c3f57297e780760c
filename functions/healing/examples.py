"""Calls and queues for the examples of the catalogue: made up, in the shapes of the real ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from functions.healing.case import Case, opened
from functions.healing.error_codes import canonical
from functions.healing.evidence import Evidence, Sighting
from functions.healing.facts import Facts
from functions.healing.failed_call import FailedCall
from functions.healing.measured import Measured
from functions.healing.queue_defaults import DEFAULTS
from functions.healing.states import State

QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
STANDARD_ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD_LETTER_ARN = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def failed_call(
    event_name: str, error_code: str, error_message: str = "", queue_arn: str = QUEUE_ARN
) -> FailedCall:
    """A failed call on an example queue."""
    return FailedCall(
        event_id="5f3b9f5e-1d0e-4c2f-9a60-000000000001",
        event_time=AT,
        event_name=event_name,
        error_code=canonical(error_code),
        raw_error_code=error_code,
        error_message=error_message,
        queue_arn=queue_arn,
        account="123456789012",
        region="us-east-1",
        principal_arn="arn:aws:iam::123456789012:role/orders-worker",
        session_created_at=None,
        request_id="4b7c6f0e-0000-5000-8000-000000000001",
        source_ip="10.0.0.7",
    )


def queue(
    tags: Mapping[str, str] | None = None, queue_arn: str = QUEUE_ARN, **attributes: str
) -> Facts:
    """An example queue with SQS's defaults; `attributes` over them."""
    shown = ("VisibilityTimeout", "MessageRetentionPeriod")
    defaults = {name: str(DEFAULTS[name]) for name in shown}
    return Facts(queue_arn, {**defaults, **attributes}, dict(tags or {}))


def case(
    symptom: str, *states: State, reason: str = "it stayed away", queue_arn: str = STANDARD_ARN
) -> Case:
    """A case about an example queue that went through `states`, the last of them at AT."""
    first, *later = states
    found = opened(
        first,
        queue_arn=queue_arn,
        symptom=symptom,
        reason="made up",
        evidence=Evidence((Sighting.of_measurement(AT),)),
        steps=(),
        now=AT,
        actor="heal",
    )
    for each in later:
        found = found.moved(each, reason, AT)
    return found


def measured(**counted: int) -> Measured:
    """Six hours of a queue on which nothing went on; `counted` over that."""
    nothing = Measured(
        since=AT - timedelta(hours=6),
        until=AT,
        sent=0,
        received=0,
        deleted=0,
        empty_receives=0,
        backlog_before=0,
        backlog_now=0,
        visible_before=0,
        visible_now=0,
        least_visible=0,
        in_flight_now=0,
        oldest_age_seconds_before=0,
        oldest_age_seconds_now=0,
    )
    return replace(nothing, **counted)  # type: ignore[arg-type]
