"""Plan to send dead-letter messages back, or say what speaks against it; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.healing.case import Case
from functions.healing.causes import CAUSES, PROVEN, still_shows
from functions.healing.facts import Facts, SourceQueue
from functions.healing.look_commands import redrive_preview
from functions.healing.measured import LATELY
from functions.healing.mode import Mode
from functions.healing.network_only import ARRIVING, CURE, LEAVING, keeps_out
from functions.healing.plain_text import counted
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_defaults import number_in
from functions.healing.queue_names import parts_of
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_consent import (
    REDRIVE_TAG,
    key_grants,
    key_sentence,
    redrive_is_off,
)
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.retention_clock import TimeLeft, could_lose, span, takes
from functions.healing.sole_source import SoleSource
from functions.healing.steps import SetMessageRetention
from functions.healing.waiting_letters import age_is_known, explained, time_left

# While one of them is open or found, messages would die again, or others with them.
MENDED_FIRST = CAUSES | {"dead_letters_arriving"}
SHIPPED = Bounds()
# A person sends some back by hand, and is done; who deletes in so many hours comes again.
VISITS = 3


def send_back(facts: Facts, because: str) -> Plan | Refusal:
    """All of them to where they died, and before that the longest retention where it is close."""
    if (refusal := first_against(facts)) is not None:
        return refusal
    (queue,), source = facts.dead_letter_sources or (), facts.sole_source
    assert source is not None  # noqa: S101 - `first_against` speaks against the others
    forecast = RedriveForecast(facts, queue, source)
    if (refusal := forecast.too_slow()) is not None:
        return refusal
    steps = [RedriveDeadLetters(HELD, queue.queue_arn), *_kept_longer(facts, forecast)]
    doubts = tuple(_doubts(facts, source))
    reason = ". ".join((because, *doubts, *forecast.sentences(raised=len(steps) > 1)))
    seen_first = Mode.PROPOSE if doubts else Mode.HEAL
    return Plan(tuple(steps), reason, at_most=min(seen_first, source.mode or Mode.OBSERVE))


def _kept_longer(facts: Facts, forecast: RedriveForecast) -> Iterator[SetMessageRetention]:
    longest = SetMessageRetention.maximum
    if forecast.could_lose and facts.retention_seconds < longest:
        yield SetMessageRetention(facts.retention_seconds, longest)


def _doubts(facts: Facts, source: SoleSource) -> Iterator[str]:
    """What a person is to see first."""
    if not age_is_known(facts):
        yield "Nobody has measured since when letters wait: a person has to see this first"
    for case in explained(facts).said:
        yield (
            f"Nothing proves {case.symptom} mended ({case.reason[:80]}): "
            "a person has to see this first"
        )
    if facts.is_fifo:
        yield (
            f"Order will mix: {facts.visible:,} go in behind and among others, of which "
            f"{source.deletes_per_second:.1f} a second are handled"
        )


@dataclass(frozen=True)
class RedriveForecast:
    """How a redrive would go, from the facts of both queues, the shipped bounds and the soak factor
    of the account."""

    facts: Facts
    queue: SourceQueue
    source: SoleSource

    @property
    def bounds(self) -> Bounds:
        return replace(SHIPPED, soak_factor=self.source.soak_factor)

    @property
    def soak(self) -> timedelta:
        stands = Facts(self.queue.queue_arn, self.queue.attributes, {})
        attributes = self.queue.attributes
        return self.bounds.soak(
            receives=stands.max_receive_count or 1,
            lease_seconds=number_in(attributes, "VisibilityTimeout"),
            delay_seconds=number_in(attributes, "DelaySeconds"),
        )

    @property
    def per_second(self) -> float:
        """0 while nobody deletes a message there: then nothing goes back."""
        least = SHIPPED.least_per_tick / SHIPPED.tick_seconds
        deletes = self.source.deletes_per_second
        return max(least, SHIPPED.rate_per_second(deletes)) if deletes > 0 else 0

    @property
    def lasts(self) -> timedelta | None:
        return takes(self.facts.visible, self.per_second, self.soak, SHIPPED)

    @property
    def left(self) -> TimeLeft:
        return time_left(self.facts)

    @property
    def could_lose(self) -> bool:
        return could_lose(self.left, self.lasts)

    def too_slow(self) -> Refusal | None:
        """Refuse what could not end before messages expire, however long they can be kept."""
        attributes = self.facts.attributes
        longest = {**attributes, "MessageRetentionPeriod": str(SetMessageRetention.maximum)}
        left, lasts = time_left(replace(self.facts, attributes=longest)), self.lasts
        if lasts is None or lasts <= left.at_most:
            return None
        reason = (
            f"{counted(self.facts.visible, 'message')} would take {span(lasts)} at "
            f"{self.per_second:,.2f} a second, while {self.source.deletes_per_second:,.2f} are "
            f"deleted there, and the first expires {left}, kept for 14 days: choose which go, or "
            "send them faster, by hand"
        )
        look = redrive_preview(self.queue.queue_arn)
        return Refusal("redrive_too_slow", reason, next_command=look)

    def sentences(self, *, raised: bool) -> Iterator[str]:
        """Without a full stop."""
        name = parts_of(self.queue.queue_arn).name
        yield (
            f"They go back to {name}, {SHIPPED.canary} first and then {SHIPPED.growth} times "
            f"as many after each soak of {span(self.soak)}; {self._pace()}. It halts when "
            f"{SHIPPED.halt_share:.0%} or {SHIPPED.halt_returned} of them have died again"
        )
        if raised:
            yield "So that none expires on the way, they are kept for 14 days first"
        yield "What goes back is a new message with an id of its own"
        grants = key_grants(
            self.facts.queue_arn, self.facts.attributes, self.queue.queue_arn, self.queue.attributes
        )
        if grants:
            yield key_sentence(grants, "Mendq's redrive role")

    def _pace(self) -> str:
        deletes, lasts = self.source.deletes_per_second, self.lasts
        if lasts is None:
            return "nothing was deleted there in the last hour, and it waits until something is"
        return (
            f"at {SHIPPED.rate_share:.0%} of what is deleted there ({deletes:,.2f} a second) that "
            f"takes about {span(lasts)}"
        )


def first_against(facts: Facts) -> Refusal | None:
    """The first that speaks against it; None where nothing does: then it has a sole source."""
    return next((found for each in _AGAINST if (found := each(facts))), None)


def _nothing_waits(facts: Facts) -> Refusal | None:
    if facts.visible and facts.dead_letter_sources:
        return None
    return Refusal("need_already_met", "no dead letter waits there any more", becomes=None)


def _shared(facts: Facts) -> Refusal | None:
    sources = facts.dead_letter_sources or ()
    if facts.sole_source is not None and [facts.sole_source.queue_arn] == list(facts.source_arns):
        return None
    others = (
        f"it takes the letters of {len(sources)} queues"
        if len(sources) > 1
        else ("it takes the letters of another queue too, which keeps Mendq out")
    )
    reason = (
        f"{others}, and which of these is fixed is a person's to say: one source's alone are sent "
        "back by hand"
    )
    mended = [each.queue_arn for each in explained(facts).mended]
    look = redrive_preview((mended or [sources[0].queue_arn])[0])
    return Refusal("shared_dead_letters", reason, next_command=look)


def _forbidden(facts: Facts) -> Refusal | None:
    """A queue that nobody gave to Mendq is not sent to; the dead letters' own is asked before."""
    source = facts.sole_source
    for arn, tags in ((facts.queue_arn, facts.tags), *_named(source)):
        if redrive_is_off(tags):
            return Refusal("redrive_off", f"the tag {REDRIVE_TAG} of {arn} forbids it", None)
    if source is not None and source.mode is None:
        reason = f"{source.queue_arn}, where they would go, is not managed by Mendq"
        return Refusal("source_not_managed", reason, becomes=None)
    return None


def _named(source: SoleSource | None) -> Iterator[tuple[str, dict[str, str]]]:
    if source is not None:
        yield source.queue_arn, dict(source.tags)


def _dies_further(facts: Facts) -> Refusal | None:
    if not facts.attributes.get("RedrivePolicy"):
        return None
    reason = "it has a dead-letter queue itself: letters that are only held die further there"
    return Refusal("letters_die_further", reason, becomes=None)


def _read(facts: Facts) -> Refusal | None:
    reader = who_reads(facts)
    if reader is None:
        return None
    reason = f"{reader}: whoever reads them may be at work on them, or send them back himself"
    return Refusal("letters_are_read", reason, becomes=None)


def _taken(facts: Facts) -> Refusal | None:
    """An approval waits until that is over."""
    taken = who_takes(facts)
    if taken is None:
        return None
    reason = f"{taken}: whoever does that may be at work on them, or send them back himself"
    return Refusal("letters_are_taken", reason, becomes=None)


def _moves(facts: Facts) -> Refusal | None:
    if not facts.move_task_running:
        return None
    reason = "a message movement task runs on it, or ran within the last 42 hours"
    return Refusal("move_task_running", reason, becomes=None)


def _cause_first(facts: Facts) -> Refusal | None:
    """Not of what is only watched after it was proven mended."""
    watched = {each.symptom for each in facts.source_cases if each.state in PROVEN}
    known = sorted((facts.open_symptoms & MENDED_FIRST) - watched)
    shown = [f"{each.symptom} at {_name(each)}" for each in facts.source_cases if still_shows(each)]
    if not shown and not known:
        return None
    reason = f"{(shown or known)[0]} is open: letters that go back now would die again"
    return Refusal("cause_first", reason, becomes=None)


def _not_mended(facts: Facts) -> Refusal | None:
    found = explained(facts)
    if found.standing:
        case = found.standing[0]
        reason = f"{case.symptom} at {_name(case)} is {case.state}, so nobody has mended it"
        return Refusal("cause_not_mended", reason, becomes=None)
    if not found.mended:
        reason = "no case at its source explains these letters and is mended"
        return Refusal("no_mended_cause", reason, becomes=None)
    return None


def _name(case: Case) -> str:
    return parts_of(case.queue_arn).name


def _arrive(facts: Facts) -> Refusal | None:
    """Only known where everything was mended before the first that was measured."""
    measured, mended = facts.measured, explained(facts).mended
    if measured is None or any(each.at > measured.since for each in mended):
        return None
    if measured.letters_risen < 1 or measured.letters_arrived < 1:
        return None
    risen = counted(measured.letters_risen, "letter")
    reason = f"{risen} came since it was mended: something else kills messages"
    return Refusal("letters_arrive", reason, becomes=None)


def _for_one_network(facts: Facts) -> Refusal | None:
    """The mover would be denied, in the midst of the messages."""
    source = (facts.dead_letter_sources or ())[0]
    for arn, attributes, actions in (
        (facts.queue_arn, facts.attributes, LEAVING),
        (source.queue_arn, source.attributes, ARRIVING),
    ):
        fault = keeps_out(attributes.get("Policy", ""), arn, actions)
        if fault is not None:
            reason = f"{arn}: {fault}, and so Mendq. To let it in: {CURE}"
            return Refusal(
                "network_only_policy", reason, next_command=redrive_preview(source.queue_arn)
            )
    return None


# In this order; the first that speaks is told.
_AGAINST: tuple[Callable[[Facts], Refusal | None], ...] = (
    _nothing_waits,
    _shared,
    _forbidden,
    _dies_further,
    _read,
    _taken,
    _moves,
    _cause_first,
    _not_mended,
    _arrive,
    _for_one_network,
)


def who_reads(facts: Facts) -> str | None:
    """The function that an enabled mapping feeds from it; None where there is none."""
    consumers = facts.lambda_consumers
    return f"{consumers[0].function_arn} reads it" if consumers else None


def who_takes(facts: Facts) -> str | None:
    """What says that somebody deletes letters, now or again and again; None where nobody does."""
    measured = facts.measured
    if measured is None:
        return None
    if measured.deleted_lately:
        minutes = LATELY.total_seconds() / 60
        return f"{_deleted(measured.deleted_lately)} in the last {minutes:.0f} minutes"
    if measured.hours_with_deletes >= VISITS:
        return f"{_deleted(measured.deleted)} in {measured.hours_with_deletes} different hours"
    return None


def _deleted(letters: int) -> str:
    return counted(letters, "letter was", "letters were") + " deleted"
