"""Plans for a longer visibility timeout: what consumers need, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits, Mode, TagUnreadable, seconds_tag
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import public_url
from mendq.model.steps import SetVisibilityTimeout
from mendq.notifications.commands import aws_command, metric_command
from mendq.notifications.text import counted

MAX_PROCESSING_TAG = "mendq:max-processing-seconds"
MAX_VISIBILITY_TAG = "mendq:max-visibility-seconds"


@dataclass(frozen=True)
class VisibilityNeed:
    """What consumers need, and why; from `enough_seconds` on the current timeout will do.

    `least_seconds` to go to where AWS's advice (0: none) is over the ceiling; `takes_seconds` is
    what work is said to take, or `is_measured` to, 0 where nobody knows.
    """

    least_seconds: int
    enough_seconds: int
    because: str
    recommended_seconds: int = 0
    takes_seconds: float = 0
    is_measured: bool = False
    at_most: Mode = Mode.HEAL

    def within(self, ceiling_seconds: int) -> int:
        """What to go to: AWS's advice where the ceiling allows it."""
        is_within = self.recommended_seconds <= ceiling_seconds
        return max(self.least_seconds, self.recommended_seconds if is_within else 0)


def advice_beyond(needs: Iterable[VisibilityNeed], seconds: int) -> str:
    """AWS's advice as the end of a sentence, where it asks for more than `seconds`."""
    recommended = max((each.recommended_seconds for each in needs), default=0)
    return f"; AWS recommends {recommended} s" if recommended > seconds else ""


def named(facts: Facts) -> list[VisibilityNeed]:
    """What its Lambda consumers and its tag ask for; raises TagUnreadable.

    AWS asks for six times a function's timeout plus the window, so that Lambda can try a batch
    again. Whatever else is named counts one and a half times, as that does over the ceiling.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    needs = [_of_a_consumer(each) for each in facts.lambda_consumers]
    if (tagged := seconds_tag(facts.tags, MAX_PROCESSING_TAG)) is not None:
        seconds, because = ceil(1.5 * tagged), f"the tag {MAX_PROCESSING_TAG} says {tagged} s"
        needs.append(VisibilityNeed(seconds, seconds, because, takes_seconds=tagged))
    return needs


def _of_a_consumer(consumer: LambdaConsumer) -> VisibilityNeed:
    """A message waits for its batch before the function runs."""
    timeout_seconds, window_seconds = consumer.timeout_seconds, consumer.batching_window_seconds
    p99_seconds = consumer.duration_p99_seconds
    lasts = (
        f"; in the last hour 1 of 100 runs took {p99_seconds:.1f} s or more" if p99_seconds else ""
    )
    return VisibilityNeed(
        least_seconds=ceil(1.5 * timeout_seconds) + window_seconds,
        enough_seconds=timeout_seconds + window_seconds,
        because=f"its Lambda consumer may run {timeout_seconds} s "
        f"and waits {window_seconds} s for a batch{lasts}",
        recommended_seconds=6 * timeout_seconds + window_seconds,
        takes_seconds=p99_seconds + window_seconds if p99_seconds else 0,
        is_measured=bool(p99_seconds),
    )


def readable(facts: Facts) -> list[VisibilityNeed]:
    """The same; nothing where a tag cannot be read."""
    try:
        return named(facts)
    except TagUnreadable:
        return []


def advised_seconds(facts: Facts) -> int:
    """The most that AWS advises or somebody names, 0 where nobody does; raises TagUnreadable."""
    needs = (max(each.enough_seconds, each.recommended_seconds) for each in named(facts))
    return max(needs, default=0)


def slowest(facts: Facts) -> tuple[float, str]:
    """The longest p99 of its Lambda consumers, and whose; 0 where not all ran in the last hour."""
    found = [(each.duration_p99_seconds or 0, each.name) for each in facts.lambda_consumers]
    return max(found) if found and min(found)[0] else (0, "")


def to_advised(
    facts: Facts, limits: Limits, step: type[SetVisibilityTimeout], *, shows: bool
) -> Plan | Refusal:
    """A plan to go to what is advised, which a person agrees to: they know who else reads."""
    try:
        seconds, ceiling = advised_seconds(facts), ceiling_seconds(facts, limits)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    current = facts.visibility_seconds
    if not shows:
        return Ignore("need_already_met", f"the visibility timeout is {current} s by now")
    if seconds > max(current, ceiling):
        return Refuse("over_ceiling", f"{seconds} s are advised, over the ceiling of {ceiling} s")
    reason = (
        f"{facts.found}. {seconds} s are the most that AWS advises for its Lambda consumers or a "
        f"tag names; where others read it and need longer, decline, and tag it {MAX_PROCESSING_TAG}"
    )
    return Plan((step(current, seconds),), reason, at_most=Mode.PROPOSE)


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
    need = VisibilityNeed(
        seconds, seconds, because, takes_seconds=p99_seconds, at_most=Mode.PROPOSE
    )
    return [] if any(against(facts, need, seconds, ceiling_seconds, named=True)) else [need]


def ceiling_seconds(facts: Facts, limits: Limits) -> int:
    """What no visibility timeout may go over: the queue's tag, else the account's; raises
    TagUnreadable.
    """
    return seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds


def largest_unmet(facts: Facts, needs: list[VisibilityNeed]) -> VisibilityNeed | None:
    """A met one only where all are met; None where nothing names a need."""
    return max(unmet(facts, needs) or needs, key=lambda need: need.least_seconds, default=None)


def goal_seconds(facts: Facts, needs: list[VisibilityNeed], ceiling_seconds: int) -> int:
    """The one number that heal, scan and lint give: it covers what is unmet, and what else is named
    as far as the ceiling allows. 0 where nothing is.
    """
    wanted = {each: each.within(ceiling_seconds) for each in needs}
    asked = (each for each in needs if wanted[each] <= ceiling_seconds)
    return max((wanted[each] for each in (*unmet(facts, needs), *asked)), default=0)


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
    if facts.found and not unmet(facts, needs):
        yield from _pages_of_a_race(facts, needs)


def _pages_of_a_race(facts: Facts, needs: list[VisibilityNeed]) -> Iterator[Refusal]:
    """No need above the visibility timeout is named: never a guess.

    The counts may be those of consumers that fail and then delete twice.
    """
    measured = facts.measured
    if measured is not None and measured.may_be_retries:
        reason = (
            f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
            f"{measured.received:,} receives of {measured.sent:,} sent messages do not rule out: a "
            "longer visibility timeout would then only slow the retries. Where work takes longer "
            f"than {facts.visibility_seconds} s, let the tag {MAX_PROCESSING_TAG} say how long"
        )
        command = metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", measured)
        yield Escalate("race_or_retries", reason, command, silent_in_observe=True)
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
    facts: Facts, need: VisibilityNeed, seconds: int, ceiling_seconds: int, *, named: bool
) -> Iterator[Refusal]:
    """What speaks against going to so many seconds for this need, the first of which is told.

    The whole visibility timeout or none: a part of it would fix nothing.
    """
    current = facts.visibility_seconds
    if current >= need.enough_seconds:
        reason = f"the visibility timeout of {current} s already covers what is asked for "
        reason += f"({need.because}){advice_beyond([need], current)}"
        yield Refuse("need_already_met", reason)
    if seconds > ceiling_seconds:
        needed = f"{seconds} s are needed ({need.because})"
        yield Refuse("over_ceiling", f"{needed}, over the ceiling of {ceiling_seconds} s")
    person = facts.person_visibility_seconds
    base_seconds = current if person is None else person
    if not named and seconds > GUESS_FACTOR * base_seconds:
        reason = (
            f"a guess of {seconds} s is more than {GUESS_FACTOR} times the {base_seconds} s "
            f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
        )
        yield Refuse("guess_too_far", reason)
    receives = facts.max_receive_count or 1
    if 2 * receives * seconds > facts.retention_seconds:
        reason = (
            f"{counted(receives, 'receive')} of {seconds} s would take more than half "
            f"of the retention of {facts.retention_seconds} s"
        )
        yield Refuse("over_retention", reason)
    expected = facts.in_flight * seconds / max(current, 1)
    if expected > IN_FLIGHT_BOUND:
        reason = f"about {expected:.0f} messages would be in flight, over {IN_FLIGHT_BOUND}"
        yield Refuse("over_in_flight", reason)
