"""Select the findings of a scan that reach heal: one per shared cause, and a few new ones per
day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from mendq.cases.finding import Finding, scan_order_key
from mendq.heal.repeats import REMEMBERED
from mendq.model.limits import Consent, Mode
from mendq.model.queue import parts_of

if TYPE_CHECKING:
    from mendq.aws.queue import ManagedQueue
    from mendq.cases.table import OpenCase

NEW_FAULTS_A_DAY = 10


class Admission(Struct, frozen=True):
    """The topics that may be reported now, the notes to add for them, and the notes to drop."""

    topics: list[str]
    notes_to_add: list[str]
    notes_to_drop: list[str]


def admit_topics(notes: frozenset[str], topics: Sequence[str], now: datetime) -> Admission:
    """Select the faults in configuration that may be reported today.

    A note is `2026-11-16 topic`: a fault of a queue that was reported, and the first day. A noted
    fault is always admitted, because its case stays open only while it is found again. New ones are
    admitted while the day has room. Their order does not depend on names: otherwise a few queues
    a day could hide the others.
    """
    oldest = f"{now - REMEMBERED:%F}"
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
    """Keep one finding for each missing queue that several queues name.

    The finding that is kept is of the queue whose case is open, then of the queue whose mode goes
    furthest, then of the first queue by name. Its `sources` are all queues that name the missing
    one: a fault of any of them goes first, because making the queue would move the backlogs of
    all. `open_at` are the queues that may have asked for the missing queue before.
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
