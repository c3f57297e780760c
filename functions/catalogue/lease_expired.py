"""Consumers hold messages longer than the visibility timeout, so others receive them again.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from dataclasses import replace

from functions.catalogue.symptom import (
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
from functions.healing import examples, lease_needs
from functions.healing.error_messages import reason_given
from functions.healing.facts import Facts, LambdaConsumer, Need, SourceQueue
from functions.healing.lease_needs import MAX_PROCESSING_TAG, LeaseNeed
from functions.healing.lease_race import may_race, race_in, without_named_need
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.steps import SetVisibilityTimeout
from functions.healing.tags import TagUnreadable

# SQS refuses receives at about 120,000 messages in flight; half of that is our bound.
IN_FLIGHT_BOUND = 60_000
GUESS_FACTOR = 4


def handle_has_expired(error_message: str) -> bool:
    return reason_given(error_message, "ReceiptHandle") == "The receipt handle has expired."


def detect(facts: Facts) -> Found | None:
    """A race that no call tells of; a lease that is short and harms nobody yet is none."""
    because = race_in(facts)
    return None if because is None else Found(because)


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """The longer lease that the queue's consumers need, from its facts alone."""
    try:
        ceiling_seconds = lease_needs.ceiling_seconds(facts, limits)
        needs = lease_needs.named(facts)
    except TagUnreadable as unreadable:
        return Refusal("tag_unreadable", str(unreadable))
    need = lease_needs.largest_unmet(facts, needs) or lease_needs.guess(facts)
    return (
        _readers_decide(facts, needs)
        or _consumer_fails(facts)
        or without_named_need(facts, needs)
        or _already_met(facts, need)
        or _over_ceiling(need, ceiling_seconds)
        or _over_guess(facts, need, named=bool(needs))
        or _over_retention(facts, need)
        or _over_in_flight(facts, need)
        or _raise_to(facts, need)
    )


def _readers_decide(facts: Facts, needs: list[LeaseNeed]) -> Refusal | None:
    """A heartbeat asks for a lease as well, and comes too late where the queue's is below a need.

    ChangeMessageVisibility always carries a value.
    """
    reader = facts.reader_visibility_seconds
    if reader is None or reader >= facts.visibility_seconds or lease_needs.unmet(facts, needs):
        return None
    reason = f"the readers set a shorter lease themselves ({reader} s): the queue's is not used"
    return Refusal("readers_set_their_own", reason)


def _consumer_fails(facts: Facts) -> Refusal | None:
    failing = next((each for each in facts.lambda_consumers if each.fails_fast), None)
    if failing is None:
        return None
    reason = (
        f"{failing.function_arn} fails rather than runs long: "
        "a longer lease would only slow its retries"
    )
    return Refusal("consumer_failing", reason)


def _already_met(facts: Facts, need: LeaseNeed) -> Refusal | None:
    current = facts.visibility_seconds
    if current < need.enough_seconds:
        return None
    reason = f"the lease of {current} s already covers what is asked for ({need.because})"
    return Refusal("need_already_met", reason + need.recommended_beyond(current))


def _over_ceiling(need: LeaseNeed, ceiling_seconds: int) -> Refusal | None:
    """The whole lease or none: a part of it would mend nothing."""
    if need.seconds <= ceiling_seconds:
        return None
    reason = (
        f"{need.seconds} s are needed ({need.because}), over the ceiling of {ceiling_seconds} s"
    )
    return Refusal("over_ceiling", reason)


def _over_guess(facts: Facts, need: LeaseNeed, *, named: bool) -> Refusal | None:
    person = facts.person_visibility_seconds
    base_seconds = facts.visibility_seconds if person is None else person
    if named or need.seconds <= GUESS_FACTOR * base_seconds:
        return None
    reason = (
        f"a guess of {need.seconds} s is more than {GUESS_FACTOR} times the {base_seconds} s "
        f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
    )
    return Refusal("guess_too_far", reason)


def _over_retention(facts: Facts, need: LeaseNeed) -> Refusal | None:
    receives = facts.max_receive_count or 1
    if 2 * receives * need.seconds <= facts.retention_seconds:
        return None
    reason = (
        f"{receives} receive(s) of {need.seconds} s would take more than half "
        f"of the retention of {facts.retention_seconds} s"
    )
    return Refusal("over_retention", reason)


def _over_in_flight(facts: Facts, need: LeaseNeed) -> Refusal | None:
    expected = facts.in_flight * need.seconds / max(facts.visibility_seconds, 1)
    if expected <= IN_FLIGHT_BOUND:
        return None
    reason = f"about {expected:.0f} messages would be in flight, over {IN_FLIGHT_BOUND}"
    return Refusal("over_in_flight", reason)


def _raise_to(facts: Facts, need: LeaseNeed) -> Plan:
    current = facts.visibility_seconds
    recommended = need.recommended_seconds
    return Plan(
        steps=(SetVisibilityTimeout(current, need.seconds),),
        reason=f"the lease of {current} s ends before its consumers are done: {need.because}"
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
    return replace(facts, dead_letter_sources=(), measured=examples.measured(**race))


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
    "what fails goes to the dead-letter queue": _counted(_TAGGED, received=4_600, deleted=100),
    "dead letters are being moved back": replace(_counted(_TAGGED), move_task_running=True),
    "dead letters arrive here, which nobody sent": replace(
        _counted(_TAGGED), dead_letter_sources=(SourceQueue(examples.QUEUE_ARN, {}),)
    ),
    "its Lambda consumer fails": replace(_counted(_TAGGED), lambda_consumers=(_FAILING,)),
    "it was changed a moment ago, so nothing is measured": replace(
        _counted(_TAGGED), measured=None
    ),
}

LEASE_EXPIRED = Symptom(
    name="lease_expired",
    sentence="Consumers need longer than the visibility timeout, so messages are handled twice.",
    plan_in_words="Raise VisibilityTimeout to what a Lambda consumer or a tag names, "
    "else by half; never over the ceiling, never in part.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-visibility-timeout.html",
    seen_as=(
        *seen_as_labelled("lease_expired"),
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
    outlives_a_lease=True,
    detection=Detection(
        detect,
        frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DEAD_LETTER_SOURCES}),
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
            "so they do, and a Lambda consumer may run longer than the lease",
            replace(_counted(), lambda_consumers=(replace(_FUNCTION, timeout_seconds=60),)),
            (SetVisibilityTimeout(30, 77),),
        ),
        Detected("nothing names the need", _counted(), code="race_without_named_need"),
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
