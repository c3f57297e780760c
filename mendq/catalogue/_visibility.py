"""Plans for a longer visibility timeout: what consumers need, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits, Mode, seconds_tag
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.queue import public_url
from mendq.notifications.commands import aws_command, metric_command
from mendq.notifications.text import counted

MAX_PROCESSING_TAG = "mendq:max-processing-seconds"
MAX_VISIBILITY_TAG = "mendq:max-visibility-seconds"


@dataclass(frozen=True)
class VisibilityNeed:
    """A visibility timeout to go to, and why; from `enough_seconds` on the current one will do.

    `at_most` lowers the mode where a person has to see it first.
    """

    seconds: int
    enough_seconds: int
    because: str
    recommended_seconds: int = 0
    at_most: Mode = Mode.HEAL

    def recommended_beyond(self, seconds: int) -> str:
        """AWS's advice as the end of a sentence, where it asks for more than `seconds`."""
        recommended = self.recommended_seconds
        return f"; AWS recommends {recommended} s" if recommended > seconds else ""


def named(facts: Facts) -> list[VisibilityNeed]:
    """What its Lambda consumers and its tag ask for; raises TagUnreadable.

    AWS asks for six times the timeout plus the window; 1.2 times stops the race now.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    needs = [
        VisibilityNeed(
            seconds=ceil(1.2 * consumer.timeout_seconds) + consumer.batching_window_seconds,
            enough_seconds=consumer.timeout_seconds + consumer.batching_window_seconds,
            because=f"its Lambda consumer may run {consumer.timeout_seconds} s "
            f"and waits {consumer.batching_window_seconds} s for a batch",
            recommended_seconds=6 * consumer.timeout_seconds + consumer.batching_window_seconds,
        )
        for consumer in facts.lambda_consumers
    ]
    if (tagged := seconds_tag(facts.tags, MAX_PROCESSING_TAG)) is not None:
        seconds, because = ceil(1.5 * tagged), f"the tag {MAX_PROCESSING_TAG} says {tagged} s"
        needs.append(VisibilityNeed(seconds, seconds, because))
    return needs


def published(
    facts: Facts, needs: list[VisibilityNeed], ceiling_seconds: int
) -> list[VisibilityNeed]:
    """What its consumers publish of themselves, where nothing that is named is unmet: or none.

    Whoever may put metrics into the account can publish it too. So it is proposed and never
    written by itself; and where it could not be, it says nothing, for it must hide no race.
    """
    measured = facts.measured
    p99_seconds = measured.processing_p99_seconds if measured else None
    if p99_seconds is None or unmet(facts, needs):
        return []
    seconds = ceil(1.5 * p99_seconds)
    because = f"its consumers publish that a message takes up to {p99_seconds:,.1f} s (p99)"
    need = VisibilityNeed(seconds, seconds, because, at_most=Mode.PROPOSE)
    return [] if any(against(facts, need, ceiling_seconds, named=True)) else [need]


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


def failing_consumer(facts: Facts) -> LambdaConsumer | None:
    """The first Lambda consumer that fails rather than runs long."""
    return next((consumer for consumer in facts.lambda_consumers if consumer.fails_fast), None)


# SQS refuses receives at about 120,000 messages in flight; half of that is our bound.
IN_FLIGHT_BOUND = 60_000
GUESS_FACTOR = 4


def against_any(facts: Facts, needs: list[VisibilityNeed]) -> Iterator[Refusal]:
    """What speaks against any longer visibility timeout, the first of which is told."""
    reader, current = facts.reader_visibility_seconds, facts.visibility_seconds
    # A heartbeat asks for one as well, and comes too late where the queue's is below a need:
    # ChangeMessageVisibility always carries a value.
    if reader is not None and reader < current and not unmet(facts, needs):
        reason = (
            f"the readers set a shorter visibility timeout themselves ({reader} s): the queue's "
            "is not used"
        )
        yield Refuse("readers_set_their_own", reason)
    if (failing := failing_consumer(facts)) is not None:
        reason = (
            f"{failing.function_arn} fails rather than runs long: "
            "a longer visibility timeout would only slow its retries"
        )
        yield Refuse("consumer_failing", reason)
    if facts.found:
        yield from _pages_of_a_race(facts, needs)


def _pages_of_a_race(facts: Facts, needs: list[VisibilityNeed]) -> Iterator[Refusal]:
    """A page where the counts are those of consumers that fail and then delete twice, or where no
    need above the visibility timeout is named: never a guess.
    """
    measured = facts.measured
    if measured is not None and measured.may_be_retries:
        reason = (
            f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
            f"{measured.received:,} receives of {measured.sent:,} sent messages do not rule out: a "
            "longer visibility timeout would then only slow the retries"
        )
        command = metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", measured)
        yield Escalate("race_or_retries", reason, command, silent_in_observe=True)
    if not unmet(facts, needs):
        known = needs and f", although what is named is covered ({needs[0].because})"
        reason = (
            f"{facts.found}. Somebody holds messages longer than the visibility timeout of "
            f"{facts.visibility_seconds} s{known or ', and nothing names how long they need'}: tag "
            f"the queue {MAX_PROCESSING_TAG} with the longest that a message may take, in seconds"
        )
        # SECONDS is the reader's to fill in; as it stands the tag would be refused as unreadable.
        options = f"--queue-url {public_url(facts.queue_arn)} --tags {MAX_PROCESSING_TAG}=SECONDS"
        tag_it = aws_command("sqs tag-queue", facts.queue_arn, options)
        yield Escalate("race_without_named_need", reason, tag_it, silent_in_observe=True)


def against(
    facts: Facts, need: VisibilityNeed, ceiling_seconds: int, *, named: bool
) -> Iterator[Refusal]:
    """What speaks against going to this one, the first of which is told.

    The whole visibility timeout or none: a part of it would fix nothing.
    """
    current = facts.visibility_seconds
    if current >= need.enough_seconds:
        reason = f"the visibility timeout of {current} s already covers what is asked for "
        reason += f"({need.because}){need.recommended_beyond(current)}"
        yield Refuse("need_already_met", reason)
    if need.seconds > ceiling_seconds:
        needed = f"{need.seconds} s are needed ({need.because})"
        yield Refuse("over_ceiling", f"{needed}, over the ceiling of {ceiling_seconds} s")
    person = facts.person_visibility_seconds
    base_seconds = current if person is None else person
    if not named and need.seconds > GUESS_FACTOR * base_seconds:
        reason = (
            f"a guess of {need.seconds} s is more than {GUESS_FACTOR} times the {base_seconds} s "
            f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
        )
        yield Refuse("guess_too_far", reason)
    receives = facts.max_receive_count or 1
    if 2 * receives * need.seconds > facts.retention_seconds:
        reason = (
            f"{counted(receives, 'receive')} of {need.seconds} s would take more than half "
            f"of the retention of {facts.retention_seconds} s"
        )
        yield Refuse("over_retention", reason)
    expected = facts.in_flight * need.seconds / max(current, 1)
    if expected > IN_FLIGHT_BOUND:
        reason = f"about {expected:.0f} messages would be in flight, over {IN_FLIGHT_BOUND}"
        yield Refuse("over_in_flight", reason)
