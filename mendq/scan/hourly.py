"""Run the hourly scan: choose the queues, hand findings to heal, store the results.

Mendq scans every managed queue once an hour. The scan of one hour is called a round. Its Lambda
starts every ten minutes and may run for 15 minutes, so a round can take several runs, and any run
can be cut off. `scan_hourly` is one run: it claims the rest of the round, scans
(`mendq/scan/scan.py`), sends findings to the heal Lambda, stores the results, and stores its
position: the name of the last queue that it scanned. The position of the round is one item of the
case store (`mendq/scan/store.py`). There, a `Stretch` is the part of a round that a run has
claimed.

Rules:

1. One run at a time. A run claims the round for 15 minutes; another that starts meanwhile does
   nothing. If a run dies, its claim expires, and the next run begins where the dead one began.

2. A run stops while it can still finish. With less than 300 seconds left it reads no further
   queues, with less than 60 it measures no more. It stores the last queue that it read, and the
   round's next run continues after that queue, in the order of names.

3. No queue is left out if an hour is too short for all queues. If a round is cut off after half of
   the queues, the next hour's first runs scan the other half, and then that hour's round begins at
   the first queue. That the other half is being scanned is stored with the claim, so a run that
   fails, dies or does not finish it changes nothing. So a queue is scanned late, but is never left
   out because of its name.

4. A run that fails releases its claim and does not store a new position; the next run repeats its
   part. A finding may then be sent to heal twice. That is harmless: heal reads the queue again, and
   finds the case that is open by then. The other order would lose findings.

5. A round whose first run could read no queue at all begins again with the next run: a missing
   permission or an outage must not count as a scan. This holds for the first run only. Otherwise a
   few queues that refuse Mendq, at the end of the list, would keep every round from ending.

6. All queues that show a symptom are stored (`note_spread`) before heal is called for the first
   time. A symptom that many queues show at once (a mass symptom) has a common cause, and heal then
   changes nothing. If heal were called queue by queue, it would change the first few before it
   could see that. Faults in configurations are left out (`_is_mass_symptom`): many queues may have
   had one for long, so their number does not show a common cause.

7. Heal and people are not flooded. At most MAXIMUM_NEW_FAULTS_PER_DAY (`selection.py`) new
   faults in configurations are sent to heal in a day; a value that many queues share is one fault
   (`mendq/model/shared_default.py`). If many queues show a symptom, only
   MAXIMUM_FINDINGS_PER_CALL of them (`mendq/cases/finding.py`) are sent, in one call of heal. The
   most urgent findings are sent first. If another symptom of the queue explains a finding, the
   finding waits. Heal counts the metrics that it reads in the scan's budget; if too few are left,
   faults in configurations wait.

8. A baseline, the configuration of a healthy queue, is stored only if everything on the queue was
   checked (rule 7 of `scan.py`), the scan found no fault, and no case is open or ended unresolved
   within the day. Tolerated symptoms (`_ToleratedSymptoms`) count neither as a fault nor as a case:
   faults in the configuration, those without a plan, and those that merely cost money. But a
   changed configuration that has a new fault is not stored (`is_new`). If baselines cannot be
   stored, the run reports that and continues.

9. A round's results are one object in the case bucket; each run adds its part. It lists all managed
   queues, so that the nightly job can tell why an incident has no case.

10. In every second hour (even hours in UTC) a run asks for the sums of queues; in the others, what
   costs nothing decides alone which queues are measured (rule 5 of `scan.py`). What the next scan
   must know about each queue is stored in the case store: the messages that it held, those that
   its DLQ held when the queue was last judged, and when it was in use. If that is lost, the next
   scan is like a first one. If it cannot be stored, the run reports that and continues.

11. A muted finding is not sent to heal. It stays in the results (`mendq/scan/mutes.py`).

This module does not decide what to do about a finding, and writes to no queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    OwnerUnavailable,
    error_code_of,
)
from mendq.aws.queue import ManagedQueue, QueueListing, list_readable_queues
from mendq.cases import items
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.context import StoreContext
from mendq.cases.finding import (
    Finding,
    ScanResult,
    add_managed_queues,
    count_allowed_last_metrics,
    count_allowed_metrics,
    findings_key,
    group_into_calls,
    limit_mass_findings,
    make_heal_request,
    merge_documents,
    merge_results,
)
from mendq.cases.seen_moves import SeenMoves
from mendq.cases.spread import Reach
from mendq.cases.table import OpenCase
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.time_left import sort_by_urgency
from mendq.catalogue.symptom import Symptom
from mendq.heal.guardrails import explain_mass_symptom
from mendq.model.facts import Need
from mendq.model.json_text import to_json
from mendq.model.lifecycle import QUIET_TIME_AFTER_FAILURES, STATES_ENDED_BY_FAILED_CALLS
from mendq.model.mode import Mode
from mendq.model.queue import parse_queue_arn
from mendq.model.settings import ScanSettings
from mendq.model.state import FINAL_STATES, State
from mendq.model.traffic import ScanHistory, SumsShare, hour_number, is_sums_hour
from mendq.scan.mutes import apply_mutes, find_findings_to_wait
from mendq.scan.reader import Paces, ScanReader, make_scan_reader
from mendq.scan.scan import Allowance, scan
from mendq.scan.selection import map_topics, merge_shared_findings
from mendq.scan.source_checks import add_source_checks
from mendq.scan.store import (
    BaselineNote,
    ScanStore,
    Stretch,
    make_baseline_note,
    must_store_baseline,
    read_findings_document,
    read_last_scan_answers,
    shard_of,
    store_answers,
)
from mendq.scan.urgency import share_seconds_left

# The position before the first queue of a round that has results already. It sorts before the name
# of every queue. It is not empty, because an empty position means that nothing was stored yet.
POSITION_BEFORE_ALL_QUEUES = " "
# Seconds that are kept for measuring suspects, and for calling heal (rule 2).
MEASURING_RESERVE_SECONDS = 300
DELIVERY_RESERVE_SECONDS = 60


class ScanContext(StoreContext, frozen=True, kw_only=True):
    """The settings, clients, remaining time and rate limits of one run of the scan."""

    settings: ScanSettings
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def scan_store(self) -> ScanStore:
        return ScanStore(self.clients.dynamodb, self.settings.case_table, self.owner)

    def make_reader(self, hour: datetime, managed_arns: Container[str]) -> ScanReader:
        """Return the run's reader. It reuses some of AWS's answers to the last hour's scan."""
        reader = make_scan_reader(self, self.settings.consent, self.paces)
        return structs.replace(
            reader, last_scan_answers=read_last_scan_answers(hour, self.case_bucket, managed_arns)
        )

    @property
    def has_time_for_more(self) -> bool:
        """True if there is time for other work besides calling heal at the end."""
        return self.remaining_seconds() > DELIVERY_RESERVE_SECONDS

    @property
    def allowance(self) -> Allowance:
        """The limits of this run: its time, and the day's metrics up to this hour."""
        return make_allowance(
            self.remaining_seconds,
            self.scan_store,
            self.settings.limits.scan_metrics_per_day,
            self.now,
        )


def make_allowance(
    remaining_seconds: Callable[[], float],
    scan_store: ScanStore,
    metrics_per_day: int,
    now: datetime,
    round_queue_count: int = 0,
) -> Allowance:
    """Return the limits of a run: its time, and the day's metrics up to this hour.

    Metrics that may be read are counted as spent in the case store. `round_queue_count` is the
    number of queues of the round, of which this run may scan a part.
    """

    def spend_up_to(metrics_limit: int) -> Callable[[int], bool]:
        return lambda metrics: (
            remaining_seconds() > DELIVERY_RESERVE_SECONDS
            and scan_store.spend_metrics(metrics, metrics_limit, now)
        )

    allowed_metrics = count_allowed_metrics(metrics_per_day, now)
    return Allowance(
        may_read_queues=lambda: remaining_seconds() > MEASURING_RESERVE_SECONDS,
        may_measure=spend_up_to(allowed_metrics),
        count_metrics_left=lambda: max(0, allowed_metrics - scan_store.read_spent_metrics(now)),
        round_queue_count=round_queue_count,
        may_measure_last=spend_up_to(count_allowed_last_metrics(metrics_per_day, now)),
        may_read_facts=lambda: remaining_seconds() > DELIVERY_RESERVE_SECONDS,
        sums_share=SumsShare.of_daily_limit(metrics_per_day),
    )


def asks_for_sums(
    stretch: Stretch, queues: Iterable[ManagedQueue], history: ScanHistory, now: datetime
) -> bool:
    """Return True if a run asks for the sums of queues: in every second hour (rule 10).

    Queues that an earlier hour's scan did not reach are scanned as in that hour: otherwise queues
    that are always late would never be asked for. The first scan of queues asks for them too.
    """
    hour = hour_number(now) - int(stretch.is_leftover)
    return is_sums_hour(hour) or not any(queue.name in history for queue in queues)


def scan_hourly(context: ScanContext, symptoms: Sequence[Symptom] = CATALOGUE) -> ScanResult | None:
    """Do one run of the hourly scan.

    Returns:
        The results of this run. None if the hour's round is done or another run has claimed it.

    Raises:
        FactsUnavailable: if the queues cannot be listed.
        CaseStoreUnavailable: if the case store does not answer.
        CaseStoreUnreadable: if the case store has an item that Mendq cannot read.
        OwnerUnavailable: if heal cannot be called.
        ClientError, BotoCoreError: if the results cannot be stored.
    """
    return scan_claimed_stretch(
        context.scan_store,
        context.now,
        lambda stretch: _scan_stretch(stretch, context, symptoms),
    )


def scan_claimed_stretch(
    scan_store: ScanStore, now: datetime, scan_stretch: Callable[[Stretch], ScanResult]
) -> ScanResult | None:
    """Claim a part of the round and scan it. Return None if there is nothing to claim.

    If `scan_stretch` fails, release the claim so that the next run begins at the same queue (rule
    4), and raise the error.
    """
    stretch = scan_store.claim_stretch(now)
    if stretch is None:
        return None
    try:
        return scan_stretch(stretch)
    except Exception:
        with suppress(CaseStoreUnavailable):
            scan_store.end_stretch(stretch, stretch.after_queue, is_round_done=False)
        raise


def _scan_stretch(
    stretch: Stretch, context: ScanContext, symptoms: Sequence[Symptom]
) -> ScanResult:
    listing = list_readable_queues(
        context.clients, context.settings.account, context.settings.consent
    )
    managed_queues = listing.queues
    stretch_queues = [queue for queue in managed_queues if queue.name > stretch.after_queue]
    managed_arns = {queue.queue_arn for queue in managed_queues}
    reader = context.make_reader(stretch.hour, managed_arns)
    result = ScanResult(error_by_target=listing.error_by_pattern)
    history = context.scan_store.read_history(context.now)
    allowance = structs.replace(
        context.allowance,
        asks_sums=asks_for_sums(stretch, stretch_queues, history, context.now),
        round_queue_count=len(managed_queues),
    )
    for partial_result in scan(stretch_queues, reader, allowance, symptoms, history):
        result = merge_results(result, partial_result)
    result = add_source_checks(share_seconds_left(result))
    result = apply_mutes(
        result,
        list_scanned_names(result, stretch_queues),
        context.settings.mutes,
        context.now.date(),
    )
    note_move_destinations(result, symptoms, reader, context.open_store(SeenMoves))
    _send_findings_to_heal(result, managed_queues, symptoms, reader, context)
    # A DLQ that Mendq made may be unmanaged. Mendq keeps no baseline for it.
    managed_configurations = {
        arn: configuration
        for arn, configuration in result.configuration_by_arn.items()
        if arn in managed_arns
    }
    result = replace(result, configuration_by_arn=managed_configurations)
    result = _store_baselines(result, listing, symptoms, context)
    _store_results(result, listing, stretch, context)
    store_answers(stretch, context.case_bucket, reader.scan_answers, managed_arns)
    result = store_history(result, listing, context.scan_store, context.now)
    end_stretch(stretch, result, stretch_queues, context.scan_store)
    return result


def list_scanned_names(result: ScanResult, stretch_queues: Sequence[ManagedQueue]) -> list[str]:
    """Return the names of the stretch's queues that a run has reached."""
    return [queue.name for queue in stretch_queues if queue.name <= result.last_queue_name]


def store_history(
    result: ScanResult, listing: QueueListing, scan_store: ScanStore, now: datetime
) -> ScanResult:
    """Store what the next scan must know about each queue (rule 10).

    Return `result`. If the records could not be stored, the error is added to it: the run must
    still store its position, or each run of the hour would scan the same queues again.
    """
    listed_names = None if listing.error_by_pattern else {queue.name for queue in listing.queues}
    try:
        scan_store.store_history(result.record_by_queue_name, listed_names, now)
    except CaseStoreUnavailable as error:
        return replace(result, error_by_target={**result.error_by_target, "history": error})
    return result


def note_move_destinations(
    result: ScanResult, symptoms: Sequence[Symptom], reader: ScanReader, seen_moves: SeenMoves
) -> None:
    """Store the destinations of redrives if a finding depends on them. Later runs use them."""
    move_task_symptoms = {
        symptom.name for symptom in symptoms if Need.MOVE_TASKS in symptom.all_needs
    }
    if any(finding.symptom in move_task_symptoms for finding in result.findings):
        seen_moves.note_destinations(reader.read_named_move_destinations(), reader.now)


def end_stretch(
    stretch: Stretch,
    result: ScanResult,
    stretch_queues: Sequence[ManagedQueue],
    scan_store: ScanStore,
) -> None:
    """Store the position at the end of a run, and release the claim.

    Args:
        stretch: The part of the round that this run had claimed.
        result: The results of this run.
        stretch_queues: The queues of the stretch, by name.
        scan_store: Where the position is stored.
    """
    position = find_next_position(stretch, result, stretch_queues)
    scan_store.end_stretch(
        stretch,
        position.after_queue,
        is_round_done=position.is_round_done,
        is_leftover_done=position.after_queue == POSITION_BEFORE_ALL_QUEUES,
    )


class Position(NamedTuple):
    """The position at the end of a run.

    Attributes:
        after_queue: The name of the queue after which the next run continues.
        is_round_done: True if the hour's round is done.
    """

    after_queue: str
    is_round_done: bool


def find_next_position(
    stretch: Stretch, result: ScanResult, stretch_queues: Sequence[ManagedQueue]
) -> Position:
    """Return the position to store at the end of a run (rules 2, 3 and 5).

    Args:
        stretch: The part of the round that this run had claimed.
        result: The results of this run.
        stretch_queues: The queues of the stretch, by name.
    """
    if stretch.is_first and result.is_blind:
        return Position(stretch.after_queue, is_round_done=False)
    after_queue = result.last_queue_name or stretch.after_queue
    if stretch_queues and result.last_queue_name != stretch_queues[-1].name:
        return Position(after_queue, is_round_done=False)
    if stretch.is_leftover:
        # The last hour's queues are done. This hour's round begins at the first queue.
        return Position(POSITION_BEFORE_ALL_QUEUES, is_round_done=False)
    return Position(after_queue, is_round_done=True)


def _send_findings_to_heal(
    result: ScanResult,
    managed_queues: Sequence[ManagedQueue],
    symptoms: Iterable[Symptom],
    reader: ScanReader,
    context: ScanContext,
) -> None:
    """Select findings and send them to the heal Lambda (rules 6, 7 and 11).

    First, the queues that show each symptom are stored (rule 6).
    """
    symptom_by_name = {symptom.name: symptom for symptom in symptoms if symptom.plan}
    open_cases = context.open_cases.list_open_cases()
    merged_findings = merge_shared_findings(
        result.reported_findings, managed_queues, open_cases, context.settings.consent
    )
    explaining_symptoms_by_name = {
        name: symptom.gives_way_to for name, symptom in symptom_by_name.items()
    }
    waiting_findings = find_findings_to_wait(
        merged_findings, result.muted_findings, explaining_symptoms_by_name
    )
    plannable_findings = [
        finding
        for finding in merged_findings
        if finding.symptom in symptom_by_name and finding not in waiting_findings
    ]
    configuration_symptoms = {
        name for name, symptom in symptom_by_name.items() if symptom.is_of_configuration
    }
    due_findings = _select_due_findings(
        plannable_findings, configuration_symptoms, open_cases, context
    )
    mode_by_arn = {queue.queue_arn: queue.mode for queue in managed_queues}
    mass_symptoms = [
        name
        for name in symptom_by_name
        if _is_mass_symptom(symptom_by_name[name], due_findings, mode_by_arn, context)
    ]
    limited_findings = limit_mass_findings(due_findings, mass_symptoms)
    findings_by_urgency = sort_by_urgency(limited_findings, lambda finding: finding.seconds_left)
    affordable_findings = _select_affordable_findings(
        findings_by_urgency, symptom_by_name, reader, context
    )
    for findings_of_a_call in group_into_calls(affordable_findings):
        _call_heal(findings_of_a_call, context)


def _select_affordable_findings(
    findings: Sequence[Finding],
    symptom_by_name: Mapping[str, Symptom],
    reader: ScanReader,
    context: ScanContext,
) -> list[Finding]:
    """Return the findings without those for which heal would read metrics above the budget.

    Only a fault in the configuration waits, if the budget is spent or time is short. For other
    findings the scan has read billed metrics already. Nothing is counted as spent here: heal counts
    what it reads.
    """
    affordable_findings: list[Finding] = []
    metrics_left: int | None = None
    for finding in findings:
        symptom = symptom_by_name[finding.symptom]
        metric_count = 0
        if symptom.is_of_configuration:
            metric_count = reader.count_metrics_that_heal_reads(
                finding.queue_arn, symptom.all_needs
            )
        if metric_count:
            if metrics_left is None:
                metrics_left = _count_metrics_left(context)
            if metric_count > metrics_left:
                continue
            metrics_left -= metric_count
        affordable_findings.append(finding)
    return affordable_findings


def _count_metrics_left(context: ScanContext) -> int:
    """Return how many metrics may still be read in this hour; 0 if there is no time for more."""
    if not context.has_time_for_more:
        return 0
    limit = count_allowed_metrics(context.settings.limits.scan_metrics_per_day, context.now)
    return limit - context.scan_store.read_spent_metrics(context.now)


def _select_due_findings(
    findings: Sequence[Finding],
    configuration_symptoms: Collection[str],
    open_cases: Iterable[OpenCase],
    context: ScanContext,
) -> list[Finding]:
    """Return the findings to send to heal now. Few new faults in configurations are sent per day.

    The symptoms in `configuration_symptoms` are faults in configurations. Such a fault may have an
    open case that failed calls cannot end (STATES_ENDED_BY_FAILED_CALLS), such as one that waits
    for a person. Its finding is then returned only in the hour of the day in which the case opened.
    """
    opening_hour_by_case: dict[tuple[str, str], int] = {}
    for case in open_cases:
        if (
            case.state not in STATES_ENDED_BY_FAILED_CALLS
            and case.symptom in configuration_symptoms
        ):
            opening_hour_by_case[case.queue_arn, case.symptom] = case.opened_at.hour
    current_hour = context.now.hour
    due_findings = [
        finding
        for finding in findings
        if opening_hour_by_case.get((finding.queue_arn, finding.symptom), current_hour)
        == current_hour
    ]
    topic_by_finding = map_topics(
        finding for finding in due_findings if finding.symptom in configuration_symptoms
    )
    finding_topics = [topic_by_finding[finding] for finding in sorted(topic_by_finding)]
    admitted_topics = (
        context.scan_store.admit_faults(finding_topics, context.now)
        if finding_topics
        else frozenset()
    )
    return [
        finding
        for finding in due_findings
        if finding not in topic_by_finding or topic_by_finding[finding] in admitted_topics
    ]


def _is_mass_symptom(
    symptom: Symptom,
    findings: Iterable[Finding],
    mode_by_arn: Mapping[str, Mode],
    context: ScanContext,
) -> bool:
    """Store which queues show a symptom. Return True if it is a mass symptom: many queues show it.

    Faults in configurations are not stored and give False (rule 6).
    """
    queue_arns = [finding.queue_arn for finding in findings if finding.symptom == symptom.name]
    if not queue_arns or symptom.is_of_configuration:
        return False
    spread = context.case_store.note_spread(queue_arns, symptom.name, context.now)
    return (
        explain_mass_symptom(Reach.count_among(spread, mode_by_arn), context.settings.limits)
        is not None
    )


def _call_heal(findings: Sequence[Finding], context: ScanContext) -> None:
    try:
        context.clients.functions.invoke(
            FunctionName=context.settings.heal_function,
            InvocationType="Event",
            Payload=make_heal_request(findings),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"heal could not be called: {error}") from error


def _store_baselines(
    result: ScanResult, listing: QueueListing, symptoms: Sequence[Symptom], context: ScanContext
) -> ScanResult:
    """Store the new baselines of healthy queues (rule 8).

    Return `result`. If baselines could not be stored, the error is added to it.
    """
    tolerated_symptoms = _ToleratedSymptoms.select_from(symptoms)
    faults_by_arn = _find_faults(result, tolerated_symptoms)
    healthy_arns_by_shard = defaultdict[str, list[str]](list)
    for arn in result.configuration_by_arn.keys() - result.error_by_target.keys():
        if faults_by_arn[arn] <= tolerated_symptoms.harmless_symptoms:
            healthy_arns_by_shard[shard_of(arn)].append(arn)
    try:
        for shard, healthy_arns in sorted(healthy_arns_by_shard.items()):
            stored_note_by_queue_name = context.scan_store.read_baseline_notes(shard)
            new_note_by_queue_name: dict[str, BaselineNote] = {}
            for arn in healthy_arns:
                queue_name = parse_queue_arn(arn).name
                configuration = result.configuration_by_arn[arn]
                new_note = make_baseline_note(configuration, faults_by_arn[arn], context.now)
                stored_note = stored_note_by_queue_name.get(queue_name)
                must_store = (
                    must_store_baseline(new_note, stored_note) and context.has_time_for_more
                )
                if (
                    must_store
                    and _find_recent_symptoms(arn, context) <= tolerated_symptoms.all_symptoms
                ):
                    context.baselines.put(arn, configuration, context.now)
                    new_note_by_queue_name[queue_name] = new_note
            if new_note_by_queue_name:
                kept_note_by_queue_name = _drop_notes_of_unlisted_queues(
                    stored_note_by_queue_name, listing
                )
                context.scan_store.store_baseline_notes(
                    shard, {**kept_note_by_queue_name, **new_note_by_queue_name}
                )
    except CaseStoreUnavailable as error:
        return replace(result, error_by_target={**result.error_by_target, "baselines": error})
    return result


class _ToleratedSymptoms(NamedTuple):
    """Symptoms that do not make a queue unhealthy, so that its baseline may be stored.

    Attributes:
        harmless_symptoms: Symptoms with which a queue still works: faults in the configuration, and
            symptoms without a plan.
        not_yet_harmful_symptoms: Symptoms that do no harm yet, or only cost money
            (`is_measured_last`).
    """

    harmless_symptoms: frozenset[str]
    not_yet_harmful_symptoms: frozenset[str]

    @classmethod
    def select_from(cls, symptoms: Iterable[Symptom]) -> _ToleratedSymptoms:
        harmless_symptoms: set[str] = set()
        not_yet_harmful_symptoms: set[str] = set()
        for symptom in symptoms:
            if symptom.plan is None or symptom.is_of_configuration:
                harmless_symptoms.add(symptom.name)
            if symptom.detection and symptom.detection.is_measured_last:
                not_yet_harmful_symptoms.add(symptom.name)
        return cls(frozenset(harmless_symptoms), frozenset(not_yet_harmful_symptoms))

    @property
    def all_symptoms(self) -> frozenset[str]:
        return self.harmless_symptoms | self.not_yet_harmful_symptoms


def _find_faults(
    result: ScanResult, tolerated_symptoms: _ToleratedSymptoms
) -> defaultdict[str, set[str]]:
    """Return the symptoms that were found, by the ARN of the queue and of each of its sources.

    Symptoms that do no harm yet, or only cost money, are left out.
    """
    faults_by_arn = defaultdict[str, set[str]](set)
    for finding in result.findings:
        for arn in (finding.queue_arn, *finding.source_arns):
            faults_by_arn[arn].update(
                {finding.symptom} - tolerated_symptoms.not_yet_harmful_symptoms
            )
    return faults_by_arn


def _drop_notes_of_unlisted_queues(
    note_by_queue_name: Mapping[str, BaselineNote], listing: QueueListing
) -> dict[str, BaselineNote]:
    """Return the notes about baselines without those of queues that are not listed any more.

    If some queues could not be listed, return all notes.
    """
    listed_queue_names = {queue.name for queue in listing.queues}
    return {
        queue_name: note
        for queue_name, note in note_by_queue_name.items()
        if queue_name in listed_queue_names or listing.error_by_pattern
    }


def _find_recent_symptoms(queue_arn: str, context: ScanContext) -> set[str]:
    """Return the symptoms with an open or lately ended case on the queue.

    A case has ended lately if it ended in the last day, and not in state CLOSED. If a case cannot
    be read, return only the word `unreadable`.
    """
    recent_since = context.now - QUIET_TIME_AFTER_FAILURES
    with suppress(CaseStoreUnreadable):
        symptoms: set[str] = set()
        for case in context.open_cases.list_newest_cases([queue_arn]):
            has_ended_recently = case.at > recent_since and case.state is not State.CLOSED
            if case.state not in FINAL_STATES or has_ended_recently:
                symptoms.add(case.symptom)
        return symptoms
    return {"unreadable"}


# S3 says AccessDenied if there is no object and the role may not list the bucket, as here.
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
_NO_OBJECT_CODES = ("NoSuchKey", "AccessDenied")


def _store_results(
    result: ScanResult, listing: QueueListing, stretch: Stretch, context: ScanContext
) -> None:
    """Add this run's results to the round's object in the case bucket (rule 9).

    The first run of a round replaces the object, and so does a run that finds none or a broken one.
    A later run finds none if the run before it failed before it stored its results.
    """
    managed_arns = (queue.queue_arn for queue in listing.queues)
    document = add_managed_queues(
        result.document(context.now), managed_arns, is_listing_complete=not listing.error_by_pattern
    )
    if not stretch.is_first:
        document = _merge_into_stored_document(document, stretch.hour, context.case_bucket)
    context.case_bucket.put(findings_key(stretch.hour), document)


def _merge_into_stored_document(
    document: dict[str, Any], hour: datetime, bucket: CaseBucket
) -> dict[str, Any]:
    """Return the round's stored document with this run's results added.

    Return `document` alone if none is stored, or if the stored one is broken or cannot be written
    again: a forged object must not stop every scan. Raises botocore's errors.
    """
    try:
        merged_document = merge_documents(read_findings_document(hour, bucket), document)
        # Python reads whole numbers of 4,300 digits and does not write longer ones, such as a sum.
        to_json(merged_document, sort_keys=True)
    except items.DECODE_ERRORS:
        return document
    except ClientError as error:
        if error_code_of(error) in _NO_OBJECT_CODES:
            return document
        raise
    return merged_document
