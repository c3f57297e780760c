"""Select the findings of a scan that are sent to heal.

If several queues name the same missing queue, one finding is sent for all of them. Of new faults in
configurations, only a few are sent per day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from mendq.cases.finding import Finding, scan_order_key
from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.queue import parts_of

if TYPE_CHECKING:
    from mendq.aws.queue import ManagedQueue
    from mendq.cases.table import OpenCase

NEW_FAULTS_A_DAY = 10


class Admission(Struct, frozen=True):
    """The faults in configurations that may be reported now, and the changes to the stored notes.

    Attributes:
        topics: The faults that may be reported (`Finding.topic`).
        notes_to_add: Notes about those that are reported for the first time.
        notes_to_drop: Notes that are too old.
    """

    topics: list[str]
    notes_to_add: list[str]
    notes_to_drop: list[str]


def admit_topics(notes: frozenset[str], topics: Sequence[str], now: datetime) -> Admission:
    """Select the faults in configurations that may be reported today.

    A note is a text such as `2026-11-16 topic`: the day of the first report, and the fault. A fault
    with a note may always be reported, because its case stays open only while it is found again.
    New faults may be reported until there are NEW_FAULTS_A_DAY on this day. Their order does not
    depend on names: otherwise the same few queues could always come before the others.

    Args:
        notes: The stored notes.
        topics: The faults that were found (`Finding.topic`).
        now: The time of the run.
    """
    oldest = f"{now - EXPIRED_PROPOSAL_SILENCE:%F}"
    today = f"{now:%F} "
    asked = dict.fromkeys(topics)
    valid = {note for note in notes if note.partition(" ")[0] > oldest}
    noted = {note.partition(" ")[2] for note in valid}
    room = NEW_FAULTS_A_DAY - sum(note.startswith(today) for note in notes)
    turns = sorted(asked.keys() - noted, key=lambda topic: scan_order_key(topic, now))
    new = turns[: max(0, room)]
    return Admission(
        topics=[topic for topic in asked if topic in noted or topic in new],
        notes_to_add=[f"{today}{topic}" for topic in sorted(new)],
        notes_to_drop=sorted(notes - valid),
    )


def merge_shared_findings(
    findings: Iterable[Finding],
    managed: Iterable[ManagedQueue],
    open_cases: Iterable[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """Return the findings, with one finding for each missing queue that several queues name.

    The finding that is kept is that of the queue with an open case. If there is none, it is that of
    the queue with the highest mode, then of the first queue by name. Its `sources` are all queues
    that name the missing one. A fault of any of them is handled before, because creating the
    missing queue would move the backlogs of all. Its `open_at` are the other queues with an open
    case of the symptom.
    """
    tags = {queue.queue_arn: queue.tags for queue in managed}
    open_at = defaultdict[str, list[str]](list)
    for case in open_cases:
        open_at[case.symptom].append(case.queue_arn)
    shared = defaultdict[object, list[Finding]](list)
    for finding in sorted(findings):
        shared[finding.symptom, finding.about or finding.queue_arn].append(finding)

    def rank(finding: Finding) -> tuple[bool, Mode]:
        name = parts_of(finding.queue_arn).name
        mode = consent.mode_of(name, tags.get(finding.queue_arn, {}))
        return finding.queue_arn in open_at[finding.symptom], mode or Mode.OBSERVE

    retained = list[Finding]()
    for same in shared.values():
        first = max(same, key=rank)
        others = tuple(finding.queue_arn for finding in same if finding != first)
        asked = [arn for arn in open_at[first.symptom] if first.about and arn != first.queue_arn]
        sources = (*first.sources, *others)
        retained.append(replace(first, sources=sources, others=others, open_at=tuple(asked)))
    return retained


def map_merged_findings(
    findings: Iterable[Finding], retained: Iterable[Finding]
) -> Mapping[Finding, Finding]:
    """Map each finding that `merge_shared_findings` left out to the one that it kept instead."""
    kept = {(finding.symptom, finding.about): finding for finding in retained if finding.about}
    merged = dict[Finding, Finding]()
    for finding in findings:
        first = kept.get((finding.symptom, finding.about))
        if first is not None and first != finding:
            merged[finding] = first
    return merged
