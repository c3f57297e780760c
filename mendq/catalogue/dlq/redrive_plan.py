"""Plan to send the messages of a DLQ back to their source, or say why they must stay.

To "redrive" means to move messages from a DLQ back to the queue in which they failed. That helps
only if the cause of the failure is fixed. The rules:

1. A case about the source must explain the messages, and its cause must be fixed. If the fix is not
   proven, if nothing shows since when the messages wait, or if the DLQ is a FIFO queue, a person
   approves the redrive. The same holds if outsiders may receive from the source.
2. Nothing but its sources sends to the DLQ. Otherwise nobody knows which messages are fixed. It
   has no DLQ itself.
3. Nobody else works on the messages: no function reads the DLQ, nobody deletes messages, and no
   message movement task runs or has run lately.
4. Both queues allow it: the source is managed by Mendq, no tag forbids it, and no policy
   denies calls from outside a network.
5. If several sources share the DLQ, the messages of one source go back: of the one whose cause is
   fixed. SQS names each message's source, so the others' messages stay. This needs to see every
   message, so it does not hold for a FIFO DLQ, or for one with more messages than a tick receives.
6. If messages could expire before the redrive is over, the DLQ's retention is raised to 14 days
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
from mendq.model.dlq import find_outsider_access_to_messages
from mendq.model.facts import MOST_REDRIVE_SOURCES, Facts, QueueFacts, RedriveSource
from mendq.model.limits import Bounds
from mendq.model.metrics import DATAPOINT_PERIOD, RECENT_DELETES_PERIOD
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.principals import name_first_principals
from mendq.model.queue import parse_queue_arn, read_number_attribute
from mendq.model.state import State
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    RedriveMessages,
    SetMessageRetention,
    find_redrive_destination,
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
    first. A person must approve the plan if there is a doubt. The plan goes no
    further than the source's mode allows.

    Args:
        facts: The DLQ.
        first_sentence: The sentence with which the plan's reason begins.
    """
    refusal = find_first_redrive_objection(facts)
    if refusal is not None:
        return refusal
    facts_of_source = narrow_to_source(facts)
    # `find_first_redrive_objection` refuses if there is no such source.
    (source_queue,) = facts_of_source.dlq_sources or ()
    (redrive_source,) = facts_of_source.redrive_sources
    forecast = RedriveForecast(facts, source_queue, redrive_source)
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
    redrive_doubts = (
        *_list_redrive_doubts(facts, facts_of_source, redrive_source),
        *_list_readers_doubts(source_queue),
    )
    plan_sentences = forecast.list_sentences(is_retention_raised=len(steps) > 1)
    reason = ". ".join((first_sentence, *redrive_doubts, *plan_sentences))
    highest_mode = Mode.PROPOSE if redrive_doubts else Mode.HEAL
    return Plan(
        tuple(steps), reason, highest_mode=min(highest_mode, redrive_source.mode or Mode.OBSERVE)
    )


def _list_redrive_doubts(
    facts: Facts, facts_of_source: Facts, source: RedriveSource
) -> Iterator[str]:
    """Yield sentences about everything that a person must consider before the redrive.

    `facts_of_source` are the facts as `narrow_to_source` returns them.
    """
    if not is_message_age_known(facts):
        yield f"Nobody has measured since when messages wait: {_PERSON_MUST_SEE_TEXT}"
    arrivals_text = _describe_arrivals(facts_of_source)
    if arrivals_text:
        yield (
            f"{arrivals_text}, and another source has an open case; nothing shows in which queue "
            f"they died: {_PERSON_MUST_SEE_TEXT}"
        )
    for case in find_causes(facts_of_source).unproven_cases:
        yield f"Nothing proves {case.symptom} fixed ({case.reason[:80]}): {_PERSON_MUST_SEE_TEXT}"
    if facts.is_fifo:
        yield (
            f"Order will mix: {facts.visible:,} go in behind and among others, of which "
            f"{source.deletes_per_second:.1f} a second are handled"
        )


def _list_readers_doubts(source_queue: QueueFacts) -> Iterator[str]:
    """Yield a sentence if outsiders may receive what goes back to the source."""
    outsider_text = find_outsider_access_to_messages(source_queue)
    if outsider_text is not None:
        name = parse_queue_arn(source_queue.queue_arn).name
        yield (
            f"Another account or service may read every message that goes back to {name}: "
            f"{outsider_text[:200]}. If that is not intended, correct its policy before you approve"
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
    source: RedriveSource

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
            f"are deleted there, and the first expires {time_until_expiry}, kept for 14 days: "
            "choose which go, or send them faster, by hand"
        )
        return Refuse(
            "redrive_too_slow", reason, redrive_preview_command(self.source_queue.queue_arn)
        )

    def list_sentences(self, *, is_retention_raised: bool) -> Iterator[str]:
        """Yield sentences that explain the redrive to people, without a full stop."""
        source_name = parse_queue_arn(self.source_queue.queue_arn).name
        other_source_names = [
            parse_queue_arn(source_arn).name
            for source_arn in self.dlq.source_arns
            if source_arn != self.source_queue.queue_arn
        ]
        going_messages_text = "Those that died there" if other_source_names else "They"
        yield (
            f"{going_messages_text} go back to {source_name}, "
            f"{SHIPPED_REDRIVE_BOUNDS.canary} first and then {SHIPPED_REDRIVE_BOUNDS.growth} times "
            f"as many after each soak of {format_duration(self.soak_duration)}; "
            f"{self._describe_pace()}. It "
            f"halts when {SHIPPED_REDRIVE_BOUNDS.halt_returned} of them have died again, or "
            f"{100 * SHIPPED_REDRIVE_BOUNDS.halt_share:.0f} % (of "
            f"{SHIPPED_REDRIVE_BOUNDS.least_judged_messages} at least)"
        )
        if is_retention_raised:
            yield "So that none expires on the way, they are kept for 14 days first"
        yield "What goes back is a new message with an id of its own"
        if other_source_names:
            yield (
                f"Messages of {name_first_principals(other_source_names)} stay; each look, once a "
                "minute, raises their receive count by one"
            )
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

    If the result is None, the DLQ has messages, and `narrow_to_source` finds the one source to
    which they go back.
    """
    return next(_find_redrive_objections(facts), None)


def _find_redrive_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield the refusals of a redrive. Use only the first one.

    Each check assumes that the checks before it found nothing.
    """
    if not facts.visible or not facts.dlq_sources:
        yield Ignore("need_already_met", "no DLQ message waits there any more")
    yield from _find_sharing_objections(facts)
    facts_of_source = narrow_to_source(facts)
    yield from _find_queue_objections(facts_of_source)
    yield from _find_other_work_objections(facts)
    yield from _find_cause_objections(
        facts_of_source, has_other_open_cause=_has_other_open_cause(facts, facts_of_source)
    )
    # Check this before the redrive, or SQS would deny a call when some messages are already moved.
    (source,) = facts_of_source.dlq_sources or ()
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


def _find_sharing_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield a refusal if several sources share the DLQ and a redrive cannot tell their messages."""
    source_arns = facts.source_arns
    read_source_arns = tuple(source.queue_arn for source in facts.redrive_sources)
    most_messages = SHIPPED_REDRIVE_BOUNDS.census
    if read_source_arns != source_arns:
        objection_text = (
            f"it takes the messages of {len(source_arns):,} queues, more than Mendq looks at"
            if len(source_arns) > MOST_REDRIVE_SOURCES
            else "it takes the messages of another queue too, which keeps Mendq out"
        )
    elif len(source_arns) == 1:
        return
    elif facts.is_fifo:
        objection_text = (
            f"it takes the messages of {len(source_arns):,} FIFO queues, and SQS shows only the "
            "first messages of a group: what comes back behind another queue's is not seen"
        )
    elif facts.visible > most_messages:
        objection_text = (
            f"it takes the messages of {len(source_arns):,} queues, and one look sees "
            f"{most_messages:,} of {facts.visible:,} messages"
        )
    else:
        return
    fixed_source_arns = [case.queue_arn for case in find_causes(facts).fixed_cases]
    yield Refuse(
        "shared_dlq",
        f"{objection_text}; send back the messages of one source by hand",
        redrive_preview_command((fixed_source_arns or source_arns)[0]),
    )


def narrow_to_source(facts: Facts) -> Facts:
    """Return the facts as if the DLQ had only the source whose messages may go back next.

    Cases about the other sources are left out. If the DLQ has one source, the facts are unchanged.
    Of several sources, the one that an open redrive case names comes first, so that an approved
    plan stays the same. Then comes a source with a fixed cause and no open one.
    """
    if len(facts.source_arns) < 2:
        return facts
    redrive_case = facts.redrive_case
    if redrive_case is not None and is_case_unresolved(redrive_case):
        destination_arn = find_redrive_destination(redrive_case.steps)
        if destination_arn in facts.source_arns:
            return _select_source(facts, destination_arn)
    facts_by_source = [_select_source(facts, source_arn) for source_arn in facts.source_arns]
    return min(facts_by_source, key=_rank_source)


def _rank_source(facts_of_source: Facts) -> tuple[bool, bool, bool]:
    """Return a key by which sources are sorted: the lowest one is redriven first."""
    causes = find_causes(facts_of_source)
    has_open_cause = bool(causes.unfixed_cases) or any(
        is_case_unresolved(case) for case in facts_of_source.source_cases
    )
    return not causes.fixed_cases, has_open_cause, not causes.proven_cases


def _select_source(facts: Facts, source_arn: str) -> Facts:
    """Return the facts as if `source_arn` were the DLQ's only source.

    Symptoms that are open at other sources and not at this one are removed. A symptom that is open
    both at the DLQ and at another source is removed too, because `open_symptoms` does not say where
    a symptom is open. That is safe: no symptom of the DLQ makes messages fail at this source.
    """
    source_cases = tuple(
        case
        for case in facts.source_cases
        if case.queue_arn == source_arn and not _is_covered_by_last_redrive(case, facts)
    )
    symptoms_open_elsewhere = {
        case.symptom
        for case in facts.source_cases
        if case.queue_arn != source_arn and not case.is_final
    }
    symptoms_open_here = {case.symptom for case in source_cases if not case.is_final}
    return replace(
        facts,
        dlq_sources=tuple(
            source for source in facts.dlq_sources or () if source.queue_arn == source_arn
        ),
        redrive_sources=tuple(
            source for source in facts.redrive_sources if source.queue_arn == source_arn
        ),
        source_cases=source_cases,
        open_symptoms=facts.open_symptoms - symptoms_open_elsewhere | symptoms_open_here,
    )


def _is_covered_by_last_redrive(case: Case, facts: Facts) -> bool:
    """Return True if the last redrive sent back what this case explains.

    The messages that are left then belong to other sources. Without this, a redrive of nothing
    would be planned each day for as long as others' messages wait. An unresolved case counts
    always: it forbids the redrive.
    """
    redrive_case = facts.redrive_case
    if redrive_case is None or is_case_unresolved(case):
        return False
    is_redrive_verified = redrive_case.state in PROVEN_STATES or (
        redrive_case.state is State.CLOSED and redrive_case.came_from in PROVEN_STATES
    )
    return (
        is_redrive_verified
        and find_redrive_destination(redrive_case.steps) == case.queue_arn
        and (case.opened_at or case.at) <= (redrive_case.opened_at or redrive_case.at)
    )


def is_redrive_of_other_source_watched(facts: Facts, facts_of_source: Facts) -> bool:
    """Return True if the last redrive went to another source, and its case is still watched.

    A finding would count as a sign that this redrive did not help.
    """
    redrive_case = facts.redrive_case
    return (
        redrive_case is not None
        and redrive_case.state in PROVEN_STATES
        and find_redrive_destination(redrive_case.steps) not in facts_of_source.source_arns
    )


def _has_other_open_cause(facts: Facts, facts_of_source: Facts) -> bool:
    """Return True if a source whose messages do not go back has an open case of a cause."""
    return any(
        case.symptom in CAUSE_SYMPTOMS
        and case.queue_arn not in facts_of_source.source_arns
        and is_case_unresolved(case)
        for case in facts.source_cases
    )


def _find_queue_objections(facts: Facts) -> Iterator[Refusal]:
    """Yield refusals because of the DLQ and its source.

    A tag forbids the redrive, Mendq does not manage the source, producers send to the DLQ, or the
    DLQ has a DLQ itself. It is not checked here if Mendq manages the DLQ.
    """
    (source,) = facts.redrive_sources
    for queue_arn, tags in (
        (facts.queue_arn, facts.tags),
        (source.queue_arn, source.tags),
    ):
        if is_redrive_off(tags):
            yield Ignore("redrive_off", f"the tag {REDRIVE_TAG} of {queue_arn} forbids it")
    if source.mode is None:
        reason = f"{source.queue_arn}, where they would go, is not managed by Mendq"
        yield Ignore("source_not_managed", reason)
    if facts.is_sent_to:
        reason = "producers send to it: which of its messages died at its source is not known"
        yield Refuse("sent_to", reason, redrive_preview_command(source.queue_arn))
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


def _find_cause_objections(facts: Facts, *, has_other_open_cause: bool) -> Iterator[Refusal]:
    """Yield refusals because of the cause: it is open, not fixed or not known, or it continues.

    It continues if more messages arrive although every known cause was fixed before. A case that is
    still watched after its fix was proven is no objection.

    Args:
        facts: The facts, narrowed to one source.
        has_other_open_cause: True if another source has an open case of a cause. Then messages that
            arrive may be its own, and a person decides (`_list_redrive_doubts`).
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
    arrivals_text = _describe_arrivals(facts)
    if arrivals_text and not has_other_open_cause:
        yield Ignore("messages_arrive", f"{arrivals_text}: something else kills messages")


def _describe_arrivals(facts: Facts) -> str:
    """Return a text about messages that came after every known cause was fixed; empty if none."""
    measurement = facts.measurement
    fixed_cases = find_causes(facts).fixed_cases
    # New messages prove another cause only if every cause was fixed before the measured time.
    if measurement is None or any(case.at > measurement.since for case in fixed_cases):
        return ""
    if measurement.visible_growth >= 1 and measurement.messages_arrived_without_send >= 1:
        new_messages_text = format_count(measurement.visible_growth, "message")
        return f"{new_messages_text} came since it was fixed"
    return ""


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
