"""CloudTrail's events on the default bus, and two behaviors of EventBridge that MiniStack lacks.

1. Rules do not match management events of read-only calls.
2. A queue gets events that match a rule only if its policy allows EventBridge to send to it. If
   the queue has a KMS key, the key's policy must allow EventBridge to use it.

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

from local_account.hooks import replace_functions
from local_account.sqs.encryption import ServicePrincipal, encrypt_delivery
from local_account.where import HOST

EVENTBRIDGE = "events.amazonaws.com"
CLOUDTRAIL_DETAIL_TYPE = "AWS API Call via CloudTrail"
Event = Mapping[str, Any]
logger = logging.getLogger("mendq.eventbridge")


def install() -> None:
    """Make MiniStack deliver events as described at the head of this module.

    Call this once per process.
    """

    @replace_functions(eventbridge, "_invoke_target")
    def send_to_target(
        original_function: Any, target: Event, event: Event, rule: Event, event_view: Any = None
    ) -> None:
        target_arn = str(target.get("Arn", ""))
        is_queue = rule.get("EventPattern") and target_arn.startswith("arn:aws:sqs:")
        if is_queue and (refusal := _find_queue_refusal(target_arn, rule)):
            logger.error("the event for %s is undeliverable: %s", target_arn, refusal)
            return
        if _is_read_only_management_event(event):
            return
        if not is_queue:
            original_function(target, event, rule, event_view)
            return
        service = ServicePrincipal(EVENTBRIDGE, str(rule.get("Arn", "")))
        with encrypt_delivery(target_arn, service) as key_refusal:
            if key_refusal is None:
                original_function(target, event, rule, event_view)

    @replace_functions(iam_actions, "request_tag_context")
    def add_condition_keys(
        original_function: Any, service: str, action: str, body: bytes, query_parameters: Event
    ) -> Any:
        """Return a call's values by IAM condition key, including the keys of PutEvents.

        MiniStack itself lacks the keys of PutEvents, `events:source` and `events:detail-type`. If
        the call has several entries, both keys have the values of the last entry. Mendq sends one
        entry in each call.
        """
        value_by_condition_key = original_function(service, action, body, query_parameters)
        if action == "events:PutEvents":
            for entry in json.loads(body)["Entries"]:
                value_by_condition_key["events:source"] = entry["Source"]
                value_by_condition_key["events:detail-type"] = entry["DetailType"]
        return value_by_condition_key


def _is_read_only_management_event(event: Event) -> bool:
    """Return True for a management event of a read-only call.

    On AWS, only rules in state ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS match such an event.
    No rule here has this state.
    """
    if event.get("DetailType") != CLOUDTRAIL_DETAIL_TYPE:
        return False
    record = json.loads(event.get("Detail") or "{}")
    return bool(record.get("managementEvent") and record.get("readOnly"))


def put_event(record: Mapping[str, Any]) -> None:
    """Put a CloudTrail record as an event on the default bus of the record's account and Region."""
    event_source = f"aws.{record['eventSource'].partition('.')[0]}"
    entry = {
        "Source": event_source,
        "DetailType": CLOUDTRAIL_DETAIL_TYPE,
        "Detail": json.dumps(record),
    }
    put_entry({**entry, "Resources": []}, record["recipientAccountId"], record["awsRegion"])


def put_entry(entry: Event, account: str, region: str) -> None:
    """Put an event on an account's default bus, as AWS's own services do."""
    with request_scope(account, region):
        eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def _find_queue_refusal(queue_arn: str, rule: Event) -> str | None:
    """Return EventBridge's error code if the queue cannot get the rule's events, otherwise None."""
    if sqs._queue_by_arn(queue_arn) is None:
        return "NO_RESOURCE"
    call_context = contextvars.copy_context()
    is_allowed = call_context.run(_queue_allows_rule, queue_arn, str(rule.get("Arn", "")))
    return None if is_allowed else "NO_PERMISSIONS"


def _queue_allows_rule(queue_arn: str, rule_arn: str) -> bool:
    """Return True if the queue's policy lets EventBridge send events of this rule."""
    iam_evaluator.pin_request_origin(HOST, secure_transport=True)  # AWS's services use TLS
    return bool(sqs.queue_policy_allows(queue_arn, EVENTBRIDGE, rule_arn, get_account_id()))
