"""Consumers hold messages longer than the visibility timeout, so others receive them again.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from dataclasses import replace

from functions.catalogue.symptom import Caught, NearMiss, SeenAs, Symptom, seen_as_labelled
from functions.healing import examples, lease_needs
from functions.healing.error_messages import reason_given
from functions.healing.facts import Facts, LambdaConsumer, Need
from functions.healing.lease_needs import MAX_PROCESSING_TAG, LeaseNeed
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.steps import SetVisibilityTimeout
from functions.healing.tags import TagUnreadable

# SQS refuses receives at about 120,000 messages in flight; half of that is our bound.
IN_FLIGHT_BOUND = 60_000
FAILING_SHARE = 0.5
RUNS_LONG_SHARE = 0.9
GUESS_FACTOR = 4


def handle_has_expired(error_message: str) -> bool:
    return reason_given(error_message, "ReceiptHandle") == "The receipt handle has expired."


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
    for each in facts.lambda_consumers:
        runs_long = (each.duration_p99_seconds or 0) >= RUNS_LONG_SHARE * each.timeout_seconds
        if (each.error_share or 0) >= FAILING_SHARE and not runs_long:
            reason = (
                f"{each.function_arn} fails rather than runs long: "
                "a longer lease would only slow its retries"
            )
            return Refusal("consumer_failing", reason)
    return None


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
        + need.recommended_beyond(need.seconds),
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
    near_misses=(
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
