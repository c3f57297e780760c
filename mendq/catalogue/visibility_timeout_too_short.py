"""Consumers hold messages longer than the visibility timeout, so others receive them again.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import _visibility, examples
from mendq.catalogue import _visibility as against
from mendq.catalogue._visibility import (
    MAX_PROCESSING_TAG,
    VisibilityNeed,
    may_race,
    race_in,
    race_or_retries,
    without_named_need,
)
from mendq.catalogue.symptom import (
    NOT_FOUND,
    Caught,
    Detected,
    Detection,
    Found,
    NearMiss,
    SeenAs,
    Symptom,
    seen_as_labelled,
)
from mendq.model.facts import Facts, LambdaConsumer, Need, SourceQueue
from mendq.model.failed_call import reason_given
from mendq.model.limits import Limits, Mode, TagUnreadable
from mendq.model.plan import Plan, Refusal, Refuse
from mendq.model.steps import SetVisibilityTimeout


def handle_has_expired(error_message: str) -> bool:
    return reason_given(error_message, "ReceiptHandle") == "The receipt handle has expired."


def detect(facts: Facts) -> Found | None:
    """A race that no call tells of; a visibility timeout that is short and harms nobody yet is
    none.
    """
    because = race_in(facts)
    return None if because is None else Found(because)


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """The longer visibility timeout that the queue's consumers need, from its facts alone."""
    try:
        ceiling_seconds = _visibility.ceiling_seconds(facts, limits)
        needs = _visibility.named(facts)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    need = _visibility.largest_unmet(facts, needs) or _visibility.guess(facts)
    return (
        against.readers_decide(facts, needs)
        or against.consumer_fails(facts)
        or race_or_retries(facts)
        or without_named_need(facts, needs)
        or against.already_met(facts, need)
        or against.over_ceiling(need, ceiling_seconds)
        or against.over_guess(facts, need, named=bool(needs))
        or against.over_retention(facts, need)
        or against.over_in_flight(facts, need)
        or _raise_to(facts, need)
    )


def _raise_to(facts: Facts, need: VisibilityNeed) -> Plan:
    current = facts.visibility_seconds
    recommended = need.recommended_seconds
    return Plan(
        steps=(SetVisibilityTimeout(current, need.seconds),),
        reason=f"the visibility timeout of {current} s ends before its consumers are done: "
        f"{need.because}"
        + need.recommended_beyond(need.seconds)
        + (f"; {facts.found}" if facts.found else ""),
        proposal=(SetVisibilityTimeout(current, recommended),) if recommended else (),
    )


_EXPIRED = (
    "Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
)
_OWN_DELETE = (
    "Value AQEB for parameter ReceiptHandle is invalid. Reason: "
    "Message does not exist or is not available for visibility timeout change."
)
_LATE_DELETE = examples.failed_call("DeleteMessage", "InvalidParameterValue", _EXPIRED)
_LATE_EXTENSION = examples.failed_call("ChangeMessageVisibility", "MessageNotInflight", "")
_FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
_FAILING = replace(_FUNCTION, duration_p99_seconds=0.4, error_share=0.9)
_TAGGED = {MAX_PROCESSING_TAG: "40"}


def _counted(tags: dict[str, str] | None = None, **counted: int) -> Facts:
    """A standard queue with a surplus of 200 deletes; `counted` over that."""
    facts = examples.queue(tags, examples.STANDARD_ARN, ApproximateNumberOfMessagesNotVisible="12")
    race = {"sent": 1_000, "received": 1_250, "deleted": 1_200, **counted}
    return replace(facts, dlq_sources=(), measured=examples.measured(**race))


_UNFOUND = {
    "a surplus that inexact counters explain": _counted(_TAGGED, deleted=1_050),
    "one handle deleted twice": _counted(_TAGGED, received=1_000),
    "every message fails and comes back: no delete too many": _counted(
        _TAGGED, received=3_000, deleted=1_000
    ),
    "a purge: fewer are left, and none was deleted": _counted(
        _TAGGED, received=900, deleted=900, backlog_before=5_000
    ),
    "what waits expires": _counted(_TAGGED, received=400, deleted=400, backlog_before=900),
    "what fails goes to the DLQ": _counted(_TAGGED, received=4_600, deleted=100),
    "DLQ messages are being moved back": replace(_counted(_TAGGED), move_task_running=True),
    "DLQ messages arrive here, which nobody sent": replace(
        _counted(_TAGGED), dlq_sources=(SourceQueue(examples.QUEUE_ARN, {}),)
    ),
    "its Lambda consumer fails": replace(_counted(_TAGGED), lambda_consumers=(_FAILING,)),
    "it was changed a moment ago, so nothing is measured": replace(
        _counted(_TAGGED), measured=None
    ),
}

VISIBILITY_TIMEOUT_TOO_SHORT = Symptom(
    name="visibility_timeout_too_short",
    sentence="Consumers need longer than the visibility timeout, so messages are handled twice.",
    plan_in_words="Raise VisibilityTimeout to what a Lambda consumer or a tag names, "
    "else by half; never over the ceiling, never in part.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-visibility-timeout.html",
    seen_as=(
        *seen_as_labelled("visibility_timeout_too_short"),
        SeenAs(
            frozenset({"DeleteMessage", "ChangeMessageVisibility"}),
            "InvalidParameterValue",
            handle_has_expired,
        ),
    ),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    autonomy=Mode.HEAL,
    outlives_the_timeout=True,
    detection=Detection(
        detect,
        frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES}),
        may_race,
    ),
    caught=(
        Caught(
            "a guess where nothing names the need",
            _LATE_DELETE,
            examples.queue(VisibilityTimeout="30"),
            (SetVisibilityTimeout(30, 45),),
        ),
        Caught(
            "half as much again as the tag says",
            _LATE_EXTENSION,
            examples.queue({MAX_PROCESSING_TAG: "20"}, VisibilityTimeout="2"),
            (SetVisibilityTimeout(2, 30),),
        ),
        Caught(
            "a Lambda consumer's timeout and window",
            _LATE_EXTENSION,
            replace(examples.queue(VisibilityTimeout="30"), lambda_consumers=(_FUNCTION,)),
            (SetVisibilityTimeout(30, 41),),
        ),
    ),
    detected=(
        Detected(
            "late deletes answer 200, and a tag says how long work takes",
            _counted(_TAGGED),
            (SetVisibilityTimeout(30, 60),),
        ),
        Detected(
            "so they do, and a Lambda consumer may run longer than the visibility timeout",
            replace(_counted(), lambda_consumers=(replace(_FUNCTION, timeout_seconds=60),)),
            (SetVisibilityTimeout(30, 77),),
        ),
        Detected("nothing names the need", _counted(), code="race_without_named_need"),
        Detected(
            "every message is received three times and deleted twice: a race, or retries",
            _counted(_TAGGED, received=3_000, deleted=2_000),
            code="race_or_retries",
        ),
        Detected(
            "what is named is covered, and somebody needs longer",
            _counted({MAX_PROCESSING_TAG: "20"}),
            code="race_without_named_need",
        ),
    ),
    near_misses=(
        *(NearMiss(title, NOT_FOUND, facts=facts) for title, facts in _UNFOUND.items()),
        NearMiss(
            "an extension after the consumer's own delete is its own bug",
            "no_match",
            call=examples.failed_call(
                "ChangeMessageVisibility", "InvalidParameterValue", _OWN_DELETE
            ),
        ),
        NearMiss(
            "a caller who writes SQS's sentence into the handle",
            "no_match",
            call=examples.failed_call(
                "ChangeMessageVisibility",
                "InvalidParameterValue",
                _OWN_DELETE.replace("AQEB", _EXPIRED),
            ),
        ),
        NearMiss(
            "a consumer that fails fast",
            "consumer_failing",
            facts=replace(examples.queue(VisibilityTimeout="10"), lambda_consumers=(_FAILING,)),
        ),
        NearMiss(
            "a need over the ceiling is not met in part",
            "over_ceiling",
            facts=examples.queue({MAX_PROCESSING_TAG: "601"}, VisibilityTimeout="30"),
        ),
        NearMiss(
            "a third guess since a person's last choice",
            "guess_too_far",
            facts=replace(examples.queue(VisibilityTimeout="31"), person_visibility_seconds=10),
        ),
    ),
)
