"""Plans to redrive DLQ messages, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mendq.catalogue.dlq.redrive_causes import (
    ARRIVING,
    CAUSES,
    LEAVING,
    PROVEN,
    REDRIVE_TAG,
    REMEDY,
    Explained,
    explained_by,
    keeps_out,
    keys_needed,
    redrive_is_off,
    still_shows,
)
from mendq.catalogue.dlq.time_left import TimeLeft, could_lose, left_by_age, takes
from mendq.model.case import Case
from mendq.model.facts import Facts, QueueFacts, SoleSource
from mendq.model.limits import Bounds, Mode
from mendq.model.metrics import LATELY, PERIOD
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.queue import number_in, parts_of
from mendq.model.steps import HELD, AttributeStep, RedriveMessages, SetMessageRetention
from mendq.notifications.commands import redrive_preview
from mendq.notifications.text import format_count, span

_SEEN_FIRST = "a person has to see this first"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def explained(facts: Facts) -> Explained:
    """What explains the messages that wait; where nobody knows since when they do, whatever may."""
    measured = facts.measurement
    if measured is None:
        return explained_by(facts.source_cases, _LONG_AGO)
    if not age_is_known(facts):
        longest = timedelta(seconds=facts.retention_seconds)
        return explained_by(facts.source_cases, measured.until - longest)
    # The last minute's value was measured within it.
    began_at = measured.until - PERIOD - timedelta(seconds=measured.now.oldest_age_seconds)
    if measured.least_visible and not measured.deleted:
        # What was there all the while is no younger, whatever the metric leaves out.
        began_at = min(began_at, measured.since)
    return explained_by(facts.source_cases, began_at)


def time_left(facts: Facts) -> TimeLeft:
    """Until the first message expires."""
    retained_seconds = facts.retention_seconds
    if facts.measurement is None or not age_is_known(facts):
        return TimeLeft(timedelta(0), timedelta(seconds=retained_seconds))
    longest = max((each.retention_seconds for each in facts.dlq_sources or ()), default=0)
    age_seconds = facts.measurement.now.oldest_age_seconds
    return left_by_age(age_seconds, retained_seconds, longest, is_fifo=facts.is_fifo)


def age_is_known(facts: Facts) -> bool:
    """What lies there has an age; SQS leaves out of it what was received too often."""
    return facts.measurement is not None and facts.measurement.now.oldest_age_seconds > 0


# While one of them is open or found, messages would die again, or others with them.
FIXED_FIRST = CAUSES | {"dlq_messages_arriving"}
SHIPPED = Bounds()
_AT_WORK = "may be at work on them, or send them back himself"
# A person sends some back by hand, and is done; who deletes in so many hours comes again.
VISITS = 3


def send_back(facts: Facts, because: str) -> Plan | Refusal:
    """All of them to where they died, and before that the longest retention where it is close."""
    if (refusal := first_against(facts)) is not None:
        return refusal
    (queue,), source = facts.dlq_sources or (), facts.sole_source
    assert source is not None  # noqa: S101 - `first_against` speaks against the others
    forecast = RedriveForecast(facts, queue, source)
    if (refusal := forecast.too_slow()) is not None:
        return refusal
    steps: list[AttributeStep] = [RedriveMessages(HELD, queue.queue_arn)]
    retained, longest = facts.retention_seconds, SetMessageRetention.maximum
    if could_lose(time_left(facts), forecast.lasts) and retained < longest:
        steps.append(SetMessageRetention(retained, longest))
    doubts = tuple(_doubts(facts, source))
    reason = ". ".join((because, *doubts, *forecast.sentences(raised=len(steps) > 1)))
    seen_first = Mode.PROPOSE if doubts else Mode.HEAL
    return Plan(tuple(steps), reason, at_most=min(seen_first, source.mode or Mode.OBSERVE))


def _doubts(facts: Facts, source: SoleSource) -> Iterator[str]:
    """What a person is to see first."""
    if not age_is_known(facts):
        yield f"Nobody has measured since when messages wait: {_SEEN_FIRST}"
    for case in explained(facts).said:
        yield f"Nothing proves {case.symptom} fixed ({case.reason[:80]}): {_SEEN_FIRST}"
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
    queue: QueueFacts
    source: SoleSource

    @property
    def soak(self) -> timedelta:
        return replace(SHIPPED, soak_factor=self.source.soak_factor).soak_duration(
            receives=self.queue.max_receive_count or 1,
            needed_seconds=self.queue.visibility_seconds,
            delay_seconds=number_in(self.queue.attributes, "DelaySeconds"),
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

    def too_slow(self) -> Refusal | None:
        """Refuse what could not end before messages expire, however long they can be kept."""
        attributes = self.facts.attributes
        longest = {**attributes, "MessageRetentionPeriod": str(SetMessageRetention.maximum)}
        left, lasts = time_left(replace(self.facts, attributes=longest)), self.lasts
        if lasts is None or lasts <= left.at_most:
            return None
        reason = (
            f"{format_count(self.facts.visible, 'message')} would take {span(lasts)} at "
            f"{self.per_second:,.2f} a second, while {self.source.deletes_per_second:,.2f} are "
            f"deleted there, and the first expires {left}, kept for 14 days: choose which go, or "
            "send them faster, by hand"
        )
        return Refuse("redrive_too_slow", reason, redrive_preview(self.queue.queue_arn))

    def sentences(self, *, raised: bool) -> Iterator[str]:
        """Without a full stop."""
        name = parts_of(self.queue.queue_arn).name
        yield (
            f"They go back to {name}, {SHIPPED.canary} first and then {SHIPPED.growth} times "
            f"as many after each soak of {span(self.soak)}; {self._pace()}. It halts when "
            f"{100 * SHIPPED.halt_share:.0f} % or {SHIPPED.halt_returned} of them have died again"
        )
        if raised:
            yield "So that none expires on the way, they are kept for 14 days first"
        yield "What goes back is a new message with an id of its own"
        if needed := keys_needed("Mendq's redrive role", self.facts, self.queue):
            yield needed

    def _pace(self) -> str:
        deletes, lasts = self.source.deletes_per_second, self.lasts
        if lasts is None:
            return "nothing was deleted there in the last hour, and it waits until something is"
        return (
            f"at {100 * SHIPPED.rate_share:.0f} % of what is deleted there ({deletes:,.2f} a "
            f"second) that takes about {span(lasts)}"
        )


def first_against(facts: Facts) -> Refusal | None:
    """The first that speaks against it; None where nothing does: then it has a sole source."""
    return next(_against(facts), None)


def _against(facts: Facts) -> Iterator[Refusal]:
    if not facts.visible or not facts.dlq_sources:
        yield Ignore("need_already_met", "no DLQ message waits there any more")
    yield from _of_its_queues(facts)
    yield from _at_work(facts)
    yield from _of_the_cause(facts)
    # The mover would be denied, in the midst of the messages.
    (source,) = facts.dlq_sources or ()
    for queue, actions in ((facts, LEAVING), (source, ARRIVING)):
        fault = keeps_out(queue.attributes.get("Policy", ""), queue.queue_arn, actions)
        if fault is not None:
            reason = f"{queue.queue_arn}: {fault}, and so Mendq. To let it in: {REMEDY}"
            yield Refuse("network_only_policy", reason, redrive_preview(source.queue_arn))


def _of_its_queues(facts: Facts) -> Iterator[Refusal]:
    """A queue that nobody gave to Mendq is not sent to; the DLQ messages' own is asked before."""
    sources, sole = facts.source_arns, facts.sole_source
    if sole is None or sources != (sole.queue_arn,):
        others = (
            f"it takes the messages of {len(sources):,} queues"
            if len(sources) > 1
            else "it takes the messages of another queue too, which keeps Mendq out"
        )
        reason = (
            f"{others}, and which of these is fixed is a person's to say: one source's alone are "
            "sent back by hand"
        )
        fixed = [each.queue_arn for each in explained(facts).fixed]
        yield Refuse("shared_dlq", reason, redrive_preview((fixed or sources)[0]))
        return
    for arn, tags in ((facts.queue_arn, facts.tags), (sole.queue_arn, sole.tags)):
        if redrive_is_off(tags):
            yield Ignore("redrive_off", f"the tag {REDRIVE_TAG} of {arn} forbids it")
    if sole.mode is None:
        reason = f"{sole.queue_arn}, where they would go, is not managed by Mendq"
        yield Ignore("source_not_managed", reason)
    if facts.is_sent_to:
        reason = "producers send to it: which of its messages died at its source is not known"
        yield Refuse("sent_to", reason, redrive_preview(sole.queue_arn))
    if facts.attributes.get("RedrivePolicy"):
        reason = "it has a DLQ itself: messages that are only held die further there"
        yield Ignore("messages_die_further", reason)


def _at_work(facts: Facts) -> Iterator[Refusal]:
    """Somebody else has them; an approval waits until that is over."""
    if facts.lambda_consumers:
        reader = facts.lambda_consumers[0].function_arn
        yield Ignore("messages_are_read", f"{reader} reads it: whoever reads them {_AT_WORK}")
    if (taken := who_takes(facts)) is not None:
        yield Ignore("messages_are_taken", f"{taken}: whoever does that {_AT_WORK}")
    if facts.move_task_running:
        reason = "a message movement task runs on it, or ran within the last 42 hours"
        yield Ignore("move_task_running", reason)


def _of_the_cause(facts: Facts) -> Iterator[Refusal]:
    """Nothing is held up by what is only watched after it was proven fixed."""
    watched = {each.symptom for each in facts.source_cases if each.state in PROVEN}
    known = sorted((facts.open_symptoms & FIXED_FIRST) - watched)
    shown = [f"{each.symptom} at {_name(each)}" for each in facts.source_cases if still_shows(each)]
    for cause in (*shown, *known):
        reason = f"{cause} is open: messages that go back now would die again"
        yield Ignore("cause_first", reason)
    found = explained(facts)
    for case in found.unfixed:
        reason = f"{case.symptom} at {_name(case)} is {case.state}, so nobody has fixed it"
        yield Ignore("cause_not_fixed", reason)
    if not found.fixed:
        reason = "no case at its source explains these messages and is fixed"
        yield Ignore("no_fixed_cause", reason)
    measured = facts.measurement
    # Only known where everything was fixed before the first that was measured.
    if measured is None or any(each.at > measured.since for each in found.fixed):
        return
    if measured.visible_growth >= 1 and measured.messages_arrived >= 1:
        risen = format_count(measured.visible_growth, "message")
        reason = f"{risen} came since it was fixed: something else kills messages"
        yield Ignore("messages_arrive", reason)


def _name(case: Case) -> str:
    return parts_of(case.queue_arn).name


def who_takes(facts: Facts) -> str | None:
    """What says that somebody deletes messages, now or again and again; None where nobody does."""
    measured = facts.measurement
    if measured is None:
        return None
    if measured.deleted_lately:
        minutes = LATELY.total_seconds() / 60
        return f"{_deleted(measured.deleted_lately)} in the last {minutes:.0f} minutes"
    if measured.hours_with_deletes >= VISITS:
        return f"{_deleted(measured.deleted)} in {measured.hours_with_deletes} different hours"
    return None


def _deleted(messages: int) -> str:
    return format_count(messages, "message was", "messages were") + " deleted"
