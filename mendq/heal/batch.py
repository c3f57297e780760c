"""Heal a batch: the one place that calls each step, from failed calls or findings to outcomes.

The steps, in this order. `mendq.heal.decide` explains why.

1. Group the failed calls by queue and symptom (`group_failed_calls`).
2. For each group, gather its history from the case store and decide before its queue is read.
3. For all groups with the same symptom, read their queues, and note which queues show it.
4. Decide each group by its queue's facts, and carry the decision out.
5. Send one notification for many queues, if it is a mass symptom, and one for a flood of names.

All queues of a symptom are noted before the first one is decided. Otherwise, the first queues of a
mass symptom would be changed. A group that fails never stops the others: its messages are delivered
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import Struct, field

from mendq.aws.errors import (
    CaseMoved,
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    ComeAgain,
    EventUnreadable,
    FactsUnavailable,
    NotificationNotSent,
    QueueRefusesUs,
)
from mendq.aws.queue import cached_managed_arns
from mendq.cases.aws_health import HealthEvent, HealthEvents, read_health
from mendq.cases.context import FixContext
from mendq.cases.finding import read_references
from mendq.cases.record import aws_health
from mendq.cases.spread import Reach
from mendq.catalogue import CATALOGUE, match
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.heal.apply import carry_out
from mendq.heal.decide import NeedsFacts, decide
from mendq.heal.gather import (
    Group,
    add_facts,
    add_reach,
    count_reach,
    gather_and_decide,
    gather_history,
)
from mendq.heal.guardrails import COINCIDENCE_QUEUES, SECONDS_TO_WRITE
from mendq.heal.outcome import Outcome, declined_outcome
from mendq.heal.situation import Situation
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.case import State
from mendq.model.failed_call import KNOWN_CODES, FailedCall, Unreadable, read
from mendq.model.ignored_calls import why_ignored
from mendq.model.limits import DRILL_TAG, mass_symptom_key
from mendq.model.names import PROBE, OwnMetric
from mendq.model.own_change import OwnChange
from mendq.model.queue import arn_of, arn_of_name, parts_of
from mendq.notifications import notification
from mendq.notifications.own_change import describe_own_changes
from mendq.probe.probe import EVENT_NAME, QUEUE_NAME
from mendq.probe.send import ProbeRecord

Answer = TypeVar("Answer")
# Records that are no failed call of SQS are not faults of the batch.
NOT_OURS = frozenset({"not_failed", "not_sqs"})
# Of the queue names in a batch that are not in the list of managed queues, this many are looked at.
# It takes a second or two.
MOST_UNKNOWN = 50
# A warm Lambda lists the managed queues at most once in this time.
LISTED_FOR = timedelta(minutes=5)
# Messages that wait, or cannot be read, are no faults. Neither is a case that another run moved
# first: runs that read the same burst do so.
NO_FAULTS = (CaseMoved, ComeAgain, EventUnreadable)


class BatchResult(Struct):
    """The groups of a batch, and the outcome of each.

    Attributes:
        groups: The ids of the messages of each group.
        unreadable: The messages that are no readable event.
        unknown_codes: The error codes that no symptom lists.
        ignored: The reasons why calls with a symptom were ignored.
        probes: Mendq's own failed calls, which count for nothing else.
        aws_health: AWS's own events about its health.
        failed_calls: How many failed calls were read.
        outcomes: The outcome of each group that was handled.
        errors: The error of each message that must be delivered again.
        left_out: By caller, how many queue names of a flood were not looked at.
    """

    groups: dict[Group, list[str]] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    unknown_codes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    probes: dict[str, FailedCall] = field(default_factory=dict)
    aws_health: dict[str, HealthEvent] = field(default_factory=dict)
    failed_calls: int = 0
    outcomes: dict[Group, Outcome] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def partial_failures(self) -> dict[str, list[dict[str, str]]]:
        """The answer to Lambda's poller: the messages that must be delivered again.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        """
        failures = [{"itemIdentifier": message_id} for message_id in self.errors]
        return {"batchItemFailures": failures}

    @property
    def faults(self) -> list[Exception]:
        """The errors that are faults, each once, however many messages it failed."""
        once = {id(error): error for error in self.errors.values()}
        return [error for error in once.values() if not isinstance(error, NO_FAULTS)]

    def counts_by_symptom(self) -> dict[OwnMetric, Counter[str]]:
        """Count fixes and refusals by symptom."""
        fixes, refusals = Counter[str](), Counter[str]()
        for group, outcome in self.outcomes.items():
            if outcome.case is not None and outcome.case.state is State.APPLIED:
                fixes[group.symptom.name] += 1
            if outcome.refusal is not None:
                refusals[group.symptom.name] += 1
        return {OwnMetric.AUTO_FIXES: fixes, OwnMetric.REFUSALS: refusals}

    def counts(self) -> dict[OwnMetric, int]:
        """Return the value of each metric: the content of the batch, and its outcomes."""
        by_symptom = self.counts_by_symptom()
        refusals = by_symptom[OwnMetric.REFUSALS].total()
        return {
            OwnMetric.FAILED_CALLS_SEEN: self.failed_calls,
            OwnMetric.UNKNOWN_ERROR_CODES: len(self.unknown_codes),
            OwnMetric.HEAL_ERRORS: len(self.faults),
            OwnMetric.AUTO_FIXES: by_symptom[OwnMetric.AUTO_FIXES].total(),
            OwnMetric.REFUSALS: refusals + len(self.ignored),
            OwnMetric.ESCALATIONS: sum(outcome.is_escalation for outcome in self.outcomes.values()),
        }

    def fail(self, groups: Iterable[Group], error: Exception) -> None:
        """Have the messages of these groups delivered again."""
        for group in groups:
            self.errors.update(dict.fromkeys(self.groups[group], error))

    def set_outcome(self, group: Group, outcome: Outcome) -> None:
        """Store the outcome of a group. If its refusal passes soon, deliver its messages again."""
        self.outcomes[group] = outcome
        if outcome.refusal and outcome.refusal.is_retried:
            self.fail([group], ComeAgain(outcome.refusal.reason))


def heal_failed_calls(bodies: Mapping[str, str], run: FixContext) -> BatchResult:
    """Heal the queues of a batch of failed calls. Never raise: the result keeps every error.

    Mendq's own probe and AWS's health events are recorded. No other action is taken on them.

    Args:
        bodies: The messages of the intake queue by id.
        run: This invocation.
    """
    batch = group_failed_calls(bodies, AccountAndRegion(run.settings.account, run.clients.region))
    _record_signals(batch, run)
    return _heal_groups(batch, run)


def heal_findings(request: Mapping[str, Any], run: FixContext) -> BatchResult:
    """Heal the queues in which a scan found a symptom. Never raise: the result keeps every error.

    A finding that names no queue or symptom of ours is left out. One that fails is not tried again:
    the next scan finds it again, or it is gone.

    Args:
        request: `{"found": [{"queue_arn", "symptom"}, ...]}`.
        run: This invocation.
    """
    symptoms = {
        symptom.name: symptom for symptom in CATALOGUE if symptom.plan and symptom.detection
    }
    batch = BatchResult()
    for finding in read_references(request):
        symptom = symptoms.get(finding.symptom)
        if symptom is None or not arn_of(finding.queue_arn) or not run.is_here(finding.queue_arn):
            continue
        group = Group(finding.queue_arn, symptom, is_found=True, shared=finding)
        batch.groups[group] = [str(len(batch.groups))]
    return _heal_groups(batch, run)


def group_failed_calls(bodies: Mapping[str, str], home: AccountAndRegion) -> BatchResult:
    """Read the messages and group their calls by queue and symptom.

    An event that was delivered twice counts once. Nothing is raised.
    """
    batch = BatchResult()
    calls = defaultdict[tuple[str, Symptom], dict[str, FailedCall]](dict)
    message_ids = defaultdict[tuple[str, Symptom], list[str]](list)
    for message_id, record in bodies.items():
        call = read(record)
        if isinstance(call, Unreadable):
            _note_unreadable(message_id, record, call, home, batch)
        elif is_probe(call, home):
            batch.probes[message_id] = call
        else:
            batch.failed_calls += 1
            symptom = _recognize_symptom(call, home, batch)
            if symptom is not None and call.queue_arn is not None:
                key = (call.queue_arn, symptom)
                calls[key].setdefault(call.event_id, call)
                message_ids[key].append(message_id)
    for key, by_event_id in calls.items():
        prove_nothing = all(call.may_be_a_race for call in by_event_id.values())
        group = Group(*key, tuple(by_event_id.values()), is_found=prove_nothing)
        batch.groups[group] = message_ids[key]
    return batch


def _note_unreadable(
    message_id: str, record: str, unreadable: Unreadable, home: AccountAndRegion, batch: BatchResult
) -> None:
    """Note a message that is no failed call: an event of AWS Health, or an unreadable one."""
    health_event = read_health(record, home.account, home.region)
    if health_event is not None:
        batch.aws_health[message_id] = health_event
    elif unreadable.reason not in NOT_OURS:
        batch.unreadable[message_id] = unreadable
        batch.errors[message_id] = EventUnreadable(unreadable.reason)


def is_probe(call: FailedCall, home: AccountAndRegion) -> bool:
    """Return True for the call that the probe's role makes on the probe's queue.

    Another principal's call on that queue is no probe, and neither is another call of that role. A
    record may leave the queue out.
    """
    if home.purpose_of(call.principal_arn) != PROBE or call.event_name != EVENT_NAME:
        return False
    return call.queue_arn in (None, arn_of_name(QUEUE_NAME, home.region, home.account))


def _recognize_symptom(
    call: FailedCall, home: AccountAndRegion, batch: BatchResult
) -> Symptom | None:
    """Return the symptom that a call points to, or None if Mendq ignores the call."""
    if call.error_code not in KNOWN_CODES:
        batch.unknown_codes.append(call.raw_error_code)
    symptom = match(call)
    why = why_ignored(call, symptom, home)
    if call.may_be_a_race:
        symptom = TOO_SHORT
    if why in (None, "may_be_a_race"):
        return symptom
    if symptom is not None and symptom.plan is not None:
        batch.ignored.append(why)
    return None


def _record_signals(batch: BatchResult, run: FixContext) -> None:
    """Record that the probe arrived and what AWS Health reports. Take no other action on either."""
    probe_record, health_events = run.stored(ProbeRecord), run.stored(HealthEvents)
    notes = {
        message_id: partial(probe_record.note_seen, call)
        for message_id, call in batch.probes.items()
    }
    notes |= {
        message_id: partial(health_events.note, health_event)
        for message_id, health_event in batch.aws_health.items()
    }
    for message_id, note in notes.items():
        try:
            note(run.now)
        except (CaseStoreUnavailable, CaseStoreUnreadable) as error:
            batch.errors[message_id] = error


Situations = dict[Group, Situation]


def _heal_groups(batch: BatchResult, run: FixContext) -> BatchResult:
    for (symptom, word), situations in _gather_situations(batch, run).items():
        try:
            _heal_alike(symptom, word, situations, batch, run)
        except Exception as error:  # noqa: BLE001 - the messages come again, for the notification too
            batch.fail(situations, error)
    if batch.left_out:
        with suppress(CaseStoreUnavailable, CaseStoreUnreadable, NotificationNotSent):
            _notify_flood(batch.left_out, run)
    return batch


def _gather_situations(
    batch: BatchResult, run: FixContext
) -> Mapping[tuple[Symptom, str], Situations]:
    """Gather each group's history and decide what needs no read of the queue.

    Half of the time is kept for the rest, so that what was gathered is decided too.

    Returns:
        The groups whose queues must be read, by symptom and the word under which it is counted.
    """
    alike = defaultdict[tuple[Symptom, str], Situations](dict)
    reserve_seconds = run.remaining_seconds() / 2
    showing = Counter(group.symptom.name for group in batch.groups)
    for group in _select_groups(batch, run):
        is_only_group = showing[group.symptom.name] == 1
        gather = partial(_gather_or_decide, group, run, is_only_group=is_only_group)
        situation = _attempt(gather, group, batch, run, reserve_seconds)
        if isinstance(situation, Situation):
            word = mass_symptom_key(group.symptom.name, situation.facts.tags)
            alike[group.symptom, word][group] = situation
        elif situation is not None:
            batch.set_outcome(group, situation)
    return alike


def _select_groups(batch: BatchResult, run: FixContext) -> list[Group]:
    """Select the groups to look at: all of known queues, then MOST_UNKNOWN of other names.

    Of the other names, callers take turns. The rest is counted and not delivered again, which would
    be a flood of its own: a caller that continues to fail gets a turn in a later batch.
    """
    groups, consent = list(batch.groups), run.settings.consent
    if len(groups) <= MOST_UNKNOWN:
        return groups
    listing_turn = run.now.timestamp() // LISTED_FOR.total_seconds()
    try:
        known_arns = cached_managed_arns(run.clients, run.settings.account, consent, listing_turn)
    except FactsUnavailable:
        return groups
    turns_taken = Counter[str]()
    turns = dict[Group, int]()
    for group in groups:
        name = parts_of(group.queue_arn).name
        if group.queue_arn in known_arns or consent.has_exact_name(name):
            turns[group] = 0
        else:
            turns_taken.update(group.callers)
            turns[group] = min(turns_taken[caller] for caller in group.callers)
    groups_in_turn = sorted(groups, key=turns.__getitem__)
    known = sum(turn == 0 for turn in turns.values())
    most = MOST_UNKNOWN + known
    for group in groups_in_turn[most:]:
        batch.left_out.update(group.callers)
    return groups_in_turn[:most]


def _gather_or_decide(group: Group, run: FixContext, *, is_only_group: bool) -> Situation | Outcome:
    """Return the situation if its queue must be read, else the outcome."""
    situation = gather_history(group, run, is_only_group=is_only_group)
    if isinstance(situation, Outcome):
        return situation
    decision = decide(situation)
    if isinstance(decision, NeedsFacts):
        return situation
    return carry_out(decision, situation, run)


def _heal_alike(
    symptom: Symptom, word: str, situations: Situations, batch: BatchResult, run: FixContext
) -> None:
    """Read the queues that may show one symptom, count them, then decide each of them.

    Queues that changed after their calls failed do not count. A fault in configuration is not
    counted: many queues may have had it for long, and people hear about it a few queues a day.
    """
    read_situations = _read_queues(situations, batch, run)
    spread = frozenset[str]()
    if not (symptom.is_of_configuration and all(group.is_found for group in situations)):
        changed = {
            group for group, situation in read_situations.items() if situation.was_changed_since
        }
        queue_arns = [group.queue_arn for group in situations if group not in changed]
        known = next(iter(situations.values())).view.spread
        spread = run.case_store.note_spread(queue_arns, word, run.now, known)
    for group, situation in read_situations.items():
        heal = partial(_heal_one, situation, spread, run)
        outcome = _attempt(heal, group, batch, run)
        if outcome is not None:
            batch.set_outcome(group, outcome)
    if any(
        _is_one_of_many(situation, batch.outcomes.get(group))
        for group, situation in situations.items()
    ):
        changes = [situation.facts.own_change for situation in read_situations.values()]
        own_changes = [change for change in changes if change is not None]
        _notify_mass_symptom(symptom, spread, situations, own_changes, run)


def _read_queues(situations: Situations, batch: BatchResult, run: FixContext) -> Situations:
    """Read the queues that can be read. Half of the remaining time is kept for deciding them."""
    read_situations = Situations()
    reserve_seconds = run.remaining_seconds() / 2
    for group, situation in situations.items():
        read_queue = partial(_read_queue, situation, run)
        answer = _attempt(read_queue, group, batch, run, reserve_seconds)
        if isinstance(answer, Situation):
            read_situations[group] = answer
        elif answer is not None:
            batch.set_outcome(group, answer)
    return read_situations


def _read_queue(situation: Situation, run: FixContext) -> Situation | Outcome:
    try:
        return add_facts(situation, run)
    except QueueRefusesUs as refused:
        return declined_outcome("queue_refuses_us", str(refused))


def _heal_one(situation: Situation, spread: frozenset[str], run: FixContext) -> Outcome:
    """Decide by the queue's facts, and carry the decision out.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, StepFailed: The calls must be delivered again.
    """
    if len(spread) <= COINCIDENCE_QUEUES:
        situation = situation.with_reach(Reach(spread), run.remaining_seconds())
    count_queues = partial(add_reach, spread=spread, run=run)
    decision, situation = gather_and_decide(situation, count_queues=count_queues)
    return carry_out(decision, situation, run)


def _is_one_of_many(situation: Situation, outcome: Outcome | None) -> bool:
    """Return True if people must hear about the group as one of many. A drill is never reported."""
    refusal = outcome.refusal if outcome else None
    if refusal is None or refusal.code != "mass_symptom":
        return False
    return refusal.is_reported_in(situation.mode) and DRILL_TAG not in situation.facts.tags


def _attempt(
    act: Callable[[], Answer],
    group: Group,
    batch: BatchResult,
    run: FixContext,
    reserve_seconds: float = 0,
) -> Answer | None:
    """Return the answer of `act`. None if it failed, or if too little time is left for it.

    Then the group's messages are delivered again.
    """
    if run.remaining_seconds() < max(SECONDS_TO_WRITE, reserve_seconds):
        batch.fail([group], ComeAgain("too little of the Lambda's time is left"))
        return None
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - the result keeps it for the handler, which logs it
        batch.fail([group], error)
        return None


def _notify_mass_symptom(
    symptom: Symptom,
    spread: frozenset[str],
    groups: Iterable[Group],
    own_changes: Sequence[OwnChange],
    run: FixContext,
) -> None:
    """Page people once for all queues.

    The list begins with one queue of each caller, so that a long list does not hide a caller.

    Args:
        symptom: The catalogue's entry.
        spread: The queues that showed it in the last hour.
        groups: The groups of this batch.
        own_changes: Changes by Mendq that may have caused the symptom on some of the queues.
        run: This invocation.

    Raises:
        CaseStoreUnavailable, NotificationNotSent: The calls must be delivered again.
    """
    queue_of_caller = {caller: group.queue_arn for group in groups for caller in group.callers}
    reach = count_reach(spread, [group.queue_arn for group in groups], run)
    first = [queue_arn for queue_arn in queue_of_caller.values() if queue_arn in reach.queue_arns]
    queue_arns = dict.fromkeys([*first, *sorted(reach.queue_arns)])
    mass = notification.MassSymptom(
        symptom.name,
        symptom.sentence,
        symptom.runbook,
        symptom.advice_if_many.words,
        symptom.advice_if_many.command(min(reach.queue_arns)),
        () if symptom.is_of_configuration else aws_health(run),
        describe_own_changes(own_changes, run.now),
    )
    where = notification.place(run.settings.account, run.clients.region)
    text = notification.describe_mass_symptom(
        mass, queue_arns, reach.managed_queues, run.now, where
    )
    names = " ".join(sorted(reach.queue_arns))
    news = f"mass_symptom:{sha256(names.encode()).hexdigest()[:12]}"
    run.notifier.send_about_account(symptom.name, news, text)


def _notify_flood(left_out: Counter[str], run: FixContext) -> None:
    """Page people once a day for each caller. If that fails, the next such batch does it."""
    where = notification.place(run.settings.account, run.clients.region)
    most_first = left_out.most_common()
    text = notification.describe_flood(most_first, run.now, where)
    run.notifier.send_about_account("flood", f"flood:{most_first[0][0]}", text)
