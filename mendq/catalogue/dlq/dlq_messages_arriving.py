"""Symptom `dlq_messages_arriving`: messages arrive in a DLQ, and no open case explains why.

The fault: consumers of the source queue cannot finish some messages. After `maxReceiveCount`
receives SQS moves them to the DLQ.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html

How it shows: more messages are visible in the DLQ than before, and they were not sent there. (SQS
does not count messages that it moves to a DLQ in NumberOfMessagesSent.) No case of a known cause is
open for each queue that can have sent them. A case or a finding about one of several sources is not
enough: anyone may create a queue that names the DLQ and fails.

What Mendq does: it notifies people, with the sources, the numbers, and what the same scan found at
the sources. It says "no known cause" only if the scan measured them and found nothing. If a change
by Mendq may be the cause, the notification offers to roll it back. It touches no message, because
the fault is not in the DLQ, and messages that go back before the cause is fixed fail again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.redrive_causes import CAUSE_SYMPTOMS
from mendq.catalogue.examples import EXAMPLE_TIME, STANDARD_ARN, dlq, source
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.model.facts import Facts, Need, SourceCheck
from mendq.model.harms import OWN_CHANGE_CODE
from mendq.model.limits import Limits
from mendq.model.own_change import OwnChange
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.queue import parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import dlq_messages_command
from mendq.notifications.own_change import make_rollback_command
from mendq.notifications.text import format_count, format_duration, format_value

_DETECTION_NEEDS = frozenset(
    {Need.QUEUE, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.MOVE_TASKS, Need.OPEN_CASES}
)


def detect(facts: Facts) -> DetectedFault | None:
    """Find a DLQ with more messages than before, unless open cases explain them for all sources.

    Messages that producers send to the queue directly are not DLQ messages and do not count. The
    result is None without measurements, and while a message movement task runs.
    """
    measurement = facts.measurement
    if measurement is None or facts.move_task_running or _do_open_cases_explain(facts):
        return None
    new_message_count = measurement.visible_growth
    # If producers send here too, inexact counters can show arrivals that were none.
    tolerated_message_count = measurement.counter_tolerance if facts.is_sent_to else 0
    if (
        not facts.dlq_sources
        or new_message_count < 1
        or measurement.messages_arrived_without_send <= tolerated_message_count
    ):
        return None
    return DetectedFault(
        f"{format_count(new_message_count, 'more DLQ message')} in "
        f"{format_duration(measurement.duration)}, "
        f"{measurement.now.visible:,} in all, from {name_first_principals(facts.source_arns)}",
        possible_source_arns=facts.possible_source_arns,
    )


def _do_open_cases_explain(facts: Facts) -> bool:
    """Return True if each possible source has an open case that explains the messages.

    Also True if only the DLQ itself has such a case, or if it is not known which queue the open
    cases are about.
    """
    if not facts.open_symptoms & CAUSE_SYMPTOMS:
        return False
    if facts.open_symptoms_by_source is None:
        return True
    causes_by_source = {
        source_arn: symptoms & CAUSE_SYMPTOMS
        for source_arn, symptoms in facts.open_symptoms_by_source.items()
    }
    has_each_source_a_cause = all(
        causes_by_source.get(source_arn) for source_arn in facts.possible_source_arns
    )
    has_only_own_cause = not any(causes_by_source.values())
    return has_each_source_a_cause or has_only_own_cause


def is_possible(facts: Facts) -> bool:
    """Return True unless it is known that no queue names this one as its DLQ."""
    return facts.dlq_sources != ()


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: the fault is not in the DLQ.

    It names what the scan found on the source. The cause counts as not known only if the scan
    measured the source and found nothing.

    If a change by Mendq may have moved the messages, the notification offers its rollback. There is
    no second notification if the case of that change reports the messages already and the DLQ has
    only one source.
    """
    fault_text = facts.found or "messages arrive"
    change_by_mendq = facts.own_change
    if change_by_mendq is not None and change_by_mendq.is_reported and len(facts.source_arns) == 1:
        return Ignore(
            "said_of_another", f"case {change_by_mendq.case_id} reports these messages already"
        )
    advice_sentence = (
        "Look at the log of the source's consumer, then at a message; "
        f"send them back when it is fixed{_describe_receives(facts)}"
    )
    if change_by_mendq is not None:
        return Escalate(
            OWN_CHANGE_CODE,
            f"{fault_text}. {advice_sentence}",
            make_rollback_command(change_by_mendq),
        )
    command = dlq_messages_command(facts.source_arns[0]) if facts.source_arns else ""
    faulty_sources = [check for check in facts.source_checks if check.symptoms]
    if faulty_sources:
        return Escalate(
            "cause_at_source",
            f"{fault_text}; {describe_source_checks(faulty_sources)}. {advice_sentence}",
            command,
        )
    if facts.source_checks and all(check.is_measured for check in facts.source_checks):
        reason = (
            f"{fault_text}; no known cause: no open case says why, and "
            f"{describe_source_checks(facts.source_checks)}. {advice_sentence}"
        )
        return Escalate("no_known_cause", reason, command)
    unmeasured_sources = [check for check in facts.source_checks if not check.is_measured]
    not_measured_text = (
        describe_source_checks(unmeasured_sources) or "its sources were not measured"
    )
    reason = (
        f"{fault_text}; no open case says why, and {not_measured_text}, so the cause is not known "
        f"yet. {advice_sentence}"
    )
    return Escalate("source_not_measured", reason, command)


def describe_source_checks(source_checks: Sequence[SourceCheck]) -> str:
    """Return a part of a sentence: what the scan knows about each source; empty without sources.

    The names of the queues may be another person's text, so they are shown as plain text.
    """
    source_texts = []
    for check in source_checks:
        name = format_value(parse_queue_arn(check.queue_arn).name)
        if check.symptoms:
            source_texts.append(f"{name} shows {', '.join(check.symptoms)}")
        elif check.is_measured:
            source_texts.append(f"{name} was measured and shows no fault")
        else:
            source_texts.append(f"{name} was not measured")
    return "; ".join(source_texts)


def _describe_receives(facts: Facts) -> str:
    """Return the end of a sentence: after how many receives messages of the first source come here.

    The text also says what to do if work takes longer than the visibility timeout, because counts
    cannot tell such messages from messages that fail. The text is empty if no source or no
    `maxReceiveCount` is known.
    """
    first_source = facts.dlq_sources[0] if facts.dlq_sources else None
    if first_source is None or first_source.max_receive_count is None:
        return ""
    return (
        f". From {first_source.name} they come after "
        f"{format_count(first_source.max_receive_count, 'receive')} of "
        f"{first_source.visibility_seconds:,} s each: where work takes longer than that, the tag "
        f"{MAX_PROCESSING_TAG} on {first_source.name} says so to Mendq"
    )


def _make_example_queue(messages_before: int = 2, messages_now: int = 3, **overrides: Any) -> Facts:
    """Return a DLQ with these numbers of messages at both ends of the measured time."""
    backlog_counts = {"backlog_before": messages_before, "backlog_now": messages_now}
    visible_counts = {"visible_before": messages_before, "visible_now": messages_now}
    return dlq(
        **{
            "ApproximateNumberOfMessages": 3,
            "source_checks": (SourceCheck(STANDARD_ARN, is_measured=True),),
            **backlog_counts,
            **visible_counts,
            **overrides,
        }
    )


_DLQ_WITH_FIRST_MESSAGE = _make_example_queue(
    1, 1, was_unreported_at_start=True, dlq_sources=(source(),)
)
_DLQ_ATTACHMENT = OwnChange(
    case_id="dlq_missing-0123456789ab",
    queue_arn=STANDARD_ARN,
    written_at=EXAMPLE_TIME,
    change_text="attached the DLQ orders-dlq to orders",
    effect="messages that had been received 5 times move there",
    rollback_introduction="To take the change back",
)
_DLQ_ATTACHMENT_REPORTED_EARLIER = replace(_DLQ_ATTACHMENT, is_reported=True)

DLQ_MESSAGES_ARRIVING = NotifiedSymptom(
    name="dlq_messages_arriving",
    sentence="Messages that nobody could finish arrive in a DLQ.",
    plan_in_words="Page with the sources and the numbers, and first with Mendq's own change if "
    "that can be the cause; messages are not touched.",
    first_step="Find out why the source's consumer fails.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    plan=plan,
    gives_way_to=CAUSE_SYMPTOMS,
    shown_attributes=("ApproximateNumberOfMessages", "RedriveAllowPolicy"),
    detection=Detection(detect, _DETECTION_NEEDS, is_possible),
    examples=lambda: (
        QueueExample("one more than there were", _make_example_queue(), "no_known_cause"),
        QueueExample(
            "the first one after hours of silence", _DLQ_WITH_FIRST_MESSAGE, "no_known_cause"
        ),
        QueueExample(
            "the scan found a fault at the source",
            _make_example_queue(
                source_checks=(SourceCheck(STANDARD_ARN, ("max_receive_count_too_low",), True),)
            ),
            "cause_at_source",
        ),
        QueueExample(
            "the source was not measured",
            _make_example_queue(source_checks=(SourceCheck(STANDARD_ARN),)),
            "source_not_measured",
        ),
        QueueExample(
            "Mendq attached it", _make_example_queue(own_change=_DLQ_ATTACHMENT), OWN_CHANGE_CODE
        ),
        RefusalExample(
            "that case reports it",
            _make_example_queue(own_change=_DLQ_ATTACHMENT_REPORTED_EARLIER),
            "said_of_another",
        ),
        QueueNearMiss("the only message is there all the while", _make_example_queue(1, 1)),
        QueueNearMiss(
            "the cause is known", _make_example_queue(open_symptoms=frozenset({"consumer_failing"}))
        ),
        QueueNearMiss("a redrive moves them", _make_example_queue(move_task_running=True)),
        QueueNearMiss("somebody sends straight to it", _make_example_queue(sent=1)),
        QueueNearMiss("a queue that takes no DLQ messages", _make_example_queue(dlq_sources=())),
    ),
)
