"""Run the hourly scan of a scan-only stack: choose the queues, scan them, report what is new.

A scan-only stack has no heal Lambda and no cases. This run reports findings itself, in one message
to the stack's only topic. It claims and ends its part of the round as `hourly.py` does (its rules 1
to 5 hold here too), and it makes the same detections.

Rules:

1. One message for all that is new. A run reports what it found and people have not heard of. What a
   message has no space to name stays new. `report_notes.py` decides what is new, what is named
   first, and how many messages a day there are.

2. Reported first, noted second. If the notes cannot be stored after the message was sent, people
   get it twice. In the other order a finding could be lost.

3. A finding that another symptom of the queue explains waits (`find_waiting_findings`), as it does
   before heal hears of it. It is reported once the other symptom is gone.

4. Findings without a plan are reported as well. In a whole stack the weekly report names them.

5. What cannot be looked at is reported too, because no alarm of this stack watches the errors of
   single queues.

This run reads and writes only the partition about the account in the case table. So it knows no
case and no DLQ that Mendq made, even if the stack was a whole one before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs

from mendq.aws.errors import ConsumersUnknown, FactsUnavailable, NotificationNotSent
from mendq.aws.queue import ManagedQueue, QueueListing, list_readable_queues
from mendq.cases.context import TableContext
from mendq.cases.finding import Finding, ScanResult, find_waiting_findings, merge_results
from mendq.cases.seen_moves import SeenMoves
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.case import Severity
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.settings import ScanOnlySettings
from mendq.model.severity_class import SeverityClass
from mendq.notifications.scan_report import (
    ReportedFinding,
    ScanReport,
    UnmeasuredQueues,
    UnreadableTarget,
    describe_scan_report,
)
from mendq.notifications.sent import make_publish_arguments
from mendq.notifications.text import format_count, link_runbooks
from mendq.scan.hourly import (
    asks_for_sums,
    end_stretch,
    list_scanned_names,
    make_allowance,
    note_move_destinations,
    scan_claimed_stretch,
    store_history,
)
from mendq.scan.mutes import apply_mutes
from mendq.scan.reader import Paces, ScanReader
from mendq.scan.report_notes import (
    UNREADABLE_DELAY,
    FoundTopic,
    ReportSelection,
    note_named_topics,
    select_topics_to_report,
)
from mendq.scan.scan import scan
from mendq.scan.selection import merge_shared_findings
from mendq.scan.severity import find_class, sort_worst_first
from mendq.scan.source_checks import add_source_checks
from mendq.scan.store import ScanStore, Stretch
from mendq.scan.urgency import share_seconds_left

# The summary of a run, for `mendq doctor`, names this many queues that could not be looked at.
_MAXIMUM_SUMMARIZED_ERRORS = 20
# A queue that cannot be looked at may have any fault.
_UNREADABLE_SEVERITY_RANK = SeverityClass.WILL_LOSE.rank
_UNREADABLE_TOPIC = "not looked at: {}"
# Named in place of the queues if Lambda does not list their consumers.
_CONSUMERS_TARGET = "Lambda consumers"


class ScanOnlyContext(TableContext, frozen=True, kw_only=True):
    """The settings, clients, remaining time and rate limits of one run."""

    settings: ScanOnlySettings
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def scan_store(self) -> ScanStore:
        return ScanStore(self.clients.dynamodb, self.settings.case_table, self.owner)


def scan_and_report(
    context: ScanOnlyContext, symptoms: Sequence[Symptom] = CATALOGUE
) -> ScanResult | None:
    """Do one run of the hourly scan, and report what is new.

    Returns:
        The results of this run. None if the hour's round is done or another run has claimed it.

    Raises:
        FactsUnavailable: if the queues cannot be listed.
        CaseStoreUnavailable: if the case table does not answer.
        CaseStoreUnreadable: if the case table has an item that Mendq cannot read.
        NotificationNotSent: if SNS does not take the message. The next run scans and reports again.
    """
    return scan_claimed_stretch(
        context.scan_store,
        context.now,
        lambda stretch: _scan_stretch(stretch, context, symptoms),
    )


def _scan_stretch(
    stretch: Stretch, context: ScanOnlyContext, symptoms: Sequence[Symptom]
) -> ScanResult:
    settings = context.settings
    listing = list_readable_queues(context.clients, settings.account, settings.consent)
    stretch_queues = [queue for queue in listing.queues if queue.name > stretch.after_queue]
    reader = _make_reader(context)
    allowance = make_allowance(
        context.remaining_seconds,
        context.scan_store,
        settings.limits.scan_metrics_per_day,
        context.now,
        round_queue_count=len(listing.queues),
    )
    result = ScanResult(error_by_target=listing.error_by_pattern)
    history = context.scan_store.read_history(context.now)
    allowance = structs.replace(
        allowance, asks_sums=asks_for_sums(stretch, stretch_queues, history, context.now)
    )
    for partial_result in scan(stretch_queues, reader, allowance, symptoms, history):
        result = merge_results(result, partial_result)
    result = add_source_checks(share_seconds_left(result))
    scanned_names = list_scanned_names(result, stretch_queues)
    result = apply_mutes(result, scanned_names, settings.mutes, context.now.date())
    note_move_destinations(result, symptoms, reader, context.open_store(SeenMoves))
    findings = _select_findings(result, listing, symptoms, context)
    _report_news(findings, result, context)
    result = store_history(result, listing, context.scan_store, context.now)
    has_scanned_all = len(scanned_names) == len(listing.queues) and not listing.error_by_pattern
    context.scan_store.store_summary(
        _make_summary(result, context, has_scanned_all=has_scanned_all)
    )
    end_stretch(stretch, result, stretch_queues, context.scan_store)
    return result


def _make_reader(context: ScanOnlyContext) -> ScanReader:
    """Return the run's reader. It knows no cases, and no DLQs that Mendq made."""
    return ScanReader(
        context.clients,
        context.now,
        context.settings.timing,
        list_open_symptoms=lambda _: frozenset(),
        read_noted_move_destinations=lambda: context.open_store(SeenMoves).list_destinations(
            context.now
        ),
        list_newest_cases=lambda _: (),
        consent=context.settings.consent,
        paces=context.paces,
    )


def _select_findings(
    result: ScanResult,
    listing: QueueListing,
    symptoms: Sequence[Symptom],
    context: ScanOnlyContext,
) -> list[Finding]:
    """Return the findings that people may hear about, the worst first (rules 3 and 4)."""
    managed_queues: Sequence[ManagedQueue] = listing.queues
    merged_findings = merge_shared_findings(
        result.reported_findings, managed_queues, (), context.settings.consent
    )
    explaining_symptoms_by_name = {symptom.name: symptom.gives_way_to for symptom in symptoms}
    waiting_findings = find_waiting_findings(merged_findings, explaining_symptoms_by_name)
    return sort_worst_first(
        finding for finding in merged_findings if finding not in waiting_findings
    )


def _report_news(
    findings: Sequence[Finding],
    result: ScanResult,
    context: ScanOnlyContext,
) -> None:
    """Report what is new, and note that it was reported (rules 1, 2 and 5).

    Raises NotificationNotSent if SNS does not take the message.
    """
    found_topics = [
        FoundTopic(finding.topic, find_class(finding).rank, is_reported_once=finding.is_hygiene)
        for finding in findings
    ]
    error_by_target = merge_consumer_errors(result.error_by_target)
    found_topics += [
        FoundTopic(_UNREADABLE_TOPIC.format(target), _UNREADABLE_SEVERITY_RANK, UNREADABLE_DELAY)
        for target in sorted(error_by_target)
    ]
    stored_note_by_key = context.scan_store.read_report_notes()
    selection = select_topics_to_report(stored_note_by_key, found_topics, context.now)
    new_note_by_key = selection.note_by_key
    if selection.must_send_message:
        unmeasured_queues = UnmeasuredQueues(
            sorted(parse_queue_arn(arn).name for arn in result.skipped_arns),
            sorted(parse_queue_arn(arn).name for arn in result.gap_reason_by_arn),
        )
        named_topics = _publish(findings, error_by_target, selection, unmeasured_queues, context)
        new_note_by_key = note_named_topics(selection, named_topics, context.now)
    if new_note_by_key != stored_note_by_key:
        context.scan_store.store_report_notes(new_note_by_key)


def merge_consumer_errors(error_by_target: Mapping[str, Exception]) -> dict[str, Exception]:
    """Return the errors with one for all queues whose consumers could not be read for one reason.

    If Lambda does not list its event source mappings, that concerns every queue, and people must
    hear about it once.
    """
    names_by_reason = defaultdict[str, list[str]](list)
    for target, error in error_by_target.items():
        if isinstance(error, ConsumersUnknown):
            names_by_reason[str(error)].append(target)
    merged_errors = {**error_by_target}
    for reason, targets in names_by_reason.items():
        if len(targets) > 1:
            merged_errors[_CONSUMERS_TARGET] = FactsUnavailable(
                f"{reason}. This concerns {format_count(len(targets), 'queue')}; symptoms that do "
                "not depend on consumers were checked"
            )
            for target in targets:
                del merged_errors[target]
    return merged_errors


def _publish(
    findings: Sequence[Finding],
    error_by_target: Mapping[str, Exception],
    selection: ReportSelection,
    unmeasured_queues: UnmeasuredQueues,
    context: ScanOnlyContext,
) -> frozenset[str]:
    """Publish one message about `selection`. Return the topics that it names."""
    position_by_topic = {topic: position for position, topic in enumerate(selection.topics)}
    reported_findings = [
        _describe_finding(finding, position_by_topic[finding.topic])
        for finding in findings
        if finding.topic in position_by_topic
    ]
    report = describe_scan_report(
        reported_findings,
        _list_unreadable_targets(error_by_target, position_by_topic),
        selection.topics_without_note,
        unmeasured_queues,
        AccountAndRegion(context.settings.account, context.clients.region),
    )
    _publish_report(report, context)
    return report.named_topics


def _publish_report(report: ScanReport, context: ScanOnlyContext) -> None:
    """Publish the message. Raises NotificationNotSent if SNS does not take it."""
    settings = context.settings
    publish_arguments = make_publish_arguments(
        {
            "subject": report.notification.subject,
            "text": link_runbooks(report.notification.body, settings.docs_url),
            "dedup_key": f"{settings.account}/{context.clients.region}/scan",
        },
        is_for_chat=Severity.URGENT in settings.chat,
    )
    try:
        context.clients.sns.publish(TopicArn=settings.urgent_topic_arn, **publish_arguments)
    except (ClientError, BotoCoreError) as error:
        raise NotificationNotSent(str(error)) from error


def _describe_finding(finding: Finding, naming_position: int) -> ReportedFinding:
    """Return a finding as the message shows it."""
    return ReportedFinding(
        topic=finding.topic,
        naming_position=naming_position,
        queue_name=parse_queue_arn(finding.queue_arn).name,
        symptom=finding.symptom,
        sentence=finding.sentence,
        severity=find_class(finding).title,
        runbook=SYMPTOM_BY_NAME[finding.symptom].runbook,
    )


def _list_unreadable_targets(
    error_by_target: Mapping[str, Exception], position_by_topic: Mapping[str, int]
) -> list[UnreadableTarget]:
    """Return the targets that could not be looked at and that are due, in the order of naming."""
    unreadable_targets: list[UnreadableTarget] = []
    for target, error in error_by_target.items():
        topic = _UNREADABLE_TOPIC.format(target)
        if topic in position_by_topic:
            name = parse_queue_arn(target).name if queue_arn_or_none(target) else target
            unreadable_targets.append(
                UnreadableTarget(topic, position_by_topic[topic], name, str(error))
            )
    return sorted(unreadable_targets, key=lambda target: target.naming_position)


def _make_summary(
    result: ScanResult, context: ScanOnlyContext, *, has_scanned_all: bool
) -> dict[str, object]:
    """Return the summary of a run: its numbers, and some of what could not be looked at.

    Only a run that has scanned all queues says which mutes are not needed.
    """
    document = result.document(context.now)
    errors = sorted(document["not_looked_at"].items())[:_MAXIMUM_SUMMARIZED_ERRORS]
    skip_reasons = sorted(document["skipped_because"].items())[:_MAXIMUM_SUMMARIZED_ERRORS]
    return {
        **document,
        "not_looked_at": dict(errors),
        "findings": [],
        "findings_left_out": len(result.reported_findings),
        "muted": [{"class": finding.severity_class} for finding in result.muted_findings],
        "mutes": document["mutes"] if has_scanned_all else [],
        "skipped": [],
        "skipped_because": dict(skip_reasons),
        "measured_because": {},
        "queues": {},
    }
