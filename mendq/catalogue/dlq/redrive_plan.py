"""Plan to send the messages of a DLQ back to their source, or say why they must stay.

To "redrive" means to move messages from a DLQ back to the queue in which they failed. That helps
only if the cause of the failure is fixed. The rules:

1. A case about the source must explain the messages, and its cause must be fixed. If the fix is not
   proven, if nothing shows since when the messages wait, or if the DLQ is a FIFO queue, a person
   approves the redrive.
2. The DLQ has exactly one source, and nothing else sends to it. Otherwise nobody knows which
   messages are fixed. It has no DLQ itself.
3. Nobody else works on the messages: no function reads the DLQ, nobody deletes messages, and no
   message movement task runs or has run lately.
4. Both queues allow it: the source is managed by Mendq, no tag forbids it, and no policy
   denies calls from outside a network.
5. If messages could expire before the redrive is over, the DLQ's retention is raised to 14 days
   first. If even that is too short, nothing is planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mendq.catalogue.dlq.redrive_causes import (
    CAUSE_SYMPTOMS,
    NETWORK_DENY_REMEDY,
    PROVEN_STATES,
    RECEIVE_AND_DELETE_ACTIONS,
    REDRIVE_TAG,
    SEND_ACTIONS,
    CauseCases,
    describe_needed_grants,
    describe_network_deny,
    find_cause_cases,
    is_case_unresolved,
    is_redrive_off,
)
from mendq.catalogue.dlq.time_left import (
    TimeLeft,
    bound_time_left_by_age,
    can_messages_expire_during,
    estimate_duration,
)
from mendq.model.case import Case
from mendq.model.facts import Facts, QueueFacts, SoleSource
from mendq.model.limits import Bounds
from mendq.model.metrics import DATAPOINT_PERIOD, RECENT_DELETES_PERIOD
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.queue import parse_queue_arn, read_number_attribute
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    RedriveMessages,
    SetMessageRetention,
)
from mendq.notifications.commands import redrive_preview_command
from mendq.notifications.text import format_count, format_duration

_PERSON_MUST_SEE_TEXT = "a person has to see this first"
# A time before every message.
_EARLIEST_TIME = datetime.min.replace(tzinfo=UTC)


def find_causes(facts: Facts) -> CauseCases:
    """Return the cases that may explain the DLQ's messages.

    Only cases of CAUSE_SYMPTOMS count. A case counts if it is open without a proven fix, or if it
    changed last when the first message was there already, or later. If the age of the first message
    is not known, Mendq assumes that it is as old as the DLQ's retention period. If there is no
    measurement, every case of these symptoms counts.
    """
    measurement = facts.measurement
    if measurement is None:
        return find_cause_cases(facts.source_cases, _EARLIEST_TIME)
    if not is_message_age_known(facts):
        assumed_message_age = timedelta(seconds=facts.retention_seconds)
        return find_cause_cases(facts.source_cases, measurement.until - assumed_message_age)
    # CloudWatch measured the age at some moment of the last minute.
    first_message_at = (
        measurement.until - DATAPOINT_PERIOD - timedelta(seconds=measurement.now.oldest_age_seconds)
    )
    if measurement.fewest_visible_messages and not measurement.deleted:
        # Messages were there all the time and none was deleted, so the first one came before. The
        # age metric may leave it out.
        first_message_at = min(first_message_at, measurement.since)
    return find_cause_cases(facts.source_cases, first_message_at)


def estimate_time_left(facts: Facts) -> TimeLeft:
    """Return bounds on the time until the first message of the DLQ expires.

    If the age of that message is not known, the bounds are 0 and the DLQ's whole retention period.
    """
    dlq_retention_seconds = facts.retention_seconds
    if facts.measurement is None or not is_message_age_known(facts):
        return TimeLeft(timedelta(0), timedelta(seconds=dlq_retention_seconds))
    sources = facts.dlq_sources or ()
    longest_source_retention_seconds = max(
        (source.retention_seconds for source in sources), default=0
    )
    oldest_age_seconds = facts.measurement.now.oldest_age_seconds
    return bound_time_left_by_age(
        oldest_age_seconds,
        dlq_retention_seconds,
        longest_source_retention_seconds,
        is_fifo=facts.is_fifo,
    )


def is_message_age_known(facts: Facts) -> bool:
    """Return True if the age of the DLQ's oldest message is known from CloudWatch.

    SQS leaves messages that were received three times or more out of the age metric, so the metric
    may be 0 although messages wait.
    """
    return facts.measurement is not None and facts.measurement.now.oldest_age_seconds > 0


# While a case of one of these is open, messages that go back would fail again.
SYMPTOMS_TO_FIX_FIRST = CAUSE_SYMPTOMS | {"dlq_messages_arriving"}
# The bounds of a redrive as Mendq ships them.
SHIPPED_REDRIVE_BOUNDS = Bounds()
_OTHER_READER_TEXT = "may be at work on them, or send them back himself"
# If messages were deleted in this many different hours, somebody works on the DLQ regularly. A
# person who sent some messages back by hand deletes in fewer hours.
MINIMUM_HOURS_WITH_DELETES = 3


def plan_redrive(facts: Facts, first_sentence: str) -> Plan | Refusal:
    """Plan to send all messages of the DLQ back to their source.

    If they could expire during the redrive, the plan raises the DLQ's retention to SQS's maximum
    first. A person must approve the plan if `_list_redrive_doubts` has a doubt. The plan goes no
    further than the source's mode allows.

    Args:
        facts: The DLQ.
        first_sentence: The sentence with which the plan's reason begins.
    """
    refusal = find_first_redrive_objection(facts)
    if refusal is not None:
        return refusal
    (source_queue,) = facts.dlq_sources or ()
    sole_source = facts.sole_source
    assert sole_source is not None  # noqa: S101 - `find_first_redrive_objection` refuses without one
    forecast = RedriveForecast(facts, source_queue, sole_source)
    refusal = forecast.refuse_if_too_slow()
    if refusal is not None:
        return refusal
    steps: list[AttributeStep] = [
        RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, source_queue.queue_arn)
    ]
    retention_seconds = facts.retention_seconds
    longest_retention_seconds = SetMessageRetention.maximum
    if (
        can_messages_expire_during(estimate_time_left(facts), forecast.duration)
        and retention_seconds < longest_retention_seconds
    ):
        steps.append(SetMessageRetention(retention_seconds, longest_retention_seconds))
    redrive_doubts = tuple(_list_redrive_doubts(facts, sole_source))
    plan_sentences = forecast.list_sentences(is_retention_raised=len(steps) > 1)
    reason = ". ".join((first_sentence, *redrive_doubts, *plan_sentences))
    highest_mode = Mode.PROPOSE if redrive_doubts else Mode.HEAL
    return Plan(
        tuple(steps), reason, highest_mode=min(highest_mode, sole_source.mode or Mode.OBSERVE)
    )


def _list_redrive_doubts(facts: Facts, source: SoleSource) -> Iterator[str]:
    """Yield sentences about everything that a person must consider before the redrive."""
    if not is_message_age_known(facts):
        yield f"Nobody has measured since when messages wait: {_PERSON_MUST_SEE_TEXT}"
    for case in find_causes(facts).unproven_cases:
        yield f"Nothing proves {case.symptom} fixed ({case.reason[:80]}): {_PERSON_MUST_SEE_TEXT}"
    if facts.is_fifo:
        yield (
            f"Order will mix: {facts.visible:,} go in behind and among others, of which "
            f"{source.deletes_per_second:.1f} a second are handled"
        )


@dataclass(frozen=True)
class RedriveForecast:
    """The pace and duration of a redrive that has not begun.

    It is calculated from both queues, Mendq's default bounds, and the account's soak factor.

    Attributes:
        dlq: The DLQ.
        source_queue: The source, with its attributes.
        source: The source, with the rate of its deletes and the account's soak factor.
    """

    dlq: Facts
    source_queue: QueueFacts
    source: SoleSource

    @property
    def soak_duration(self) -> timedelta:
        """The wait after each stage, in which a message that still fails comes back to the DLQ."""
        return replace(SHIPPED_REDRIVE_BOUNDS, soak_factor=self.source.soak_factor).soak_duration(
            receives=self.source_queue.max_receive_count or 1,
            visibility_seconds=self.source_queue.visibility_seconds,
            delay_seconds=read_number_attribute(self.source_queue.attributes, "DelaySeconds"),
        )

    @property
    def rate_per_second(self) -> float:
        """Messages per second that go back; 0 if the source's consumers delete no messages now."""
        least_rate_per_second = (
            SHIPPED_REDRIVE_BOUNDS.least_per_tick / SHIPPED_REDRIVE_BOUNDS.tick_seconds
        )
        deletes_per_second = self.source.deletes_per_second
        return (
            max(least_rate_per_second, SHIPPED_REDRIVE_BOUNDS.rate_per_second(deletes_per_second))
            if deletes_per_second > 0
            else 0
        )

    @property
    def duration(self) -> timedelta | None:
        """How long the redrive takes; None if it moves nothing."""
        return estimate_duration(
            self.dlq.visible, self.rate_per_second, self.soak_duration, SHIPPED_REDRIVE_BOUNDS
        )

    def refuse_if_too_slow(self) -> Refusal | None:
        """Return a refusal if messages would expire during the redrive, even if kept for 14 days.

        None if the redrive is fast enough, or if it moves nothing.
        """
        attributes = self.dlq.attributes
        raised_attributes = {
            **attributes,
            "MessageRetentionPeriod": str(SetMessageRetention.maximum),
        }
        time_until_expiry = estimate_time_left(replace(self.dlq, attributes=raised_attributes))
        duration = self.duration
        if duration is None or duration <= time_until_expiry.upper_bound:
            return None
        reason = (
            f"{format_count(self.dlq.visible, 'message')} would take {format_duration(duration)} "
            f"at {self.rate_per_second:,.2f} a second, while {self.source.deletes_per_second:,.2f} "
            "are "
            f"deleted there, and the first expires {time_until_expiry}, kept for 14 days: choose "
            "which go, or "
            "send them faster, by hand"
        )
        return Refuse(
            "redrive_too_slow", reason, redrive_preview_command(self.source_queue.queue_arn)
        )

    def list_sentences(self, *, is_retention_raised: bool) -> Iterator[str]:
        """Yield sentences that explain the redrive to people, without a full stop."""
        source_name = parse_queue_arn(self.source_queue.queue_arn).name
        yield (
            f"They go back to {source_name}, {SHIPPED_REDRIVE_BOUNDS.canary} first and then "
            f"{SHIPPED_REDRIVE_BOUNDS.growth} times "
            f"as many after each soak of {format_duration(self.soak_duration)}; "
            f"{self._describe_pace()}. It "
            f"halts when {SHIPPED_REDRIVE_BOUNDS.halt_returned} of them have died again, or "
            f"{100 * SHIPPED_REDRIVE_BOUNDS.halt_share:.0f} % (of "
            f"{SHIPPED_REDRIVE_BOUNDS.least_judged_messages} at least)"
        )
        if is_retention_raised:
            yield "So that none expires on the way, they are kept for 14 days first"
        yield "What goes back is a new message with an id of its own"
        needed_grants_text = describe_needed_grants(
            "Mendq's redrive role", self.dlq, self.source_queue
        )
        if needed_grants_text:
            yield needed_grants_text

    def _describe_pace(self) -> str:
        deletes_per_second = self.source.deletes_per_second
        duration = self.duration
        if duration is None:
            return "nothing was deleted there in the last hour, and it waits until something is"
        return (
            f"at {100 * SHIPPED_REDRIVE_BOUNDS.rate_share:.0f} % of what is deleted there "
            f"({deletes_per_second:,.2f} a "
            f"second) that takes about {format_duration(duration)}"
        )


def find_first_redrive_objection(facts: Facts) -> Refusal | None:
    """Return the first reason against a redrive; None if there is no reason.

    If the result is None, the DLQ has messages and exactly one source.
    """
    return next(_find_redrive_objections(facts), None)


def _find_redrive_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield the refusals of a redrive. Use only the first one.

    Each check assumes that the checks before it found nothing.
    """
    if not facts.visible or not facts.dlq_sources:
        yield Ignore("need_already_met", "no DLQ message waits there any more")
    yield from _find_queue_objections(facts)
    yield from _find_other_work_objections(facts)
    yield from _find_cause_objections(facts)
    # Check this before the redrive, or SQS would deny a call when some messages are already moved.
    (source,) = facts.dlq_sources or ()
    for queue, actions in ((facts, RECEIVE_AND_DELETE_ACTIONS), (source, SEND_ACTIONS)):
        network_deny_text = describe_network_deny(
            queue.attributes.get("Policy", ""), queue.queue_arn, actions
        )
        if network_deny_text is not None:
            reason = (
                f"{queue.queue_arn}: {network_deny_text}, and so Mendq. To let it in: "
                f"{NETWORK_DENY_REMEDY}"
            )
            yield Refuse("network_only_policy", reason, redrive_preview_command(source.queue_arn))


def _find_queue_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield refusals because of the DLQ and its source.

    The DLQ does not have exactly one source, a tag forbids the redrive, Mendq does not manage the
    source, producers send to the DLQ, or the DLQ has a DLQ itself. It is not checked here if Mendq
    manages the DLQ.
    """
    source_arns = facts.source_arns
    sole_source = facts.sole_source
    if sole_source is None or source_arns != (sole_source.queue_arn,):
        other_sources_text = (
            f"it takes the messages of {len(source_arns):,} queues"
            if len(source_arns) > 1
            else "it takes the messages of another queue too, which keeps Mendq out"
        )
        reason = (
            f"{other_sources_text}, and which of these is fixed is a person's to say: one source's "
            "alone are "
            "sent back by hand"
        )
        fixed_source_arns = [case.queue_arn for case in find_causes(facts).fixed_cases]
        yield Refuse(
            "shared_dlq", reason, redrive_preview_command((fixed_source_arns or source_arns)[0])
        )
        return
    for queue_arn, tags in (
        (facts.queue_arn, facts.tags),
        (sole_source.queue_arn, sole_source.tags),
    ):
        if is_redrive_off(tags):
            yield Ignore("redrive_off", f"the tag {REDRIVE_TAG} of {queue_arn} forbids it")
    if sole_source.mode is None:
        reason = f"{sole_source.queue_arn}, where they would go, is not managed by Mendq"
        yield Ignore("source_not_managed", reason)
    if facts.is_sent_to:
        reason = "producers send to it: which of its messages died at its source is not known"
        yield Refuse("sent_to", reason, redrive_preview_command(sole_source.queue_arn))
    if facts.attributes.get("RedrivePolicy"):
        reason = "it has a DLQ itself: messages that are only held die further there"
        yield Ignore("messages_die_further", reason)


def _find_other_work_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield refusals because somebody else works on the DLQ's messages."""
    if facts.lambda_consumers:
        reading_function_arn = facts.lambda_consumers[0].function_arn
        yield Ignore(
            "messages_are_read",
            f"{reading_function_arn} reads it: whoever reads them {_OTHER_READER_TEXT}",
        )
    recent_deletes_text = describe_deletes(facts)
    if recent_deletes_text is not None:
        yield Ignore(
            "messages_are_taken", f"{recent_deletes_text}: whoever does that {_OTHER_READER_TEXT}"
        )
    if facts.move_task_running:
        reason = "a message movement task runs on it, or ran within the last 42 hours"
        yield Ignore("move_task_running", reason)


def _find_cause_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield refusals because of the cause: it is open, not fixed or not known, or it continues.

    It continues if more messages arrive although every known cause was fixed before. A case that is
    still watched after its fix was proven is no objection.
    """
    symptoms_with_proven_fix = {
        case.symptom for case in facts.source_cases if case.state in PROVEN_STATES
    }
    open_causes = [
        f"{case.symptom} at {_name_queue_of_case(case)}"
        for case in facts.source_cases
        if is_case_unresolved(case)
    ]
    open_causes += sorted((facts.open_symptoms & SYMPTOMS_TO_FIX_FIRST) - symptoms_with_proven_fix)
    for cause in open_causes:
        reason = f"{cause} is open: messages that go back now would die again"
        yield Ignore("cause_first", reason)
    cause_cases = find_causes(facts)
    for case in cause_cases.unfixed_cases:
        reason = (
            f"{case.symptom} at {_name_queue_of_case(case)} is {case.state}, so nobody has fixed it"
        )
        yield Ignore("cause_not_fixed", reason)
    if not cause_cases.fixed_cases:
        reason = "no case at its source explains these messages and is fixed"
        yield Ignore("no_fixed_cause", reason)
    measurement = facts.measurement
    # New messages prove another cause only if every cause was fixed before the measured time.
    if measurement is None or any(case.at > measurement.since for case in cause_cases.fixed_cases):
        return
    if measurement.visible_growth >= 1 and measurement.messages_arrived_without_send >= 1:
        new_messages_text = format_count(measurement.visible_growth, "message")
        reason = f"{new_messages_text} came since it was fixed: something else kills messages"
        yield Ignore("messages_arrive", reason)


def _name_queue_of_case(case: Case) -> str:
    return parse_queue_arn(case.queue_arn).name


def describe_deletes(facts: Facts) -> str | None:
    """Return a text for people if somebody deletes messages from the DLQ, lately or regularly.

    The text says how many messages were deleted, and when. None if the DLQ was not measured, or if
    no message was deleted lately and there were deletes in too few different hours.
    """
    measurement = facts.measurement
    if measurement is None:
        return None
    if measurement.deletes_of_last_15_minutes:
        recent_minutes = RECENT_DELETES_PERIOD.total_seconds() / 60
        return (
            f"{_format_deleted_count(measurement.deletes_of_last_15_minutes)} in the last "
            f"{recent_minutes:.0f} minutes"
        )
    if measurement.hours_with_deletes >= MINIMUM_HOURS_WITH_DELETES:
        return (
            f"{_format_deleted_count(measurement.deleted)} in {measurement.hours_with_deletes} "
            "different hours"
        )
    return None


def _format_deleted_count(message_count: int) -> str:
    return format_count(message_count, "message was", "messages were") + " deleted"
