"""What speaks against a longer lease, each with its refusal; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

from __future__ import annotations

from functions.healing import lease_needs
from functions.healing.facts import Facts
from functions.healing.lease_needs import MAX_PROCESSING_TAG, LeaseNeed
from functions.healing.plain_text import counted
from functions.healing.plan import Refusal

# SQS refuses receives at about 120,000 messages in flight; half of that is our bound.
IN_FLIGHT_BOUND = 60_000
GUESS_FACTOR = 4


def readers_decide(facts: Facts, needs: list[LeaseNeed]) -> Refusal | None:
    """A heartbeat asks for a lease as well, and comes too late where the queue's is below a need.

    ChangeMessageVisibility always carries a value.
    """
    reader = facts.reader_visibility_seconds
    if reader is None or reader >= facts.visibility_seconds or lease_needs.unmet(facts, needs):
        return None
    reason = f"the readers set a shorter lease themselves ({reader} s): the queue's is not used"
    return Refusal("readers_set_their_own", reason)


def consumer_fails(facts: Facts) -> Refusal | None:
    failing = next((each for each in facts.lambda_consumers if each.fails_fast), None)
    if failing is None:
        return None
    reason = (
        f"{failing.function_arn} fails rather than runs long: "
        "a longer lease would only slow its retries"
    )
    return Refusal("consumer_failing", reason)


def already_met(facts: Facts, need: LeaseNeed) -> Refusal | None:
    current = facts.visibility_seconds
    if current < need.enough_seconds:
        return None
    reason = f"the lease of {current} s already covers what is asked for ({need.because})"
    return Refusal("need_already_met", reason + need.recommended_beyond(current))


def over_ceiling(need: LeaseNeed, ceiling_seconds: int) -> Refusal | None:
    """The whole lease or none: a part of it would mend nothing."""
    if need.seconds <= ceiling_seconds:
        return None
    reason = (
        f"{need.seconds} s are needed ({need.because}), over the ceiling of {ceiling_seconds} s"
    )
    return Refusal("over_ceiling", reason)


def over_guess(facts: Facts, need: LeaseNeed, *, named: bool) -> Refusal | None:
    person = facts.person_visibility_seconds
    base_seconds = facts.visibility_seconds if person is None else person
    if named or need.seconds <= GUESS_FACTOR * base_seconds:
        return None
    reason = (
        f"a guess of {need.seconds} s is more than {GUESS_FACTOR} times the {base_seconds} s "
        f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
    )
    return Refusal("guess_too_far", reason)


def over_retention(facts: Facts, need: LeaseNeed) -> Refusal | None:
    receives = facts.max_receive_count or 1
    if 2 * receives * need.seconds <= facts.retention_seconds:
        return None
    reason = (
        f"{counted(receives, 'receive')} of {need.seconds} s would take more than half "
        f"of the retention of {facts.retention_seconds} s"
    )
    return Refusal("over_retention", reason)


def over_in_flight(facts: Facts, need: LeaseNeed) -> Refusal | None:
    expected = facts.in_flight * need.seconds / max(facts.visibility_seconds, 1)
    if expected <= IN_FLIGHT_BOUND:
        return None
    reason = f"about {expected:.0f} messages would be in flight, over {IN_FLIGHT_BOUND}"
    return Refusal("over_in_flight", reason)
