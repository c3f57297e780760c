"""EventBridge where MiniStack differs: rule states, the queue's policy, undeliverable events."""

from __future__ import annotations

import contextvars
import json
import logging
from collections.abc import Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.arn import parse_arn
from ministack.core.responses import get_account_id
from ministack.services import eventbridge, sqs

from local_account.cloudtrail.events import rule_sees
from local_account.where import HOST

logger = logging.getLogger("mendq.eventbridge")
EVENTBRIDGE = "events.amazonaws.com"


def dispatch_event(event: Mapping[str, Any], view: Any = None) -> None:
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


def _send(
    target: Mapping[str, Any], event: Mapping[str, Any], rule: Mapping[str, Any], view: Any
) -> None:
    arn = str(target.get("Arn", ""))
    is_queue = arn.startswith("arn:aws:sqs:")
    if is_queue and (refusal := _refusal(arn, rule)):
        logger.error("the event for %s is undeliverable: %s", arn, refusal)
        _dead_letter(target, rule, view, refusal)
        return
    with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
        if is_queue:
            eventbridge._invoke_target(target, event, rule, view)
    if not is_queue:
        eventbridge._invoke_target(target, event, rule, view)


def _refusal(queue_arn: str, rule: Mapping[str, Any]) -> str | None:
    """Why SQS would not take the event; AWS does not try such a delivery again."""
    if sqs._queue_by_arn(queue_arn) is None:
        return "NO_RESOURCE"
    context = contextvars.copy_context()
    allowed = context.run(_queue_lets_in, queue_arn, str(rule.get("Arn", "")))
    return None if allowed else "NO_PERMISSIONS"


def _queue_lets_in(queue_arn: str, rule_arn: str) -> bool:
    iam_evaluator.pin_request_origin(HOST, secure_transport=True)  # as AWS's services call
    return bool(sqs.queue_policy_allows(queue_arn, EVENTBRIDGE, rule_arn, get_account_id()))


def _dead_letter(
    target: Mapping[str, Any], rule: Mapping[str, Any], view: Any, refusal: str
) -> None:
    """https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html"""
    arn = (target.get("DeadLetterConfig") or {}).get("Arn")
    if not arn or _refusal(arn, rule):
        return
    shown = {
        "ERROR_CODE": refusal,
        "RULE_ARN": rule.get("Arn", ""),
        "TARGET_ARN": target.get("Arn", ""),
    }
    with sqs._queues_lock:
        eventbridge._dispatch_to_sqs(parse_arn(arn), json.dumps(view.event_with_detail()))
        queue = sqs._queue_by_arn(arn)
        queue["messages"][-1]["message_attributes"] = {
            name: {"DataType": "String", "StringValue": value} for name, value in shown.items()
        }
