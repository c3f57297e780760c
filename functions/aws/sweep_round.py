"""One hour's round over the managed queues: resumed where it stopped, handed to heal.

It opens no case and writes no queue: it notes how far symptoms have spread, and says where to
look. Two sweeps at once do no harm: what heal is told twice it decides once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import reduce

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.errors import LedgerUnavailable, OwnerUnavailable
from functions.aws.managed_queues import Listing, ManagedQueue, listed_queues
from functions.aws.open_cases import OpenCase
from functions.aws.said_elsewhere import spoken_for
from functions.aws.sweep import sweep
from functions.aws.sweep_desk import SweepDesk
from functions.aws.sweep_ledger import Stretch
from functions.aws.sweep_looks import SweepLooks
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.advance import WATCHED
from functions.healing.guardrails import are_many
from functions.healing.retention_clock import most_urgent_first
from functions.healing.spread import Reach
from functions.healing.sweeping import (
    Finding,
    Swept,
    added_to,
    calls_about,
    fewer_of_many,
    request_about,
    together,
    waiting,
    with_managed,
)


def sweep_round(desk: SweepDesk, symptoms: Sequence[Symptom] = CATALOGUE) -> Swept | None:
    """What this stretch of the hour's round found; None where there is nothing left to do.

    A round that sees nothing of any queue is put down and begun again by the next sweep.
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
    if stretch.is_first and swept.is_blind:
        desk.sweep_ledger.end(stretch, stretch.after, done=False)
        return swept
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
