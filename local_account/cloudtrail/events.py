"""CloudTrail's events on the default bus, and EventBridge where MiniStack differs.

These are what rules see of reading calls, and that a queue's policy has to let the events in.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event-cloudtrail.html
"""

from __future__ import annotations

import contextvars
import json
import logging
from collections.abc import Mapping
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import get_account_id, request_scope
from ministack.services import eventbridge, sqs

from local_account.hooks import around
from local_account.where import HOST

DETAIL_TYPE = "AWS API Call via CloudTrail"
Event = Mapping[str, Any]
logger = logging.getLogger("mendq.eventbridge")


def install() -> None:
    """Hook what hands an event to a rule's target; once per process."""

    @around(eventbridge, "_invoke_target")
    def send(inner: Any, target: Event, event: Event, rule: Event, view: Any = None) -> None:
        arn = str(target.get("Arn", ""))
        if not rule.get("EventPattern") or not arn.startswith("arn:aws:sqs:"):
            if not _is_reading_management(event):
                inner(target, event, rule, view)
        elif refusal := _refusal(arn, rule):
            logger.error("the event for %s is undeliverable: %s", arn, refusal)
        elif not _is_reading_management(event):
            with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
                inner(target, event, rule, view)

    @around(iam_actions, "request_tag_context")
    def keys(inner: Any, service: str, action: str, body: bytes, params: Event) -> Any:
        """Beside tags, what a policy may ask of an event that is put; ours come one by one."""
        said = inner(service, action, body, params)
        for entry in json.loads(body)["Entries"] if action == "events:PutEvents" else ():
            said |= {"events:source": entry["Source"], "events:detail-type": entry["DetailType"]}
        return said


def _is_reading_management(event: Event) -> bool:
    """Tell whether it is an event that only rules in a state of their own see; ours is in none."""
    if event.get("DetailType") != DETAIL_TYPE:
        return False
    record = json.loads(event.get("Detail") or "{}")
    return bool(record.get("managementEvent") and record.get("readOnly"))


def put_event(record: Mapping[str, Any]) -> None:
    """Put a record on the default bus of its account and region, from `aws.<service>`."""
    source = f"aws.{record['eventSource'].partition('.')[0]}"
    entry = {"Source": source, "DetailType": DETAIL_TYPE, "Detail": json.dumps(record)}
    put_entry({**entry, "Resources": []}, record["recipientAccountId"], record["awsRegion"])


def put_entry(entry: Event, account: str, region: str) -> None:
    """Put an event on the default bus as one of AWS's own services."""
    with request_scope(account, region):
        eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


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
