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
   the queues, the next hour's first run scans the other half, and then that hour's round begins at
   the first queue. So a queue is scanned late, but is never left out because of its name.

4. A run that fails releases its claim and does not store a new position; the next run repeats its
   part. A finding may then be sent to heal twice. That is harmless: heal reads the queue again, and
   finds the case that is open by then. The other order would lose findings.

5. A round whose first run could read no queue at all begins again with the next run: a missing
   permission or an outage must not count as a scan. This holds for the first run only. Otherwise a
   few queues that refuse Mendq, at the end of the list, would keep every round from ending.

6. All queues that show a symptom are stored (`note_spread`) before heal is called for the first
   time. A symptom that many queues show at once (a mass symptom) has a common cause, and heal then
   changes nothing. If heal were called queue by queue, it would change the first few before it
   could see that. Faults in configurations are left out (`_is_mass`): many queues may have had one
   for long, so their number does not show a common cause.

7. Heal and people are not flooded. At most NEW_FAULTS_A_DAY (`selection.py`) new faults in
   configurations are sent to heal in a day. If many queues show a symptom, only MOST_IN_A_CALL of
   them (`mendq/cases/finding.py`) are sent, in one call of heal. The most urgent findings are sent
   first. If another symptom of the queue explains a finding, the finding waits. Metrics that heal
   will read again count in the scan's budget; if the budget is spent, only faults in
   configurations wait.

8. A baseline, the configuration of a healthy queue, is stored only if everything on the queue was
   checked (rule 6 of `scan.py`), the scan found no fault, and no case is open or ended unresolved
   within the day. Tolerated symptoms (`_ToleratedSymptoms`) count neither as a fault nor as a case:
   faults in the configuration, those without a plan, and those that merely cost money. But a
   changed configuration that has a new fault is not stored (`is_new`). If baselines cannot be
   stored, the run reports that and continues.

9. A round's results are one object in the case bucket; each run adds its part. It lists all managed
   queues, so that the nightly job can tell why an incident has no case.

This module does not decide what to do about a finding, and writes to no queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable, OwnerUnavailable
from mendq.aws.queue import Listing, ManagedQueue, list_readable_queues
from mendq.cases import items
from mendq.cases.context import StoreContext
from mendq.cases.finding import (
    Finding,
    ScanResult,
    add_managed_queues,
    find_waiting,
    findings_key,
    group_into_calls,
    limit_mass_findings,
    make_request,
    merge_documents,
    merge_results,
    metrics_allowed_until,
)
from mendq.cases.seen_moves import SeenMoves
from mendq.cases.spread import Reach
from mendq.cases.table import OpenCase
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.time_left import sort_by_urgency
from mendq.catalogue.symptom import Symptom
from mendq.heal.guardrails import explain_mass_symptom
from mendq.model.case import FINAL_STATES, State
from mendq.model.facts import Need
from mendq.model.lifecycle import QUIET_TIME_AFTER_FAILURES, STATES_ENDED_BY_FAILED_CALLS
from mendq.model.mode import Mode
from mendq.model.queue import parts_of
from mendq.model.settings import ScanSettings
from mendq.scan.reader import Paces, ScanReader, reader_in
from mendq.scan.scan import Allowance, scan
from mendq.scan.selection import merge_shared_findings
from mendq.scan.store import (
    Noted,
    ScanStore,
    Stretch,
    as_noted,
    findings_of,
    is_new,
    note_answers,
    recall_answers,
    shard_of,
)

# The position before the first queue of a round that has results already. It sorts before the name
# of every queue. It is not empty, because an empty position means that nothing was stored yet.
BEGINNING = " "
# Seconds that are kept for measuring suspects, and for calling heal (rule 2).
SECONDS_TO_MEASURE = 300
SECONDS_TO_DELIVER = 60


class ScanContext(StoreContext, frozen=True, kw_only=True):
    """The data and clients of a run of the scan: settings, remaining time and rate limits."""

    settings: ScanSettings
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def scan_store(self) -> ScanStore:
        return ScanStore(self.clients.dynamodb, self.settings.case_table, self.owner)

    def reader(self, hour: datetime, managed: Container[str]) -> ScanReader:
        """Return the run's reader. It reuses some of AWS's answers to the last hour's scan."""
        made = reader_in(self, self.settings.consent, self.paces)
        return structs.replace(made, recalled=recall_answers(hour, self.case_bucket, managed))

    @property
    def may_begin(self) -> bool:
        """True if there is time for other work besides calling heal at the end."""
        return self.remaining_seconds() > SECONDS_TO_DELIVER

    @property
    def allowance(self) -> Allowance:
        """The limits of this run: its time, and the day's metrics up to this hour."""
        most = metrics_allowed_until(self.settings.limits.scan_metrics_per_day, self.now)
        return Allowance(
            may_look=lambda: self.remaining_seconds() > SECONDS_TO_MEASURE,
            may_measure=lambda metrics: (
                self.may_begin and self.scan_store.spend(metrics, most, self.now)
            ),
        )


def scan_hourly(context: ScanContext, symptoms: Sequence[Symptom] = CATALOGUE) -> ScanResult | None:
    """Do one run of the hourly scan.

    Returns:
        The results of this run. None if the hour's round is done or another run has claimed it.

    Raises:
        FactsUnavailable: if the queues cannot be listed.
        CaseStoreUnavailable: if the case store does not answer.
        OwnerUnavailable: if heal cannot be called.
        ClientError, BotoCoreError: if the results cannot be stored.
    """
    stretch = context.scan_store.begin(context.now)
    if stretch is None:
        return None
    try:
        return _run(stretch, context, symptoms)
    except Exception:
        with suppress(CaseStoreUnavailable):
            context.scan_store.end(stretch, stretch.after, done=False)  # rule 4
        raise


def _run(stretch: Stretch, context: ScanContext, symptoms: Sequence[Symptom]) -> ScanResult:
    listing = list_readable_queues(
        context.clients, context.settings.account, context.settings.consent
    )
    managed = listing.queues
    queues = [queue for queue in managed if queue.name > stretch.after]
    managed_arns = {queue.queue_arn for queue in managed}
    reader = context.reader(stretch.hour, managed_arns)
    scanned = ScanResult(failed=listing.failed)
    for part in scan(queues, reader, context.allowance, symptoms):
        scanned = merge_results(scanned, part)
    moves = {symptom.name for symptom in symptoms if Need.MOVE_TASKS in symptom.every_need}
    if any(finding.symptom in moves for finding in scanned.findings):
        context.stored(SeenMoves).note(reader.moves_by_name(), context.now)
    _deliver(scanned, managed, symptoms, reader, context)
    # A DLQ that Mendq made may be unmanaged. Mendq keeps no baseline for it.
    looked_at = {arn: queue for arn, queue in scanned.looked_at.items() if arn in managed_arns}
    scanned = replace(scanned, looked_at=looked_at)
    scanned = _note_baselines(scanned, listing, symptoms, context)
    _store_results(scanned, listing, stretch, context)
    note_answers(stretch, context.case_bucket, reader.retained, managed_arns)
    position = next_position(stretch, scanned, queues)
    context.scan_store.end(stretch, position.after, done=position.done)
    return scanned


class Position(NamedTuple):
    """The position at the end of a run.

    Attributes:
        after: The name of the queue after which the next run continues.
        done: True if the hour's round is done.
    """

    after: str
    done: bool


def next_position(
    stretch: Stretch, scanned: ScanResult, queues: Sequence[ManagedQueue]
) -> Position:
    """Return the position to store at the end of a run (rules 2, 3 and 5).

    Args:
        stretch: The part of the round that this run had claimed.
        scanned: The results of this run.
        queues: The queues of the stretch, by name.
    """
    if stretch.is_first and scanned.is_blind:
        return Position(stretch.after, done=False)
    after = scanned.after or stretch.after
    if queues and scanned.after != queues[-1].name:
        return Position(after, done=False)
    if stretch.is_left:
        # The last hour's queues are done. This hour's round begins at the first queue.
        return Position(BEGINNING, done=False)
    return Position(after, done=True)


def _deliver(
    scanned: ScanResult,
    managed: Sequence[ManagedQueue],
    symptoms: Iterable[Symptom],
    reader: ScanReader,
    context: ScanContext,
) -> None:
    """Select findings and send them to the heal Lambda (rules 6 and 7)."""
    by_name = {symptom.name: symptom for symptom in symptoms if symptom.plan}
    open_cases = context.open_cases.list_open()
    merged = merge_shared_findings(scanned.findings, managed, open_cases, context.settings.consent)
    gives_way_to = {name: symptom.gives_way_to for name, symptom in by_name.items()}
    waits = find_waiting(merged, gives_way_to)
    findings = [
        finding for finding in merged if finding.symptom in by_name and finding not in waits
    ]
    slow = {name for name, symptom in by_name.items() if symptom.is_of_configuration}
    announced = _keep_pace(findings, slow, open_cases, context)
    modes = {queue.queue_arn: queue.mode for queue in managed}
    many = [name for name in by_name if _is_mass(by_name[name], announced, modes, context)]
    few = limit_mass_findings(announced, many)
    urgent_first = sort_by_urgency(few, lambda finding: finding.seconds_left)
    paid = [
        finding
        for finding in urgent_first
        if _can_be_measured(finding, by_name[finding.symptom], reader, context)
    ]
    for findings_of_a_call in group_into_calls(paid):
        _call_heal(findings_of_a_call, context)


def _can_be_measured(
    finding: Finding, symptom: Symptom, reader: ScanReader, context: ScanContext
) -> bool:
    """Count the metrics that heal will read for a finding in the budget.

    Return False if the budget is spent and the finding must wait. Only a fault in the configuration
    waits. For other findings the scan has read billed metrics already.
    """
    metrics = reader.metrics_asked_again(finding.queue_arn, symptom.every_need)
    if metrics and symptom.is_of_configuration:
        return context.allowance.may_measure(metrics)
    context.scan_store.note_spent(metrics, context.now)
    return True


def _keep_pace(
    findings: Sequence[Finding],
    slow: Collection[str],
    open_cases: Iterable[OpenCase],
    context: ScanContext,
) -> list[Finding]:
    """Return the findings to send now. Of new faults in configurations, return only a few per day.

    The symptoms in `slow` are faults in configurations. If such a fault has an open case that waits
    for a person, its finding is returned only in the hour of the day in which the case opened.
    """
    hour_of_case: dict[tuple[str, str], int] = {}
    for case in open_cases:
        if case.state not in STATES_ENDED_BY_FAILED_CALLS and case.symptom in slow:
            hour_of_case[case.queue_arn, case.symptom] = case.opened_at.hour
    hour = context.now.hour
    due = [
        finding
        for finding in findings
        if hour_of_case.get((finding.queue_arn, finding.symptom), hour) == hour
    ]
    topics = [finding.topic for finding in sorted(due) if finding.symptom in slow]
    admitted = context.scan_store.admit(topics, context.now) if topics else frozenset()
    return [finding for finding in due if finding.symptom not in slow or finding.topic in admitted]


def _is_mass(
    symptom: Symptom,
    announced: Iterable[Finding],
    managed: Mapping[str, Mode],
    context: ScanContext,
) -> bool:
    """Store which queues show a symptom. Return True if so many do that it is a mass symptom.

    Faults in configurations are not stored and give False (rule 6).
    """
    queue_arns = [finding.queue_arn for finding in announced if finding.symptom == symptom.name]
    if not queue_arns or symptom.is_of_configuration:
        return False
    spread = context.case_store.note_spread(queue_arns, symptom.name, context.now)
    return explain_mass_symptom(Reach.among(spread, managed), context.settings.limits) is not None


def _call_heal(findings: Sequence[Finding], context: ScanContext) -> None:
    try:
        context.clients.functions.invoke(
            FunctionName=context.settings.heal_function,
            InvocationType="Event",
            Payload=make_request(findings),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"heal could not be called: {error}") from error


def _note_baselines(
    scanned: ScanResult, listing: Listing, symptoms: Sequence[Symptom], context: ScanContext
) -> ScanResult:
    """Store the new baselines of healthy queues (rule 8).

    Return `scanned`. If baselines could not be stored, the error is added to it.
    """
    tolerated = _ToleratedSymptoms.of(symptoms)
    faults = _find_faults(scanned, tolerated)
    healthy_of_shard = defaultdict[str, list[str]](list)
    for arn in scanned.looked_at.keys() - scanned.failed.keys():
        if faults[arn] <= tolerated.works_with:
            healthy_of_shard[shard_of(arn)].append(arn)
    try:
        for shard, arns in sorted(healthy_of_shard.items()):
            before = context.scan_store.noted_baselines(shard)
            noted: dict[str, Noted] = {}
            for arn in arns:
                name = parts_of(arn).name
                configuration = scanned.looked_at[arn]
                now = as_noted(configuration, faults[arn], context.now)
                is_due = is_new(now, before.get(name)) and context.may_begin
                if is_due and _find_recent_symptoms(arn, context) <= tolerated.all:
                    context.baselines.put(arn, configuration, context.now)
                    noted[name] = now
            if noted:
                kept = _without_gone_queues(before, listing)
                context.scan_store.note_baselines(shard, {**kept, **noted})
    except CaseStoreUnavailable as error:
        return replace(scanned, failed={**scanned.failed, "baselines": error})
    return scanned


class _ToleratedSymptoms(NamedTuple):
    """Symptoms that do not make a queue unhealthy, so that its baseline may be stored.

    Attributes:
        works_with: Symptoms with which a queue still works: faults in the configuration, and
            symptoms without a plan.
        of_cost: Symptoms that only cost money.
    """

    works_with: frozenset[str]
    of_cost: frozenset[str]

    @classmethod
    def of(cls, symptoms: Iterable[Symptom]) -> _ToleratedSymptoms:
        works_with: set[str] = set()
        of_cost: set[str] = set()
        for symptom in symptoms:
            if symptom.plan is None or symptom.is_of_configuration:
                works_with.add(symptom.name)
            if symptom.detection and symptom.detection.measured_last:
                of_cost.add(symptom.name)
        return cls(frozenset(works_with), frozenset(of_cost))

    @property
    def all(self) -> frozenset[str]:
        return self.works_with | self.of_cost


def _find_faults(scanned: ScanResult, tolerated: _ToleratedSymptoms) -> defaultdict[str, set[str]]:
    """Return the symptoms that were found, by the ARN of the queue and of each of its sources.

    Symptoms that only cost money are left out.
    """
    faults = defaultdict[str, set[str]](set)
    for finding in scanned.findings:
        for arn in (finding.queue_arn, *finding.sources):
            faults[arn].update({finding.symptom} - tolerated.of_cost)
    return faults


def _without_gone_queues(before: Mapping[str, Noted], listing: Listing) -> dict[str, Noted]:
    """Return the noted baselines without those of queues that are not listed any more.

    If some queues could not be listed, return all.
    """
    names = {queue.name for queue in listing.queues}
    return {name: note for name, note in before.items() if name in names or listing.failed}


def _find_recent_symptoms(queue_arn: str, context: ScanContext) -> set[str]:
    """Return the symptoms of cases that are open, or ended in the last day in another state than
    CLOSED.

    Return the word `unreadable` in place of symptoms if a case cannot be read.
    """
    since = context.now - QUIET_TIME_AFTER_FAILURES
    with suppress(CaseStoreUnreadable):
        symptoms: set[str] = set()
        for case in context.open_cases.list_newest_cases([queue_arn]):
            ended_lately = case.at > since and case.state is not State.CLOSED
            if case.state not in FINAL_STATES or ended_lately:
                symptoms.add(case.symptom)
        return symptoms
    return {"unreadable"}


def _store_results(
    scanned: ScanResult, listing: Listing, stretch: Stretch, context: ScanContext
) -> None:
    """Add this run's results to the round's object in the case bucket (rule 9)."""
    arns = (queue.queue_arn for queue in listing.queues)
    document = add_managed_queues(scanned.document(context.now), arns, whole=not listing.failed)
    if not stretch.is_first:
        with suppress(*items.DECODE_ERRORS):  # a forged object must not stop every scan
            document = merge_documents(findings_of(stretch.hour, context.case_bucket), document)
    context.case_bucket.put(findings_key(stretch.hour), document)
