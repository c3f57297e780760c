"""Heal a batch: group failed calls by queue and symptom, assess each, then decide."""

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
from mendq.aws.queue import arns_lately
from mendq.cases.aws_health import HealthEvent, HealthEvents, read_health
from mendq.cases.finding import named_in
from mendq.cases.record import aws_health
from mendq.catalogue import CATALOGUE, match
from mendq.catalogue.ignored_calls import why_ignored
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.catalogue.visibility.visibility_timeout_too_short import may_be_a_race
from mendq.heal.apply import carry_out
from mendq.heal.assess import assess, decided, reach_of, with_facts
from mendq.heal.context import FixContext, Group, Outcome, declined
from mendq.heal.decide import decide_unlooked
from mendq.heal.guardrails import SECONDS_TO_WRITE, Situation
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.case import State
from mendq.model.failed_call import KNOWN_CODES, FailedCall, Unreadable, read
from mendq.model.limits import DRILL_TAG, counted_as
from mendq.model.names import PROBE, OwnMetric
from mendq.model.own_change import OwnChange
from mendq.model.queue import arn_of, arn_of_name, parts_of
from mendq.notifications import notification
from mendq.notifications.own_change import named_of_many
from mendq.probe.probe import EVENT_NAME, QUEUE_NAME
from mendq.probe.send import ProbeRecord

Done = TypeVar("Done")
# Records that are no failed call of SQS are not faults of the batch.
NOT_OURS = frozenset({"not_failed", "not_sqs"})
# Of the queue names of a batch that no listing of managed queues knows, so many are looked at: it
# takes a second or two.
MOST_UNKNOWN = 50
LISTED_FOR = timedelta(minutes=5)
# To wait or to be unreadable is no fault; nor is it that another run was faster, as runs are that
# read one burst.
NO_FAULTS = (CaseMoved, ComeAgain, EventUnreadable)


class Healed(Struct):
    """A batch: groups with the messages behind each, and what became of them.

    `errors` holds the error behind each message that failed; `probes` are our own failed calls,
    which count for nothing else, `aws_health` what AWS tells of itself; `left_out` counts by caller
    the queue names of a flood that nobody looked at.
    """

    groups: dict[Group, list[str]] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    unknown_codes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    probes: dict[str, FailedCall] = field(default_factory=dict)
    aws_health: dict[str, HealthEvent] = field(default_factory=dict)
    failed_calls: int = 0
    fixed: dict[Group, Outcome] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def answer(self) -> dict[str, list[dict[str, str]]]:
        """What Lambda's poller takes: the messages that are to come again.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        """
        return {"batchItemFailures": [{"itemIdentifier": each} for each in self.errors]}

    @property
    def faults(self) -> list[Exception]:
        """Each once, however many messages it failed."""
        once = {id(each): each for each in self.errors.values()}.values()
        return [each for each in once if not isinstance(each, NO_FAULTS)]

    def by_symptom(self) -> dict[OwnMetric, Counter[str]]:
        fixes, refusals = Counter[str](), Counter[str]()
        for group, outcome in self.fixed.items():
            if outcome.case is not None and outcome.case.state is State.APPLIED:
                fixes[group.symptom.name] += 1
            if outcome.refusal is not None:
                refusals[group.symptom.name] += 1
        return {OwnMetric.AUTO_FIXES: fixes, OwnMetric.REFUSALS: refusals}

    def counts(self) -> dict[OwnMetric, int]:
        of_symptoms = {name: counted.total() for name, counted in self.by_symptom().items()}
        return {
            OwnMetric.FAILED_CALLS_SEEN: self.failed_calls,
            OwnMetric.UNKNOWN_ERROR_CODES: len(self.unknown_codes),
            OwnMetric.HEAL_ERRORS: len(self.faults),
            OwnMetric.AUTO_FIXES: of_symptoms[OwnMetric.AUTO_FIXES],
            OwnMetric.REFUSALS: of_symptoms[OwnMetric.REFUSALS] + len(self.ignored),
            OwnMetric.ESCALATIONS: sum(each.escalated for each in self.fixed.values()),
        }

    def fail(self, groups: Iterable[Group], error: Exception) -> None:
        for group in groups:
            self.errors.update(dict.fromkeys(self.groups[group], error))

    def note(self, group: Group, outcome: Outcome) -> None:
        self.fixed[group] = outcome
        if outcome.refusal and outcome.refusal.again:
            self.fail([group], ComeAgain(outcome.refusal.reason))


def read_batch(bodies: Mapping[str, str], home: AccountAndRegion) -> Healed:
    """`bodies` by message id. An event delivered twice counts once; nothing is raised."""
    healed = Healed()
    seen: dict[tuple[str, Symptom], dict[str, FailedCall]] = defaultdict(dict)
    messages: dict[tuple[str, Symptom], list[str]] = defaultdict(list)
    for message_id, body in bodies.items():
        call = read(body)
        if isinstance(call, Unreadable):
            if (trouble := read_health(body, home.account, home.region)) is not None:
                healed.aws_health[message_id] = trouble
            elif call.reason not in NOT_OURS:
                healed.unreadable[message_id] = call
                healed.errors[message_id] = EventUnreadable(call.reason)
            continue
        if is_probe(call, home):
            healed.probes[message_id] = call
            continue
        healed.failed_calls += 1
        symptom = _symptom_of(call, home, healed)
        if symptom is not None and call.queue_arn is not None:
            key = (call.queue_arn, symptom)
            seen[key].setdefault(call.event_id, call)
            messages[key].append(message_id)
    for key, calls in seen.items():
        measured = all(map(may_be_a_race, calls.values()))
        group = Group(*key, tuple(calls.values()), is_found=measured)
        healed.groups[group] = messages[key]
    return healed


def is_probe(call: FailedCall, home: AccountAndRegion) -> bool:
    """True for the call that its role makes for it; a record may leave the queue out.

    Another principal's call on that queue is no probe, nor is another call of the role.
    """
    if home.purpose_of(call.principal_arn) != PROBE or call.event_name != EVENT_NAME:
        return False
    return call.queue_arn in (None, arn_of_name(QUEUE_NAME, home.region, home.account))


def _symptom_of(call: FailedCall, home: AccountAndRegion, healed: Healed) -> Symptom | None:
    if call.error_code not in KNOWN_CODES:
        healed.unknown_codes.append(call.raw_error_code)
    symptom, why = TOO_SHORT if may_be_a_race(call) else match(call), why_ignored(call, home)
    if why == "may_be_a_race":
        return symptom
    if why is not None and symptom is not None and symptom.plan is not None:
        healed.ignored.append(why)
    return symptom if why is None else None


def heal_batch(bodies: Mapping[str, str], run: FixContext) -> Healed:
    """`bodies` by message id; never raises: every error is kept for the handler to raise.

    Of our own probe it is noted that it was seen, and of AWS Health's events what they say;
    nothing else is done about either.
    """
    healed = read_batch(bodies, AccountAndRegion(run.settings.account, run.clients.region))
    seen, heard = run.stored(ProbeRecord).note_seen, run.stored(HealthEvents).note
    notes = {each: partial(seen, call) for each, call in healed.probes.items()}
    notes |= {each: partial(heard, event) for each, event in healed.aws_health.items()}
    for message_id, note in notes.items():
        try:
            note(run.now)
        except (CaseStoreUnavailable, CaseStoreUnreadable) as error:
            healed.errors[message_id] = error
    return _Batch(run, healed).fix()


def heal_findings(request: Mapping[str, Any], run: FixContext) -> Healed:
    """What a scan found, `{"found": [{"queue_arn", "symptom"}, ...]}`; never raises.

    What is none of ours is left out. A finding that fails is not tried again: while it is so, the
    next scan finds it.
    """
    by_name = {each.name: each for each in CATALOGUE if each.plan and each.detection}
    groups = (
        Group(each.queue_arn, by_name[each.symptom], is_found=True, shared=each)
        for each in named_in(request)
        if each.symptom in by_name and arn_of(each.queue_arn) and run.is_here(each.queue_arn)
    )
    return _Batch(run, Healed({group: [f"{n}"] for n, group in enumerate(groups)})).fix()


Alike = dict[Group, Situation]


class _Batch(Struct, frozen=True):
    run: FixContext
    healed: Healed

    def fix(self) -> Healed:
        """Half of the time is for looking, so that what was looked at is decided too."""
        alike: dict[tuple[Symptom, str], Alike] = defaultdict(dict)
        reserve_seconds = self.run.remaining_seconds() / 2
        showing = Counter(each.symptom.name for each in self.healed.groups)
        for group in self._in_turn():
            look = partial(self._look, group, alone=showing[group.symptom.name] == 1)
            looked = self._try(group, look, reserve_seconds)
            if isinstance(looked, Situation):
                word = counted_as(group.symptom.name, looked.facts.tags)
                alike[group.symptom, word][group] = looked
            elif looked is not None:
                self.healed.note(group, looked)
        for (symptom, word), situations in alike.items():
            try:
                self._decide(symptom, word, situations)
            except Exception as error:  # noqa: BLE001 - the events come again, for the one page too
                self.healed.fail(situations, error)
        if self.healed.left_out:
            with suppress(CaseStoreUnavailable, CaseStoreUnreadable, NotificationNotSent):
                _notify_flood(self.healed.left_out, self.run)
        return self.healed

    def _in_turn(self) -> list[Group]:
        """The groups to look at: the queues that there are, then MOST_UNKNOWN other names.

        Of those the callers take turns. The rest is counted and does not come again, which would
        be a flood of its own: a caller that goes on failing gets a turn in another batch.
        """
        groups, turns, run = list(self.healed.groups), Counter[str](), self.run
        if len(groups) <= MOST_UNKNOWN:
            return groups
        consent, turn = run.settings.consent, run.now.timestamp() // LISTED_FOR.total_seconds()
        try:
            known = arns_lately(run.clients, run.settings.account, consent, turn)
        except FactsUnavailable:
            return groups
        turn_of = dict[Group, int]()
        for group in groups:
            name = parts_of(group.queue_arn).name
            is_known = group.queue_arn in known or consent.names_exactly(name)
            turns.update(() if is_known else group.callers)
            turn_of[group] = 0 if is_known else min(turns[each] for each in group.callers)
        in_turn = sorted(groups, key=turn_of.__getitem__)
        most = MOST_UNKNOWN + [*turn_of.values()].count(0)
        self.healed.left_out.update(each for group in in_turn[most:] for each in group.callers)
        return in_turn[:most]

    def _look(self, group: Group, *, alone: bool) -> Situation | Outcome:
        situation = assess(group, self.run, alone=alone)
        if isinstance(situation, Outcome):
            return situation
        verdict = decide_unlooked(situation)
        return situation if verdict is None else carry_out(verdict, situation, self.run)

    def _decide(self, symptom: Symptom, word: str, alike: Alike) -> None:
        """All are noted before the first is decided, so that a mass symptom writes nothing.

        Those are left out that were looked at and have changed since they failed. A fault in
        configuration is not noted: many have had it for long, and are told of slowly.
        """
        looked, spread = self._looked_at(alike), frozenset[str]()
        if not (symptom.is_of_configuration and all(each.is_found for each in alike)):
            unfailing = [group for group, each in looked.items() if each.changed_since]
            queue_arns = [each.queue_arn for each in alike if each not in unfailing]
            known = next(iter(alike.values())).view.spread
            spread = self.run.case_store.spread_to(queue_arns, word, self.run.now, known)
        for group, situation in looked.items():
            outcome = self._try(group, partial(self._fix, situation, spread))
            if outcome is not None:
                self.healed.note(group, outcome)
        if any(self._is_news_as_one_of_many(*each) for each in alike.items()):
            changes = [each.facts.own_change for each in looked.values()]
            own_changes = [change for change in changes if change is not None]
            _notify_mass_symptom(symptom, spread, alike, own_changes, self.run)

    def _looked_at(self, alike: Alike) -> Alike:
        """Those of them that could be; half of the time that is left is for deciding them."""
        looked, reserve_seconds = Alike(), self.run.remaining_seconds() / 2
        for group, situation in alike.items():
            found = self._try(group, partial(self._facts, situation), reserve_seconds)
            if isinstance(found, Situation):
                looked[group] = found
            elif found is not None:
                self.healed.note(group, found)
        return looked

    def _facts(self, situation: Situation) -> Situation | Outcome:
        """Raises FactsUnavailable or CaseStoreUnavailable: it is to come again."""
        try:
            return with_facts(situation, self.run)
        except QueueRefusesUs as refused:
            return declined("queue_refuses_us", str(refused))

    def _fix(self, situation: Situation, spread: frozenset[str]) -> Outcome:
        """Raises FactsUnavailable, CaseStoreUnavailable or StepFailed: it is to come again."""
        return carry_out(decided(situation, self.run, lambda: spread), situation, self.run)

    def _is_news_as_one_of_many(self, group: Group, situation: Situation) -> bool:
        """True where people are to hear of it; a drill is nobody's news."""
        refusal = self.healed.fixed.get(group, Outcome()).refusal
        if refusal is None or refusal.code != "mass_symptom":
            return False
        return refusal.heard_in(situation.mode) and DRILL_TAG not in situation.facts.tags

    def _try(
        self, group: Group, act: Callable[[], Done], reserve_seconds: float = 0
    ) -> Done | None:
        """What the act answers; None where it failed, or no time is left for it."""
        if self.run.remaining_seconds() < max(SECONDS_TO_WRITE, reserve_seconds):
            self.healed.fail([group], ComeAgain("too little of the Lambda's time is left"))
            return None
        try:
            return act()
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which raises it
            self.healed.fail([group], error)
            return None


def _notify_mass_symptom(
    symptom: Symptom,
    spread: frozenset[str],
    groups: Iterable[Group],
    own_changes: Sequence[OwnChange],
    run: FixContext,
) -> None:
    """Send one page for all queues. One queue of each caller comes first, so that none is hidden.

    `own_changes` are changes by Mendq that may have caused the symptom on some of the queues.
    Raises CaseStoreUnavailable or NotificationNotSent.
    """
    of_caller = {caller: each.queue_arn for each in groups for caller in each.callers}
    reach = reach_of(spread, [each.queue_arn for each in groups], run)
    first = [each for each in of_caller.values() if each in reach.queue_arns]
    queue_arns = dict.fromkeys([*first, *sorted(reach.queue_arns)])
    words, command = symptom.mass.words, symptom.mass.command(min(reach.queue_arns))
    health = () if symptom.is_of_configuration else aws_health(run)
    of = notification.MassSymptom(
        symptom.name,
        symptom.sentence,
        symptom.runbook,
        words,
        command,
        health,
        named_of_many(own_changes, run.now),
    )
    where = notification.place(run.settings.account, run.clients.region)
    text = notification.of_mass_symptom(of, queue_arns, reach.managed_queues, run.now, where)
    names = " ".join(sorted(reach.queue_arns))
    news = f"mass_symptom:{sha256(names.encode()).hexdigest()[:12]}"
    run.notifier.send_about_account(symptom.name, news, text)


def _notify_flood(left_out: Counter[str], run: FixContext) -> None:
    """Send one page a day for each caller; what is left unsent, the next such batch sends."""
    where = notification.place(run.settings.account, run.clients.region)
    most_first = left_out.most_common()
    text = notification.of_flood(most_first, run.now, where)
    run.notifier.send_about_account("flood", f"flood:{most_first[0][0]}", text)
