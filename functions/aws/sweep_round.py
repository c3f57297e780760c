"""One hour's round over the managed queues: resumed where it stopped, handed to heal.

It opens no case and writes no queue: it notes how far symptoms have spread, and says where to
look. Two sweeps at once do no harm: what heal is told twice it decides once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import LedgerUnavailable, OwnerUnavailable
from functions.aws.findings_bucket import FindingsBucket
from functions.aws.ledger import Ledger
from functions.aws.managed_queues import Listing, ManagedQueue, listed_queues
from functions.aws.moves_by_name import MovesByName
from functions.aws.open_cases import OpenCase, OpenCases
from functions.aws.said_elsewhere import spoken_for
from functions.aws.sweep import Allowance, sweep
from functions.aws.sweep_ledger import Stretch, SweepLedger
from functions.aws.sweep_looks import Paces, SweepLooks, open_about
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.advance import WATCHED
from functions.healing.guardrails import are_many
from functions.healing.managed import Consent
from functions.healing.retention_clock import most_urgent_first
from functions.healing.spread import Reach
from functions.healing.sweeping import (
    Finding,
    Swept,
    added_to,
    calls_about,
    fewer_of_many,
    request_about,
    share_of_the_day,
    together,
    waiting,
    with_managed,
)
from functions.settings import SweepSettings

# What measuring the suspects and handing over may take; by then no further queue is begun with.
SECONDS_TO_MEASURE = 300
SECONDS_TO_HAND_OVER = 60


@dataclass(frozen=True)
class SweepDesk:
    """One invocation of the sweep; `owner` is its own token."""

    clients: Clients
    settings: SweepSettings
    owner: str
    now: datetime
    remaining_seconds: Callable[[], float]
    paces: Paces

    @property
    def consent(self) -> Consent:
        return self.settings.consent

    @property
    def sweep_ledger(self) -> SweepLedger:
        return SweepLedger(self.clients.dynamodb, self.settings.ledger_table, self.owner)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def findings(self) -> FindingsBucket:
        return FindingsBucket(self.clients.s3, self.settings.case_bucket)

    @property
    def looks(self) -> SweepLooks:
        about = open_about(self.open_cases.by_due)
        return SweepLooks(
            self.clients,
            self.now,
            self.settings.timing,
            about,
            noted_moves=lambda: self.moves_by_name.into(self.now),
            newest_about=self.open_cases.newest_about,
            consent=self.consent,
            paces=self.paces,
        )

    @property
    def open_cases(self) -> OpenCases:
        return OpenCases(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def moves_by_name(self) -> MovesByName:
        return MovesByName(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def allowance(self) -> Allowance:
        most = share_of_the_day(self.settings.limits.sweep_metrics_per_day, self.now)
        return Allowance(
            may_look=lambda: self.remaining_seconds() > SECONDS_TO_MEASURE,
            may_measure=lambda metrics: (
                self.remaining_seconds() > SECONDS_TO_HAND_OVER
                and self.sweep_ledger.spend(metrics, most, self.now)
            ),
        )


def sweep_round(desk: SweepDesk, symptoms: Sequence[Symptom] = CATALOGUE) -> Swept | None:
    """What this stretch of the hour's round found; None where there is nothing left to do.

    Raises FactsUnavailable, LedgerUnavailable, OwnerUnavailable or the bucket's error: then the
    stretch is let go and not noted as done, and the next sweep begins with it again.
    """
    stretch = desk.sweep_ledger.begin(desk.now)
    if stretch is None:
        return None
    try:
        return _swept(stretch, desk, symptoms)
    except Exception:
        with suppress(LedgerUnavailable):
            desk.sweep_ledger.end(stretch, stretch.after, done=False)
        raise


def _swept(stretch: Stretch, desk: SweepDesk, symptoms: Sequence[Symptom]) -> Swept:
    listing = listed_queues(desk.clients, desk.settings.account, desk.consent)
    managed = listing.queues
    queues = [each for each in managed if each.name > stretch.after]
    looks = desk.looks
    begun = Swept(failed=listing.failed)
    swept = reduce(together, sweep(queues, looks, desk.allowance, symptoms), begun)
    if swept.findings:
        desk.moves_by_name.note(looks.moves_by_name(), desk.now)
    _hand_over(swept, managed, symptoms, looks, desk)
    _put_down(swept, listing, stretch, desk)
    done = not queues or swept.after == queues[-1].name
    desk.sweep_ledger.end(stretch, swept.after or stretch.after, done=done)
    return swept


def _hand_over(
    swept: Swept,
    managed: Sequence[ManagedQueue],
    symptoms: Iterable[Symptom],
    looks: SweepLooks,
    desk: SweepDesk,
) -> None:
    """Everything is noted before heal hears of the first, so that it sees what is everybody's."""
    by_name = {each.name: each for each in symptoms if each.plan}
    open_cases = desk.open_cases.by_due()
    spoken = spoken_for(swept.findings, managed, open_cases, desk.consent)
    waits = waiting(spoken, {name: each.gives_way_to for name, each in by_name.items()})
    findings = [e for e in spoken if e.symptom in by_name and e not in waits]
    new = _not_noted_today(findings, by_name, open_cases, desk.now)
    told = list(_at_their_pace(new, by_name, desk))
    managed_arns = frozenset(each.queue_arn for each in managed)
    many = [name for name in by_name if _is_mass(by_name[name], told, managed_arns, desk)]
    handed = most_urgent_first(fewer_of_many(told, many), lambda each: each.seconds_left)
    paid = [each for each in handed if _can_be_measured(each, by_name[each.symptom], looks, desk)]
    for findings_of_a_call in calls_about(paid):
        _call_heal(findings_of_a_call, desk)


def _not_noted_today(
    findings: Iterable[Finding],
    by_name: Mapping[str, Symptom],
    open_cases: Iterable[OpenCase],
    now: datetime,
) -> list[Finding]:
    """A fault in configuration whose case waits for a person is noted in one round of the day."""
    slow = {name for name, each in by_name.items() if each.is_of_configuration}
    waiting_since = {
        (each.queue_arn, each.symptom): each.opened_at
        for each in open_cases
        if each.state not in WATCHED and each.symptom in slow
    }
    return [
        each
        for each in findings
        for since in (waiting_since.get((each.queue_arn, each.symptom)),)
        if since is None or since.hour == now.hour
    ]


def _can_be_measured(
    finding: Finding, symptom: Symptom, looks: SweepLooks, desk: SweepDesk
) -> bool:
    """Heal measures again what it hears of; of what nobody has measured yet only while it fits."""
    metrics = looks.metrics_asked_again(finding.queue_arn, symptom.every_need)
    if metrics and symptom.is_of_configuration:
        return desk.allowance.may_measure(metrics)
    desk.sweep_ledger.note_spent(metrics, desk.now)
    return True


def _at_their_pace(
    findings: Sequence[Finding], by_name: Mapping[str, Symptom], desk: SweepDesk
) -> Iterator[Finding]:
    """Of faults in configurations a few a day; of everything else, all."""
    slow = {name for name, each in by_name.items() if each.is_of_configuration}
    topics = [each.topic for each in sorted(findings) if each.symptom in slow]
    admitted = desk.sweep_ledger.admit(topics, desk.now) if topics else frozenset()
    for each in findings:
        if each.symptom not in slow or each.topic in admitted:
            yield each


def _is_mass(
    symptom: Symptom, told: Iterable[Finding], managed: frozenset[str], desk: SweepDesk
) -> bool:
    queue_arns = [each.queue_arn for each in told if each.symptom == symptom.name]
    if not queue_arns or symptom.is_of_configuration:
        return False
    spread = desk.ledger.spread_to(queue_arns, symptom.name, desk.now)
    reach = Reach.among(spread, managed)
    return are_many(len(reach.queue_arns), reach.managed_queues, desk.settings.limits)


def _call_heal(findings: Sequence[Finding], desk: SweepDesk) -> None:
    try:
        desk.clients.functions.invoke(
            FunctionName=desk.settings.heal_function,
            InvocationType="Event",
            Payload=request_about(findings).encode(),
        )
    except (ClientError, BotoCoreError) as error:
        raise OwnerUnavailable(f"heal could not be called: {error}") from error


def _put_down(swept: Swept, listing: Listing, stretch: Stretch, desk: SweepDesk) -> None:
    """With the managed queues: the night can tell by them why a queue has no case."""
    arns = (each.queue_arn for each in listing.queues)
    document = with_managed(swept.document(desk.now), arns, whole=not listing.failed)
    if not stretch.is_first:
        document = added_to(desk.findings.get(stretch.hour), document)
    desk.findings.put(stretch.hour, document)
