"""Symptom `dlq_source_unconfirmed`: a queue names this one as its DLQ, and nothing confirms it.

The fault: anybody who may change a queue can write any queue of the account into its RedrivePolicy.
Mendq believes that only if the DLQ's RedriveAllowPolicy, the settings or (for some DLQs) the
source's mode tag confirm it: `select_confirmed_sources` in `mendq/model/dlq.py` has the rules.
Otherwise a person with rights on one queue could make Mendq act on another one.

How it shows: in the policies of the queues, in the settings, and in the source's mode tag.

What Mendq does: it reports the queue, and takes no decision from the unconfirmed RedrivePolicy. It
changes nothing, because only the DLQ's owner knows whose DLQ it is.
"""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, dlq, queue
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass


def detect(facts: Facts) -> DetectedFault | None:
    """Report the queues that name this one as their DLQ without a confirmation.

    Any queue of an account may name any other queue as its DLQ. `select_confirmed_sources`
    (`mendq/model/dlq.py`) decides which of them Mendq believes.
    """
    if not facts.unconfirmed_sources:
        return None
    return DetectedFault(
        f"it is named as the DLQ of {name_first_principals(facts.unconfirmed_sources)}, and Mendq "
        "goes by none of that: neither its RedriveAllowPolicy nor the settings confirm it"
    )


DLQ_SOURCE_UNCONFIRMED = ReportedSymptom(
    name="dlq_source_unconfirmed",
    sentence="A queue names this one as its DLQ, and nobody confirms that it is.",
    plan_in_words="Report it and go by none of it; whose DLQ a queue is, its RedriveAllowPolicy or "
    "the settings say.",
    first_step="Name the source in the DLQ's RedriveAllowPolicy, or detach it.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.DLQ_SOURCES})),
    examples=lambda: (
        QueueExample("somebody's queue names it", queue(unconfirmed_sources=(STANDARD_ARN,))),
        QueueExample("it has a source as well", dlq(unconfirmed_sources=(DLQ_ARN, STANDARD_ARN))),
        QueueNearMiss("a source that is managed", dlq()),
        QueueNearMiss("nobody has asked who names it", queue()),
        QueueNearMiss("nobody's DLQ", queue(queue_arn=DLQ_ARN, dlq_sources=())),
    ),
)
