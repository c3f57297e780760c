"""Plans for a longer visibility timeout: what consumers need, and what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits, TagUnreadable, seconds_tag
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.queue import parts_of, public_url
from mendq.notifications.commands import metric_command
from mendq.notifications.text import counted

MAX_PROCESSING_TAG = "mendq:max-processing-seconds"
MAX_VISIBILITY_TAG = "mendq:max-visibility-seconds"


@dataclass(frozen=True)
class VisibilityNeed:
    """A visibility timeout to go to, and why; from `enough_seconds` on the current one will do."""

    seconds: int
    enough_seconds: int
    because: str
    recommended_seconds: int = 0

    def recommended_beyond(self, seconds: int) -> str:
        """AWS's advice as the end of a sentence, where it asks for more than `seconds`."""
        recommended = self.recommended_seconds
        return f"; AWS recommends {recommended} s" if recommended > seconds else ""


def named(facts: Facts) -> list[VisibilityNeed]:
    """What its Lambda consumers and its tag ask for; raises TagUnreadable."""
    return [*_lambda_needs(facts), *_tagged_need(facts)]


def ceiling_seconds(facts: Facts, limits: Limits) -> int:
    """What no visibility timeout may go over: the queue's tag, else the account's; raises
    TagUnreadable.
    """
    return seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds


def largest_unmet(facts: Facts, needs: list[VisibilityNeed]) -> VisibilityNeed | None:
    """A met one only where all are met; None where nothing names a need."""
    return max(unmet(facts, needs) or needs, key=lambda need: need.seconds, default=None)


def unmet(facts: Facts, needs: list[VisibilityNeed]) -> list[VisibilityNeed]:
    """Those that the current visibility timeout does not cover."""
    return [need for need in needs if facts.visibility_seconds < need.enough_seconds]


def guess(facts: Facts) -> VisibilityNeed:
    """Half as much again, for a queue whose consumers nothing is known of."""
    seconds = max(facts.visibility_seconds + 1, ceil(1.5 * facts.visibility_seconds))
    because = "nothing names what its consumers need, so half as much again"
    return VisibilityNeed(seconds, seconds, because)


def _lambda_needs(facts: Facts) -> list[VisibilityNeed]:
    """AWS asks for six times the timeout plus the window; 1.2 times stops the race now.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    return [
        VisibilityNeed(
            seconds=ceil(1.2 * consumer.timeout_seconds) + consumer.batching_window_seconds,
            enough_seconds=consumer.timeout_seconds + consumer.batching_window_seconds,
            because=f"its Lambda consumer may run {consumer.timeout_seconds} s "
            f"and waits {consumer.batching_window_seconds} s for a batch",
            recommended_seconds=6 * consumer.timeout_seconds + consumer.batching_window_seconds,
        )
        for consumer in facts.lambda_consumers
    ]


def _tagged_need(facts: Facts) -> list[VisibilityNeed]:
    tagged = seconds_tag(facts.tags, MAX_PROCESSING_TAG)
    if tagged is None:
        return []
    seconds = ceil(1.5 * tagged)
    return [VisibilityNeed(seconds, seconds, f"the tag {MAX_PROCESSING_TAG} says {tagged} s")]


def failing_consumer(facts: Facts) -> LambdaConsumer | None:
    """The first Lambda consumer that fails rather than runs long."""
    return next((consumer for consumer in facts.lambda_consumers if consumer.fails_fast), None)


def race_in(facts: Facts) -> str | None:
    """What was counted, in a sentence, where messages were handled twice.

    DLQ messages arrive without being counted as sent, as do messages that are moved back; what a
    consumer gives up is received again without a race.
    """
    measured = facts.measured
    if measured is None or facts.move_task_running or facts.takes_dlq_messages:
        return None
    if failing_consumer(facts) or not measured.shows_a_race:
        return None
    surplus = measured.surplus_deletes
    return (
        f"in {measured.hours:.1f} h {counted(measured.deleted - surplus, 'message')} left and "
        f"{counted(measured.deleted, 'delete')} came, about {surplus:,} too many: messages were "
        "handled twice"
    )


def may_race(facts: Facts) -> bool:
    """Whether there is work that could race, or a need that the visibility timeout does not
    cover.
    """
    if facts.visible + facts.in_flight > 0:
        return True
    try:
        return bool(unmet(facts, named(facts)))
    except TagUnreadable:
        return False


def race_or_retries(facts: Facts) -> Refusal | None:
    """A page where the counts of a race are those of consumers that fail and then delete twice."""
    measured = facts.measured
    if not facts.found or measured is None or not measured.may_be_retries:
        return None
    reason = (
        f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
        f"{measured.received:,} receives of {measured.sent:,} sent messages do not rule out: a "
        "longer visibility timeout would then only slow the retries"
    )
    command = metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", measured)
    return Escalate("race_or_retries", reason, command, silent_in_observe=True)


def without_named_need(facts: Facts, needs: list[VisibilityNeed]) -> Refusal | None:
    """A page where a race was measured and no need above the visibility timeout is named: never a
    guess.
    """
    if not facts.found or unmet(facts, needs):
        return None
    known = needs and f", although what is named is covered ({needs[0].because})"
    reason = (
        f"{facts.found}. Somebody holds messages longer than the visibility timeout of "
        f"{facts.visibility_seconds} s{known or ', and nothing names how long they need'}: tag the "
        f"queue {MAX_PROCESSING_TAG} with the longest that a message may take, in seconds"
    )
    # SECONDS is the reader's to fill in; as it stands the tag would be refused as unreadable.
    tag_it = (
        f"aws sqs tag-queue --region {parts_of(facts.queue_arn).region} "
        f"--queue-url {public_url(facts.queue_arn)} --tags {MAX_PROCESSING_TAG}=SECONDS"
    )
    return Escalate("race_without_named_need", reason, tag_it, silent_in_observe=True)


# SQS refuses receives at about 120,000 messages in flight; half of that is our bound.
IN_FLIGHT_BOUND = 60_000
GUESS_FACTOR = 4


def readers_decide(facts: Facts, needs: list[VisibilityNeed]) -> Refusal | None:
    """A heartbeat asks for a visibility timeout as well, and comes too late where the queue's is
    below a need.

    ChangeMessageVisibility always carries a value.
    """
    reader = facts.reader_visibility_seconds
    if reader is None or reader >= facts.visibility_seconds or unmet(facts, needs):
        return None
    reason = (
        f"the readers set a shorter visibility timeout themselves ({reader} s): the queue's "
        "is not used"
    )
    return Refuse("readers_set_their_own", reason)


def consumer_fails(facts: Facts) -> Refusal | None:
    failing = failing_consumer(facts)
    if failing is None:
        return None
    reason = (
        f"{failing.function_arn} fails rather than runs long: "
        "a longer visibility timeout would only slow its retries"
    )
    return Refuse("consumer_failing", reason)


def already_met(facts: Facts, need: VisibilityNeed) -> Refusal | None:
    current = facts.visibility_seconds
    if current < need.enough_seconds:
        return None
    reason = (
        f"the visibility timeout of {current} s already covers what is asked for ({need.because})"
    )
    return Refuse("need_already_met", reason + need.recommended_beyond(current))


def over_ceiling(need: VisibilityNeed, ceiling_seconds: int) -> Refusal | None:
    """The whole visibility timeout or none: a part of it would fix nothing."""
    if need.seconds <= ceiling_seconds:
        return None
    reason = (
        f"{need.seconds} s are needed ({need.because}), over the ceiling of {ceiling_seconds} s"
    )
    return Refuse("over_ceiling", reason)


def over_guess(facts: Facts, need: VisibilityNeed, *, named: bool) -> Refusal | None:
    person = facts.person_visibility_seconds
    base_seconds = facts.visibility_seconds if person is None else person
    if named or need.seconds <= GUESS_FACTOR * base_seconds:
        return None
    reason = (
        f"a guess of {need.seconds} s is more than {GUESS_FACTOR} times the {base_seconds} s "
        f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
    )
    return Refuse("guess_too_far", reason)


def over_retention(facts: Facts, need: VisibilityNeed) -> Refusal | None:
    receives = facts.max_receive_count or 1
    if 2 * receives * need.seconds <= facts.retention_seconds:
        return None
    reason = (
        f"{counted(receives, 'receive')} of {need.seconds} s would take more than half "
        f"of the retention of {facts.retention_seconds} s"
    )
    return Refuse("over_retention", reason)


def over_in_flight(facts: Facts, need: VisibilityNeed) -> Refusal | None:
    expected = facts.in_flight * need.seconds / max(facts.visibility_seconds, 1)
    if expected <= IN_FLIGHT_BOUND:
        return None
    reason = f"about {expected:.0f} messages would be in flight, over {IN_FLIGHT_BOUND}"
    return Refuse("over_in_flight", reason)
