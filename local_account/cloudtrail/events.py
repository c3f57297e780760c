"""CloudTrail's events on the default bus, and EventBridge where MiniStack differs.

These are the states of rules, and that a queue's policy has to let the events in.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event-cloudtrail.html
"""

from __future__ import annotations

import contextvars
import json
import logging
from collections.abc import Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, request_scope
from ministack.services import eventbridge, sqs

from local_account.where import HOST

DETAIL_TYPE = "AWS API Call via CloudTrail"
SEES_READING_MANAGEMENT_TOO = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"
Event = Mapping[str, Any]
logger = logging.getLogger("mendq.eventbridge")


def install() -> None:
    """Hook rules; once per process."""
    eventbridge._dispatch_event = dispatch_event


def put_event(record: Mapping[str, Any]) -> None:
    """Put a record on the default bus of its account and region, from `aws.<service>`."""
    source = f"aws.{record['eventSource'].partition('.')[0]}"
    entry = {"Source": source, "DetailType": DETAIL_TYPE, "Detail": json.dumps(record)}
    put_entry({**entry, "Resources": []}, record["recipientAccountId"], record["awsRegion"])


def put_entry(entry: Event, account: str, region: str) -> None:
    """Put an event on the default bus as one of AWS's own services."""
    with request_scope(account, region):
        eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def rule_sees(state: str, event: Event) -> bool:
    """Tell whether a rule in `state` is tried for an event: reads need their own state."""
    if state == SEES_READING_MANAGEMENT_TOO or event.get("DetailType") != DETAIL_TYPE:
        return state in (SEES_READING_MANAGEMENT_TOO, "ENABLED")
    record = json.loads(event.get("Detail") or "{}")
    return state == "ENABLED" and not (record.get("managementEvent") and record.get("readOnly"))


def dispatch_event(event: Event, view: Any = None) -> None:
    """Hand an event to the targets of every rule of its bus that is on and matches."""
    view = view or eventbridge._pattern_event_view(event)
    passed = set(event.get("_DispatchPath") or ())
    for key, rule in list(eventbridge._rules.items()):
        pattern = rule.get("EventPattern")
        if (
            not pattern
            or key in passed
            or rule.get("EventBusName", "default") != event.get("EventBusName", "default")
            or not rule_sees(rule.get("State", ""), event)
            or not eventbridge._matches_pattern_view(pattern, view, f"rule {key}")
        ):
            continue
        for target in eventbridge._targets.get(key, []):
            _send(target, event, rule, view)


def _send(target: Event, event: Event, rule: Event, view: Any) -> None:
    arn = str(target.get("Arn", ""))
    if not arn.startswith("arn:aws:sqs:"):
        eventbridge._invoke_target(target, event, rule, view)
    elif refusal := _refusal(arn, rule):
        logger.error("the event for %s is undeliverable: %s", arn, refusal)
    else:
        with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
            eventbridge._invoke_target(target, event, rule, view)


def _refusal(queue_arn: str, rule: Event) -> str | None:
    """Tell why SQS would not take the event; AWS does not try such a delivery again."""
    if sqs._queue_by_arn(queue_arn) is None:
        return "NO_RESOURCE"
    context = contextvars.copy_context()
    allowed = context.run(_queue_lets_in, queue_arn, str(rule.get("Arn", "")))
    return None if allowed else "NO_PERMISSIONS"


def _queue_lets_in(queue_arn: str, rule_arn: str) -> bool:
    iam_evaluator.pin_request_origin(HOST, secure_transport=True)  # as AWS's services call
    service = "events.amazonaws.com"
    return bool(sqs.queue_policy_allows(queue_arn, service, rule_arn, get_account_id()))
