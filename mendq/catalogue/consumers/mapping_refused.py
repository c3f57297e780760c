"""Symptom `mapping_refused`: Lambda refuses to let a function read the queue.

The fault: the queue's visibility timeout is shorter than the function's timeout. Lambda then
creates no event source mapping, so nothing reads the queue. Most often a deployment fails and
CloudFormation deletes the queue again.

How it shows: CloudTrail records CreateEventSourceMapping or UpdateEventSourceMapping with
InvalidParameterValueException and "Queue visibility timeout: N seconds is less than Function
timeout: M seconds". This is a management event of Lambda, so it arrives only if a trail logs
management events. The sentence was seen in public reports; AWS does not document it. An update
names its mapping and often no queue; then the call is only counted.

What Mendq changes: if the queue still exists, it proposes the visibility timeout that AWS advises
for a function with this timeout. If the queue is gone, it says which value the template needs.

Why that is safe: a person approves the change. The function's timeout comes from Lambda's sentence,
which contains no text of the caller, and the bounds of `needed_timeout.py` hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import STANDARD_ARN, failed_call, standard_queue
from mendq.catalogue.symptom import (
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    FailedCallPattern,
    FixedSymptom,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    VisibilityNeed,
    find_exceeded_bounds,
    make_need_of_function,
    read_ceiling_seconds,
)
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.failed_call import MAPPING_CALLS, REFUSED_MAPPING_CODE, FailedCall
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_VISIBILITY, TagUnreadable
from mendq.notifications.commands import make_aws_command

_LAMBDA_PAGE = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the visibility timeout that AWS advises for the function whose mapping was refused.

    Notify people of the value for the template if the queue does not exist any more.
    """
    function_seconds = facts.refused_function_seconds or 0
    need = make_need_of_function(LambdaConsumer("", function_seconds, batching_window_seconds=0))
    if not facts.exists:
        return _name_value_for_template(facts, function_seconds, need)
    current_seconds = facts.visibility_seconds
    if current_seconds >= function_seconds:
        reason = (
            f"the visibility timeout is {current_seconds:,} s by now, which covers a function "
            f"timeout of {function_seconds:,} s: create the mapping again"
        )
        return Ignore("need_already_met", reason)
    try:
        ceiling_seconds = read_ceiling_seconds(facts, limits)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    goal_seconds = need.choose_timeout_within_ceiling(ceiling_seconds)
    need = replace(need, source_text=f"the function's timeout is {function_seconds:,} s")
    refusal = next(find_exceeded_bounds(facts, need, goal_seconds, ceiling_seconds), None)
    if refusal is not None:
        return refusal
    reason = (
        f"Lambda refused an event source mapping, because the queue's visibility timeout of "
        f"{current_seconds:,} s is below the function's timeout of {function_seconds:,} s: the "
        f"function does not read the queue. AWS advises {need.recommended_seconds:,} s. Set the "
        "value in the queue's template too, then create the mapping again"
    )
    step = SetVisibilityTimeout(current_seconds, goal_seconds)
    return Plan((step,), reason, highest_mode=Mode.PROPOSE)


def _name_value_for_template(facts: Facts, function_seconds: int, need: VisibilityNeed) -> Refusal:
    """Return the refusal that notifies people of the value that the template needs."""
    queue_parts = parse_queue_arn(facts.queue_arn)
    reason = (
        f"Lambda refused an event source mapping of {queue_parts.name}, because the queue's "
        f"visibility timeout was below the function's timeout of {function_seconds:,} s. The queue "
        "is gone by now, as after a deployment that CloudFormation rolls back. Set "
        f"VisibilityTimeout in its template to at least {function_seconds:,}; AWS advises "
        f"{need.recommended_seconds:,}. Then deploy again"
    )
    queue_filter = f"contains(CloudTrailEvent, ':{queue_parts.account}:{queue_parts.name}\\\"')"
    event_name = "AttributeKey=EventName,AttributeValue=CreateEventSourceMapping20150331"
    command = make_aws_command(
        "cloudtrail lookup-events",
        facts.queue_arn,
        f'--lookup-attributes {event_name} --query "Events[?{queue_filter}].CloudTrailEvent"',
    )
    return Escalate("queue_rolled_back", reason, command)


def _make_refused_call(queue_seconds: int, function_seconds: int) -> FailedCall:
    """Return a refused CreateEventSourceMapping with Lambda's sentence about both timeouts."""
    sentence = (
        f"Queue visibility timeout: {queue_seconds} seconds is less than "
        f"Function timeout: {function_seconds} seconds"
    )
    call = failed_call("CreateEventSourceMapping", REFUSED_MAPPING_CODE, sentence, STANDARD_ARN)
    return replace(
        call,
        raw_error_code="InvalidParameterValueException",
        refused_function_seconds=function_seconds,
    )


def _make_example_queue(function_seconds: int, **overrides: Any) -> Facts:
    """Return a queue for which Lambda refused the mapping of a function with this timeout."""
    return replace(standard_queue(**overrides), refused_function_seconds=function_seconds)


def _make_example(
    title: str, function_seconds: int, facts: Facts, goal_seconds: int
) -> CallExample:
    step = SetVisibilityTimeout(facts.visibility_seconds, goal_seconds)
    call = _make_refused_call(facts.visibility_seconds, function_seconds)
    return CallExample(title, call, facts, (step,))


MAPPING_REFUSED = FixedSymptom(
    name="mapping_refused",
    sentence="Lambda refuses an event source mapping of the queue, because the queue's visibility "
    "timeout is below the function's timeout.",
    plan_in_words="Propose six times the function's timeout, never over "
    "limits.visibilityCeilingSeconds; if the queue is gone by now, say which value its template "
    "needs.",
    habit="keeps being deployed with a visibility timeout below its function's timeout",
    first_step="Raise the visibility timeout to six times the function's timeout.",
    aws_page=_LAMBDA_PAGE,
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=(FailedCallPattern(frozenset(MAPPING_CALLS), REFUSED_MAPPING_CODE),),
    # A queue that was deleted meanwhile is reported too, so the plan must not require facts.
    needs=frozenset(),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    shown_attributes=(SetVisibilityTimeout.attribute,),
    tags=(MAX_VISIBILITY,),
    advice_if_many=Advice("Look for the template or module that all these queues come from."),
    examples=lambda: (
        _make_example(
            "SQS's default timeout, and a function that may run 60 s",
            60,
            _make_example_queue(60),
            360,
        ),
        _make_example(
            "six times the function's timeout is over the ceiling",
            300,
            _make_example_queue(300),
            450,
        ),
        CallExample(
            "the queue was rolled back",
            _make_refused_call(30, 60),
            Facts(STANDARD_ARN, {}, refused_function_seconds=60),
            "queue_rolled_back",
        ),
        RefusalExample(
            "a person raised the timeout meanwhile",
            _make_example_queue(60, VisibilityTimeout=90),
            "need_already_met",
        ),
        RefusalExample(
            "the function's timeout is over the ceiling", _make_example_queue(900), "over_ceiling"
        ),
        CallNearMiss(
            "another mistake in a mapping",
            failed_call("CreateEventSourceMapping", "InvalidParameterValueException"),
        ),
        CallNearMiss(
            "a value that SQS refuses", failed_call("SetQueueAttributes", "InvalidAttributeValue")
        ),
    ),
)
