"""Scan the managed queues once an hour: resume, hand findings to heal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import reduce
from itertools import groupby

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable, OwnerUnavailable
from mendq.aws.queue import Listing, ManagedQueue, listed_queues
from mendq.cases import items
from mendq.cases.context import MovesByName, StoreContext
from mendq.cases.finding import (
    Finding,
    Scanned,
    added_to,
    calls_about,
    fewer_of_many,
    findings_key,
    request_about,
    share_of_the_day,
    together,
    waiting,
    with_managed,
)
from mendq.cases.table import OpenCase
from mendq.cases.view import Reach
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.time_left import most_urgent_first
from mendq.catalogue.symptom import Symptom
from mendq.heal.guardrails import why_many
from mendq.heal.repeats import spoken_for
from mendq.model.case import FINAL, State
from mendq.model.facts import Need
from mendq.model.lifecycle import A_QUIET_DAY, WATCHED
from mendq.model.limits import Mode
from mendq.model.queue import parts_of
from mendq.model.settings import ScanSettings
from mendq.scan.reader import Paces, ScanReader, reader_in
from mendq.scan.scan import Allowance, scan
from mendq.scan.store import (
    Noted,
    ScanStore,
    Stretch,
    as_noted,
    findings_of,
    is_new,
    note_answers,
    recalled,
    shard_of,
)

# Before every name of a queue, and no name itself.
BEGINNING = " "
# What measuring the suspects and handing over may take; by then no further queue is begun with.
SECONDS_TO_MEASURE = 300
SECONDS_TO_DELIVER = 60


class ScanContext(StoreContext, frozen=True, kw_only=True):
    """One invocation of the scan, and how far it may go."""

    settings: ScanSettings
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def scan_store(self) -> ScanStore:
        return ScanStore(self.clients.dynamodb, self.settings.case_table, self.owner)

    def reader(self, hour: datetime, managed: Container[str]) -> ScanReader:
        made = reader_in(self, self.settings.consent, self.paces)
        return structs.replace(made, recalled=recalled(hour, self.case_bucket, managed))

    @property
    def may_begin(self) -> bool:
        return self.remaining_seconds() > SECONDS_TO_DELIVER

    @property
    def allowance(self) -> Allowance:
        most = share_of_the_day(self.settings.limits.scan_metrics_per_day, self.now)
        return Allowance(
            may_look=lambda: self.remaining_seconds() > SECONDS_TO_MEASURE,
            may_measure=lambda metrics: (
                self.may_begin and self.scan_store.spend(metrics, most, self.now)
            ),
        )


def scan_hourly(context: ScanContext, symptoms: Sequence[Symptom] = CATALOGUE) -> Scanned | None:
    """What this stretch of the hour's round found; None where there is nothing left to do.

    A round that sees nothing of any queue is put down and begun again by the next scan.
    Raises FactsUnavailable, CaseStoreUnavailable, OwnerUnavailable or the bucket's error: then the
    stretch is let go and not noted as done, and the next scan begins with it again.
    """
    stretch = context.scan_store.begin(context.now)
    if stretch is None:
        return None
    try:
        return _scanned(stretch, context, symptoms)
    except Exception:
        with suppress(CaseStoreUnavailable):
            context.scan_store.end(stretch, stretch.after, done=False)
        raise


def _scanned(stretch: Stretch, context: ScanContext, symptoms: Sequence[Symptom]) -> Scanned:
    listing = listed_queues(context.clients, context.settings.account, context.settings.consent)
    managed = listing.queues
    queues = [each for each in managed if each.name > stretch.after]
    theirs = {each.queue_arn for each in managed}
    reader = context.reader(stretch.hour, theirs)
    begun = Scanned(failed=listing.failed)
    scanned = reduce(together, scan(queues, reader, context.allowance, symptoms), begun)
    moves = {each.name for each in symptoms if Need.MOVE_TASKS in each.every_need}
    if any(each.symptom in moves for each in scanned.findings):
        context.stored(MovesByName).note(reader.moves_by_name(), context.now)
    _deliver(scanned, managed, symptoms, reader, context)
    # A DLQ that Mendq made may be unmanaged. Mendq keeps no baseline for it.
    looked_at = {arn: each for arn, each in scanned.looked_at.items() if arn in theirs}
    scanned = replace(scanned, looked_at=looked_at)
    scanned = _note_baselines(scanned, listing, symptoms, context)
    _put_down(scanned, listing, stretch, context)
    note_answers(stretch, context.case_bucket, reader.retained, theirs)
    again = stretch.is_first and scanned.is_blind
    ended = not again and (not queues or scanned.after == queues[-1].name)
    after = stretch.after if again else scanned.after or stretch.after
    # What comes before what was left still has its turn in this hour.
    done, after = ended and not stretch.is_left, BEGINNING if ended and stretch.is_left else after
    context.scan_store.end(stretch, after, done=done)
    return scanned


def _deliver(
    scanned: Scanned,
    managed: Sequence[ManagedQueue],
    symptoms: Iterable[Symptom],
    reader: ScanReader,
    context: ScanContext,
) -> None:
    """Everything is noted before heal hears of the first, so that it sees what is everybody's."""
    by_name = {each.name: each for each in symptoms if each.plan}
    open_cases = context.open_cases.list_open()
    spoken = spoken_for(scanned.findings, managed, open_cases, context.settings.consent)
    waits = waiting(spoken, {name: each.gives_way_to for name, each in by_name.items()})
    findings = [e for e in spoken if e.symptom in by_name and e not in waits]
    slow = {name for name, each in by_name.items() if each.is_of_configuration}
    announced = _at_their_pace(findings, slow, open_cases, context)
    modes = {each.queue_arn: each.mode for each in managed}
    many = [name for name in by_name if _is_mass(by_name[name], announced, modes, context)]
    handed = most_urgent_first(fewer_of_many(announced, many), lambda each: each.seconds_left)
    paid = [
        each for each in handed if _can_be_measured(each, by_name[each.symptom], reader, context)
    ]
    for findings_of_a_call in calls_about(paid):
        _call_heal(findings_of_a_call, context)


def _can_be_measured(
    finding: Finding, symptom: Symptom, reader: ScanReader, context: ScanContext
) -> bool:
    """Heal measures again what it hears of; of what nobody has measured yet only while it fits."""
    metrics = reader.metrics_asked_again(finding.queue_arn, symptom.every_need)
    if metrics and symptom.is_of_configuration:
        return context.allowance.may_measure(metrics)
    context.scan_store.note_spent(metrics, context.now)
    return True


def _at_their_pace(
    findings: Sequence[Finding],
    slow: Collection[str],
    open_cases: Iterable[OpenCase],
    context: ScanContext,
) -> list[Finding]:
    """Admit a few faults in configurations (`slow`) a day, and all of everything else.

    One whose case waits for a person is noted in one round of the day.
    """
    noted_at = {
        (each.queue_arn, each.symptom): each.opened_at.hour
        for each in open_cases
        if each.state not in WATCHED and each.symptom in slow
    }
    hour = context.now.hour
    due = [each for each in findings if noted_at.get((each.queue_arn, each.symptom), hour) == hour]
    topics = [each.topic for each in sorted(due) if each.symptom in slow]
    admitted = context.scan_store.admit(topics, context.now) if topics else frozenset()
    return [each for each in due if each.symptom not in slow or each.topic in admitted]


def _is_mass(
    symptom: Symptom,
    announced: Iterable[Finding],
    managed: Mapping[str, Mode],
    context: ScanContext,
) -> bool:
    queue_arns = [each.queue_arn for each in announced if each.symptom == symptom.name]
    if not queue_arns or symptom.is_of_configuration:
        return False
    spread = context.case_store.spread_to(queue_arns, symptom.name, context.now)
    return why_many(Reach.among(spread, managed), context.settings.limits) is not None


def _call_heal(findings: Sequence[Finding], context: ScanContext) -> None:
    try:
        context.clients.functions.invoke(
            FunctionName=context.settings.heal_function,
            InvocationType="Event",
            Payload=request_about(findings),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"heal could not be called: {error}") from error


def _note_baselines(
    scanned: Scanned, listing: Listing, symptoms: Sequence[Symptom], context: ScanContext
) -> Scanned:
    """Keep how queues are that are well, where that is new; why that failed counts as a failure.

    A fault that a queue works with is none here, unless it came since; what costs money is none.
    Nor is one well whose case is open, or came to nothing within the day: its calls may fail still.
    """
    of_cost = {each.name for each in symptoms if each.detection and each.detection.measured_last}
    works_with = {each.name for each in symptoms if each.plan is None or each.is_of_configuration}
    wrong = defaultdict[str, set[str]](set)
    for found in scanned.findings:
        for arn in (found.queue_arn, *found.sources):
            wrong[arn].update({found.symptom} - of_cost)
    try:
        whole = scanned.looked_at.keys() - scanned.failed.keys()
        well = [arn for arn in whole if wrong[arn] <= works_with]
        for shard, arns in groupby(sorted(well, key=shard_of), shard_of):
            before, noted = context.scan_store.noted_baselines(shard), dict[str, Noted]()
            for arn in arns:
                name, configuration = parts_of(arn).name, scanned.looked_at[arn]
                now = as_noted(configuration, wrong[arn], context.now)
                is_due = is_new(now, before.get(name)) and context.may_begin
                if is_due and _ill_lately(arn, context) <= works_with | of_cost:
                    context.baselines.put(arn, configuration, context.now)
                    noted[name] = now
            if noted:
                there = {each.name for each in listing.queues}
                still = {k: each for k, each in before.items() if k in there or listing.failed}
                context.scan_store.note_baselines(shard, {**still, **noted})
    except CaseStoreUnavailable as error:
        return replace(scanned, failed={**scanned.failed, "baselines": error})
    return scanned


def _ill_lately(queue_arn: str, context: ScanContext) -> set[str]:
    """The symptoms of its cases that are open, or of the last day's that nobody settled."""
    since = context.now - A_QUIET_DAY
    with suppress(CaseStoreUnreadable):
        return {
            each.symptom
            for each in context.open_cases.newest_about([queue_arn])
            if each.state not in FINAL or (each.at > since and each.state is not State.CLOSED)
        }
    return {"unreadable"}


def _put_down(scanned: Scanned, listing: Listing, stretch: Stretch, context: ScanContext) -> None:
    """With the managed queues: the nightly job can tell by them why a queue has no case."""
    arns = (each.queue_arn for each in listing.queues)
    document = with_managed(scanned.document(context.now), arns, whole=not listing.failed)
    if not stretch.is_first:
        with suppress(*items.NOT_OURS):  # else whoever may put objects there ends every round
            document = added_to(findings_of(stretch.hour, context.case_bucket), document)
    context.case_bucket.put(findings_key(stretch.hour), document)
