"""Select the findings of a scan that are sent to heal.

If several queues name the same missing queue, one finding is sent for all of them. Of new faults in
configurations, only a few are sent per day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec import Struct

from mendq.cases.finding import Finding, scan_order_key
from mendq.heal.repeats import EXPIRED_PROPOSAL_SILENCE
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.queue import parse_queue_arn
from mendq.model.shared_default import MINIMUM_QUEUES

if TYPE_CHECKING:
    from mendq.aws.queue import ManagedQueue
    from mendq.cases.table import OpenCase

MAXIMUM_NEW_FAULTS_PER_DAY = 10


class TopicAdmission(Struct, frozen=True):
    """The faults in configurations that may be reported now, and the changes to the stored notes.

    Attributes:
        topics: The faults that may be reported (`Finding.topic`).
        notes_to_add: Notes about those that are reported for the first time.
        notes_to_drop: Notes that are too old.
    """

    topics: list[str]
    notes_to_add: list[str]
    notes_to_drop: list[str]


def admit_topics(
    stored_notes: frozenset[str], topics: Sequence[str], now: datetime
) -> TopicAdmission:
    """Select the faults in configurations that may be reported today.

    A note is a text such as `2026-11-16 topic`: the day of the first report, and the fault. A fault
    with a note may always be reported, because its case stays open only while it is found again.
    After EXPIRED_PROPOSAL_SILENCE the note is dropped, and the fault counts as new. At most
    MAXIMUM_NEW_FAULTS_PER_DAY new faults may be reported on a day. Their order does not depend on
    names: otherwise the same few queues could always come before the others.

    Args:
        stored_notes: The stored notes.
        topics: The faults that were found (`Finding.topic`).
        now: The time of the run.
    """
    last_expired_day = f"{now - EXPIRED_PROPOSAL_SILENCE:%F}"
    today_prefix = f"{now:%F} "
    unique_topics = dict.fromkeys(topics)
    unexpired_notes = {note for note in stored_notes if note.partition(" ")[0] > last_expired_day}
    noted_topics = {note.partition(" ")[2] for note in unexpired_notes}
    new_topic_limit = MAXIMUM_NEW_FAULTS_PER_DAY - sum(
        note.startswith(today_prefix) for note in stored_notes
    )
    new_topics_in_scan_order = sorted(
        unique_topics.keys() - noted_topics, key=lambda topic: scan_order_key(topic, now)
    )
    admitted_new_topics = new_topics_in_scan_order[: max(0, new_topic_limit)]
    return TopicAdmission(
        topics=[
            topic
            for topic in unique_topics
            if topic in noted_topics or topic in admitted_new_topics
        ],
        notes_to_add=[f"{today_prefix}{topic}" for topic in sorted(admitted_new_topics)],
        notes_to_drop=sorted(stored_notes - unexpired_notes),
    )


def group_shared_defaults(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Return the findings of each shared default, sorted by queue.

    They have the same symptom and the same wrong value. Fewer than MINIMUM_QUEUES are none.
    """
    findings_by_setting = defaultdict[tuple[str, str], list[Finding]](list)
    for finding in sorted(findings):
        if finding.shared_setting and not finding.missing_queue_arn:
            findings_by_setting[finding.symptom, finding.shared_setting].append(finding)
    return [tuple(group) for group in findings_by_setting.values() if len(group) >= MINIMUM_QUEUES]


def map_topics(findings: Iterable[Finding]) -> dict[Finding, str]:
    """Return the topic under which each finding is admitted (`admit_topics`).

    All findings of a shared default have one topic, because people are asked about them once.
    """
    all_findings = tuple(findings)
    topic_by_finding = {finding: finding.topic for finding in all_findings}
    for group in group_shared_defaults(all_findings):
        setting_digest = sha256(group[0].shared_setting.encode()).hexdigest()[:12]
        shared_topic = f"{group[0].symptom} {setting_digest}"
        topic_by_finding |= dict.fromkeys(group, shared_topic)
    return topic_by_finding


def merge_shared_findings(
    findings: Iterable[Finding],
    managed_queues: Iterable[ManagedQueue],
    open_cases: Iterable[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """Return the findings, with one finding for each missing queue that several queues name.

    The kept finding is that of a queue with an open case of the symptom, if there is one. If there
    are several or none, the highest mode decides, then the first queue by ARN. The finding's
    `source_arns` then include all other queues that name the missing one. So the kept finding also
    waits for faults on these queues that must be handled first, because creating the missing queue
    would move the backlogs of all. Its `open_case_queue_arns` are the other queues with an open
    case of the symptom.
    """
    tags_by_arn = {queue.queue_arn: queue.tags for queue in managed_queues}
    open_case_arns_by_symptom = defaultdict[str, list[str]](list)
    for case in open_cases:
        open_case_arns_by_symptom[case.symptom].append(case.queue_arn)
    findings_by_fault = defaultdict[object, list[Finding]](list)
    for finding in sorted(findings):
        findings_by_fault[finding.symptom, finding.missing_queue_arn or finding.queue_arn].append(
            finding
        )

    def rank_finding(finding: Finding) -> tuple[bool, Mode]:
        queue_name = parse_queue_arn(finding.queue_arn).name
        mode = consent.mode_of(queue_name, tags_by_arn.get(finding.queue_arn, {}))
        return finding.queue_arn in open_case_arns_by_symptom[finding.symptom], mode or Mode.OBSERVE

    merged_findings = list[Finding]()
    for findings_of_fault in findings_by_fault.values():
        kept_finding = max(findings_of_fault, key=rank_finding)
        other_queue_arns = tuple(
            finding.queue_arn for finding in findings_of_fault if finding != kept_finding
        )
        other_open_case_arns: list[str] = []
        if kept_finding.missing_queue_arn:
            other_open_case_arns = [
                arn
                for arn in open_case_arns_by_symptom[kept_finding.symptom]
                if arn != kept_finding.queue_arn
            ]
        merged_finding = replace(
            kept_finding,
            source_arns=(*kept_finding.source_arns, *other_queue_arns),
            other_queue_arns=other_queue_arns,
            open_case_queue_arns=tuple(other_open_case_arns),
        )
        merged_findings.append(merged_finding)
    return merged_findings


def map_merged_findings(
    findings: Iterable[Finding], merged_findings: Iterable[Finding]
) -> Mapping[Finding, Finding]:
    """Map each finding that `merge_shared_findings` left out to the one that it kept instead."""
    kept_finding_by_fault = {
        (finding.symptom, finding.missing_queue_arn): finding
        for finding in merged_findings
        if finding.missing_queue_arn
    }
    kept_finding_by_finding = dict[Finding, Finding]()
    for finding in findings:
        kept_finding = kept_finding_by_fault.get((finding.symptom, finding.missing_queue_arn))
        if kept_finding is not None and kept_finding != finding:
            kept_finding_by_finding[finding] = kept_finding
    return kept_finding_by_finding
