"""Plans for a longer visibility timeout: what consumers need, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeGuard

from mendq.model.case import Case
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits, Mode, TagUnreadable, read_seconds_tag
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.commands import metric_command, tag_command
from mendq.notifications.text import format_count

MAX_PROCESSING_TAG = MAX_PROCESSING.key
MAX_VISIBILITY_TAG = MAX_VISIBILITY.key


@dataclass(frozen=True)
class VisibilityNeed:
    """What consumers need, and why; from `enough_seconds` on the current timeout will do.

    `least_seconds` to go to where AWS's advice (0: none) is over the ceiling; `takes_seconds` is
    what work is said to take, or `is_measured` to, 0 where nobody knows. `is_guess`: none is named.
    """

    least_seconds: int
    enough_seconds: int
    because: str
    recommended_seconds: int = 0
    takes_seconds: float = 0
    is_measured: bool = False
    is_guess: bool = False
    at_most: Mode = Mode.HEAL

    def within(self, ceiling_seconds: int) -> int:
        """What to go to: AWS's advice where the ceiling allows it."""
        is_within = self.recommended_seconds <= ceiling_seconds
        return max(self.least_seconds, self.recommended_seconds if is_within else 0)


# So many times what work takes.
ROOM = 1.5


def with_room(seconds: float) -> int:
    """Half as much again as work takes."""
    return ceil(ROOM * seconds)


def advice_beyond(needs: Iterable[VisibilityNeed], seconds: int) -> str:
    """AWS's advice as the end of a sentence, where it asks for more than `seconds`."""
    recommended = max((each.recommended_seconds for each in needs), default=0)
    return f"; AWS recommends {recommended:,} s" if recommended > seconds else ""


def named(facts: Facts) -> list[VisibilityNeed]:
    """What its Lambda consumers and its tag ask for; raises TagUnreadable.

    AWS asks for six times a function's timeout plus the window, so that Lambda can try a batch
    again. Whatever else is named counts one and a half times, as that does over the ceiling.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    needs = [asked_for(each) for each in facts.lambda_consumers]
    if (tagged := read_seconds_tag(facts.tags, MAX_PROCESSING_TAG)) is not None:
        seconds, because = with_room(tagged), f"the tag {MAX_PROCESSING_TAG} says {tagged:,} s"
        needs.append(VisibilityNeed(seconds, seconds, because, takes_seconds=tagged))
    return needs


def asked_for(consumer: LambdaConsumer) -> VisibilityNeed:
    """What one function asks for; a message waits for its batch before the function runs."""
    timeout_seconds, window_seconds = consumer.timeout_seconds, consumer.batching_window_seconds
    p99_seconds = consumer.duration_p99_seconds
    lasts = (
        f"; in the last hour 1 of 100 runs took {p99_seconds:.1f} s or more" if p99_seconds else ""
    )
    return VisibilityNeed(
        least_seconds=with_room(timeout_seconds) + window_seconds,
        enough_seconds=timeout_seconds + window_seconds,
        because=f"its Lambda consumer may run {timeout_seconds:,} s "
        f"and waits {window_seconds:,} s for a batch{lasts}",
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


def slowest(facts: Facts) -> tuple[float, str]:
    """The longest p99 of its Lambda consumers, and whose; 0 where not all ran in the last hour."""
    found = [(each.duration_p99_seconds or 0, each.name) for each in facts.lambda_consumers]
    return max(found) if found and min(found)[0] else (0, "")


def to_advised(
    facts: Facts, limits: Limits, step: type[SetVisibilityTimeout], *, shows: bool
) -> Plan | Refusal:
    """A plan to go to what is advised, which a person agrees to: they know who else reads."""
    try:
        needs, ceiling = named(facts), ceiling_seconds(facts, limits)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    current, need = facts.visibility_seconds, largest_unmet(facts, needs)
    if not shows or need is None:
        return Ignore("need_already_met", f"the visibility timeout is {current:,} s by now")
    seconds = goal_seconds(facts, needs)
    if (refusal := next(over_bounds(facts, need, seconds, ceiling), None)) is not None:
        return refusal
    reason = (
        f"{facts.found}. {seconds:,} s are the most that AWS advises for its Lambda consumers or a "
        f"tag names; where others read it and need longer, decline, and tag it {MAX_PROCESSING_TAG}"
    )
    return Plan((step(current, seconds),), reason, at_most=Mode.PROPOSE)


def published(facts: Facts, needs: list[VisibilityNeed]) -> list[VisibilityNeed]:
    """What its consumers publish of themselves, where nothing that is named is unmet: or none.

    Whoever may put metrics into the account can publish it too: so no fix is written by it alone.
    """
    p99_seconds = facts.measurement.processing_p99_seconds if facts.measurement else None
    if p99_seconds is None or unmet(facts, needs):
        return []
    seconds = with_room(p99_seconds)
    because = f"its consumers publish that a message takes up to {p99_seconds:,.1f} s (p99)"
    return [
        VisibilityNeed(seconds, seconds, because, takes_seconds=p99_seconds, at_most=Mode.PROPOSE)
    ]


def ceiling_seconds(facts: Facts, limits: Limits) -> int:
    """What no visibility timeout may go over: the queue's tag, else the account's; raises
    TagUnreadable.
    """
    return read_seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds


def largest_unmet(facts: Facts, needs: list[VisibilityNeed]) -> VisibilityNeed | None:
    """A met one only where all are met; None where nothing names a need."""
    return max(unmet(facts, needs) or needs, key=lambda need: need.least_seconds, default=None)


def goal_seconds(
    facts: Facts, needs: list[VisibilityNeed], ceiling_seconds: int = SetVisibilityTimeout.maximum
) -> int:
    """What to go to, the one number of heal, scan and lint: it covers what is unmet, and what else
    is named as far as the ceiling allows; without one, all that AWS advises. 0 where nothing is.
    """
    wanted = {each: each.within(ceiling_seconds) for each in needs}
    asked = (each for each in needs if wanted[each] <= ceiling_seconds)
    return max((wanted[each] for each in (*unmet(facts, needs), *asked)), default=0)


def unmet(facts: Facts, needs: list[VisibilityNeed]) -> list[VisibilityNeed]:
    """Those that the current visibility timeout does not cover."""
    return [need for need in needs if facts.visibility_seconds < need.enough_seconds]


def guess(facts: Facts) -> VisibilityNeed:
    """Half as much again, for a queue whose consumers nothing is known of."""
    seconds = max(facts.visibility_seconds + 1, with_room(facts.visibility_seconds))
    because = "nothing names what its consumers need, so half as much again"
    return VisibilityNeed(seconds, seconds, because, is_guess=True)


def failing_consumer(facts: Facts) -> LambdaConsumer | None:
    """The first Lambda consumer that fails rather than runs long."""
    return next((consumer for consumer in facts.lambda_consumers if consumer.is_failing_fast), None)


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
            f"the readers set a shorter visibility timeout themselves ({reader:,} s): the queue's "
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
    measured = facts.measurement
    if measured is not None and measured.may_be_retries:
        reason = (
            f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
            f"{measured.received:,} receives of {measured.sent:,} sent messages do not rule out: a "
            "longer visibility timeout would then only slow the retries. Where work takes longer "
            f"than {facts.visibility_seconds:,} s, let the tag {MAX_PROCESSING_TAG} say how long"
        )
        command = metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", measured)
        yield Escalate("race_or_retries", reason, command, silent_in_observe=True)
    known = needs and f", although what is named is covered ({needs[0].because})"
    reason = (
        f"{facts.found}. Somebody holds messages longer than the visibility timeout of "
        f"{facts.visibility_seconds:,} s{known or ', and nothing names how long they need'}: tag "
        f"the queue {MAX_PROCESSING_TAG} with the longest that a message may take, in seconds"
    )
    # SECONDS is the reader's to fill in; as it stands the tag would be refused as unreadable.
    tag_it = tag_command(f"{MAX_PROCESSING_TAG}=SECONDS", facts.queue_arn)
    yield Escalate("race_without_named_need", reason, tag_it, silent_in_observe=True)


def against(
    facts: Facts, need: VisibilityNeed, seconds: int, ceiling_seconds: int
) -> Iterator[Refusal]:
    """What speaks against going to so many seconds for this need, the first of which is told."""
    current = facts.visibility_seconds
    if current >= need.enough_seconds:
        reason = f"the visibility timeout of {current:,} s already covers what is asked for "
        reason += f"({need.because}){advice_beyond([need], current)}"
        yield Refuse("need_already_met", reason)
    person = facts.person_visibility_seconds
    base_seconds = current if person is None else person
    if need.is_guess and seconds > GUESS_FACTOR * base_seconds:
        reason = (
            f"a guess of {seconds:,} s is more than {GUESS_FACTOR} times the {base_seconds:,} s "
            f"that a person chose; the tag {MAX_PROCESSING_TAG} would name the need"
        )
        yield Refuse("guess_too_far", reason)
    yield from over_bounds(facts, need, seconds, ceiling_seconds)


def over_bounds(
    facts: Facts, need: VisibilityNeed, seconds: int, ceiling_seconds: int
) -> Iterator[Refusal]:
    """Which bounds a longer visibility timeout would break, the first of which is told.

    The whole of it or none: a part would fix nothing.
    """
    current, receives = facts.visibility_seconds, facts.max_receive_count or 1
    if seconds <= current:
        return
    if seconds > ceiling_seconds:
        needs = f"{seconds:,} s are needed ({need.because})"
        # No tag allows more than SQS takes.
        can_be = seconds <= SetVisibilityTimeout.maximum
        tag_it = tag_command(f"{MAX_VISIBILITY_TAG}={seconds}", facts.queue_arn) if can_be else ""
        yield Refuse("over_ceiling", f"{needs}, over the ceiling of {ceiling_seconds:,} s", tag_it)
    if 2 * receives * seconds > facts.retention_seconds:
        reason = (
            f"{format_count(receives, 'receive')} of {seconds:,} s would take more than half "
            f"of the retention of {facts.retention_seconds:,} s"
        )
        yield Refuse("over_retention", reason)
    expected = facts.in_flight * seconds / max(current, 1)
    if expected > IN_FLIGHT_BOUND:
        reason = f"about {expected:,.0f} messages would be in flight, over {IN_FLIGHT_BOUND:,}"
        yield Refuse("over_in_flight", reason)


def plan_needed_timeout(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the longer visibility timeout that the queue's consumers need, from its facts alone.

    If AWS's advice would hold too many messages for too long, plan the least that is needed. What
    consumers publish counts only if it could be proposed: it must hide no race.
    """
    try:
        ceiling = ceiling_seconds(facts, limits)
        needs = named(facts)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    for need in published(facts, needs):
        if not any(against(facts, need, need.least_seconds, ceiling)):
            needs.append(need)
    largest = largest_unmet(facts, needs) or guess(facts)
    refusal = next(against_any(facts, needs), None)
    if refusal is not None:
        return refusal
    goal = goal_seconds(facts, needs, ceiling)
    for seconds in (goal or largest.least_seconds, largest.least_seconds):
        refusal = next(against(facts, largest, seconds, ceiling), None)
        if refusal is None:
            return _raise_to(facts, largest, seconds, needs)
    assert refusal is not None  # noqa: S101 - otherwise the loop has returned a plan
    return refusal


def _raise_to(
    facts: Facts, need: VisibilityNeed, seconds: int, needs: list[VisibilityNeed]
) -> Plan:
    current = facts.visibility_seconds
    recommended = max((need.recommended_seconds for need in needs), default=0)
    because = "" if need.because in facts.found else f": {need.because}"
    reason = (
        f"the visibility timeout of {current:,} s ends before its consumers are done{because}"
        f"{advice_beyond(needs, current)}"
    )
    return Plan(
        (SetVisibilityTimeout(current, seconds),),
        f"{reason}; {facts.found}" if facts.found else reason,
        proposal=(SetVisibilityTimeout(current, recommended),) if recommended > seconds else (),
        at_most=need.at_most if _is_sure(facts, need) else Mode.PROPOSE,
    )


def _is_sure(facts: Facts, need: VisibilityNeed) -> bool:
    """Return False if messages only died, and only a tag says that work takes longer.

    The tag may be out of date, and a consumer that extends its messages needs no longer timeout.
    """
    measured = facts.measurement
    only_died = facts.found and measured is not None and not measured.has_race
    return need.is_measured or not only_died


# What is said of any case is bounded where it is read.
_MOST_NEEDS, _MOST_SECONDS = 5, 10**6


def needs_document(symptom: str, facts: Facts) -> list[dict[str, Any]]:
    """How long consumers of a queue with this symptom need, and what says so; of each the longest.

    For a case's evidence: a picture of the case compares it with the visibility timeout.
    """
    if symptom != "visibility_timeout_too_short":
        return []
    tagged = (each.takes_seconds for each in readable(facts) if not each.recommended_seconds)
    consumers = facts.lambda_consumers
    found: dict[str, Iterable[float | None]] = {
        "Lambda p50": [each.duration_p50_seconds for each in consumers],
        "Lambda p99": [each.duration_p99_seconds for each in consumers],
        "Lambda timeout": [each.timeout_seconds for each in consumers],
        f"tag {MAX_PROCESSING_TAG}": tagged,
        "published p99": [each.takes_seconds for each in published(facts, [])],
    }
    longest = {what: max(filter(None, some), default=0) for what, some in found.items()}
    return [{"what": what, "seconds": seconds} for what, seconds in longest.items() if seconds]


def spans_of(transitions: Sequence[Case]) -> list[tuple[str, float]]:
    """What consumers need, as the case's evidence has it, then the timeout before and after.

    Empty where nothing names a need or no timeout was planned; of several the last plan counts.
    """
    needs = transitions[-1].evidence.get("needs")
    named = [each for each in needs if isinstance(each, Mapping)] if isinstance(needs, list) else []
    planned = [
        each
        for case in transitions
        for each in case.steps
        if each.get("attribute") == SetVisibilityTimeout.attribute and not case.is_rollback
    ]
    if not named or not planned:
        return []
    had = ((f"timeout {when}", planned[-1].get(when)) for when in ("before", "after"))
    spans = [(str(each.get("what")), each.get("seconds")) for each in named[:_MOST_NEEDS]]
    spans += [(what, _whole(text)) for what, text in had]
    return [(what, each) for what, each in spans if _is_span(each)]


def _whole(text: object) -> int | None:
    is_one = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 7
    return int(str(text)) if is_one else None


def _is_span(seconds: Any) -> TypeGuard[float]:
    return type(seconds) in {int, float} and 0 < seconds <= _MOST_SECONDS
