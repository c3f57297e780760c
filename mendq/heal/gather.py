"""Gather what `decide` needs to know about one symptom of one queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field, structs

from mendq.aws.dlqs import list_source_arns
from mendq.aws.errors import (
    CaseStoreUnreadable,
    NotificationNotSent,
    QueueGone,
    QueueRefusesUs,
)
from mendq.aws.facts_reader import FactsReader
from mendq.aws.queue import attributes_if_there, attributes_of, tags_of
from mendq.cases import items
from mendq.cases.context import FixContext
from mendq.cases.finding import SharedFinding
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.pins import OF_PEOPLE, with_pins
from mendq.cases.seen_moves import SeenMoves
from mendq.cases.spread import Reach
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.heal.decide import Decision, NeedsFacts, NeedsReach, decide
from mendq.heal.guardrails import COINCIDENCE_QUEUES
from mendq.heal.outcome import Outcome, declined_outcome
from mendq.heal.recover import recover
from mendq.heal.repeats import was_noted_lately, would_repeat_unread
from mendq.heal.situation import Situation
from mendq.model.evidence import STALE_AFTER, Evidence, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall
from mendq.model.harms import CAUSED, attributes_behind, change_behind, may_be_behind
from mendq.model.limits import Mode, mass_symptom_key
from mendq.model.own_change import OwnChange
from mendq.model.plan import Ignore, Refusal
from mendq.model.queue import arn_of, parts_of
from mendq.notifications.text import format_count

Needs = Collection[Need]
# A caller's clock may be ahead of ours by this much.
FUTURE_AFTER = timedelta(minutes=5)


class Group(Struct, frozen=True, eq=False):
    """The failed calls of one batch that point to one symptom of one queue.

    A scan's finding has no calls. `is_found` is true for it, and for calls that prove nothing by
    themselves: then the queue is measured. `shared` names the queues that the finding is about too.
    """

    queue_arn: str
    symptom: Symptom
    calls: tuple[FailedCall, ...] = ()
    is_found: bool = False
    shared: SharedFinding = field(default_factory=SharedFinding)

    @property
    def callers(self) -> frozenset[str]:
        """The principals whose calls failed."""
        return frozenset(call.principal_arn for call in self.calls)


# A function that adds to a situation what `decide` asked for.
Gather = Callable[[Situation], Situation]


def gather_and_decide(
    situation: Situation, *, count_queues: Gather, read_queue: Gather | None = None
) -> tuple[Decision, Situation]:
    """Ask `decide`, gather what it needs, and ask again, until the decision is final.

    Every caller of `decide` uses this loop. They differ only in how they gather.

    Args:
        situation: The symptom and the queue to decide about.
        count_queues: Answers `NeedsReach`. Returns the situation with the number of queues that
            show the symptom (`reach`).
        read_queue: Answers `NeedsFacts`. Returns the situation with the queue's facts. None if the
            situation has them already.

    Returns:
        The final decision, and the situation with everything that was gathered for it.
    """
    decision = decide(situation)
    if isinstance(decision, NeedsFacts) and read_queue is not None:
        situation = read_queue(situation)
        decision = decide(situation)
    if isinstance(decision, NeedsReach):
        situation = count_queues(situation)
        decision = decide(situation)
    return decision, situation


def gather_history(group: Group, run: FixContext, *, alone: bool) -> Situation | Outcome:
    """Return what is known before the queue is read, or the reason why nothing is decided.

    A write that a dead run left behind is finished first, whatever the queue's mode is now: people
    must hear about it.

    Args:
        group: The failed calls, or the finding.
        run: This invocation.
        alone: True if no other group of the batch has this symptom. Then the same read of the case
            store also returns which queues showed it in the last hour.

    Raises:
        FactsUnavailable, CaseStoreUnavailable: The group must be delivered again.
    """
    try:
        return _gather_history(group, run, alone=alone)
    except QueueRefusesUs as refused:
        return declined_outcome("queue_refuses_us", str(refused))
    except CaseStoreUnreadable as unreadable:
        return declined_outcome("case_store_unreadable", str(unreadable))


def _gather_history(group: Group, run: FixContext, *, alone: bool) -> Situation | Outcome:
    queue_arn, symptom = group.queue_arn, group.symptom
    tags = _read_tags(group, run)
    if tags is None and symptom.needs:
        return declined_outcome("queue_gone", "the queue is gone")
    word = mass_symptom_key(symptom.name, tags or {}) if alone else ""
    view: CaseStoreView | Outcome
    view = run.case_store.look(queue_arn, symptom.name, symptom.attributes, word)
    if view.notification is not None:
        with suppress(NotificationNotSent):  # a queue is fixed even if people cannot be notified
            run.notifier.send_left_unsent(queue_arn, symptom.name, view.notification, view.case)
    view = recover(view, symptom, run)
    if isinstance(view, Outcome):
        return view
    is_named = run.settings.consent.has_exact_name(parts_of(queue_arn).name)
    if tags is None and not is_named and not _was_seen(queue_arn, run):
        reason = "no such queue was ever seen, and no setting names it alone"
        return declined_outcome("never_seen", reason)
    situation = make_managed_situation(group, run, tags or {}, view)
    if isinstance(situation, Outcome):
        return situation
    if group.is_found and (not group.calls or _take_measuring_turn(queue_arn, run)):
        return _look_for_finding(group, situation, run)
    fresh = tuple(
        Sighting.of(call)
        for call in group.calls
        if is_fresh(call, run.now) and not call.may_be_a_race
    )
    evidence = Evidence.of([*view.evidence.sightings, *fresh]).fresh(run.now)
    return structs.replace(situation, evidence=evidence, fresh=fresh)


def is_fresh(call: FailedCall, now: datetime) -> bool:
    """Return True if a failed call says something about the queue as it is now."""
    return -FUTURE_AFTER <= now - call.event_time <= STALE_AFTER


def _read_tags(group: Group, run: FixContext) -> Mapping[str, str] | None:
    """Return the queue's tags, or None if there is no such queue.

    A queue that refuses Mendq has none, if settings name it and its symptom is only reported.
    """
    try:
        return tags_of(run.clients, group.queue_arn)
    except QueueRefusesUs:
        if group.symptom.notifies_anyway and find_mode(group.queue_arn, run, {}) is not None:
            return {}
        raise


def _was_seen(queue_arn: str, run: FixContext) -> bool:
    """Return True if a scan or a case knows the queue. Anyone can make up a queue's name."""
    return bool(run.baselines.of(queue_arn) or run.open_cases.list_newest_cases([queue_arn]))


def _take_measuring_turn(queue_arn: str, run: FixContext) -> bool:
    """Return True once an hour per queue. Each metric is billed, and anyone can make calls fail."""
    key = items.key(queue_arn, "measured")
    is_free = "attribute_not_exists(pk) OR expires_at <= :now"
    until = run.now + timedelta(hours=1)
    update = "SET expires_at = :until"
    return run.case_store.change(key, update, is_free, until=until, now=run.now)


def make_managed_situation(
    group: Group, run: FixContext, tags: Mapping[str, str], view: CaseStoreView
) -> Situation | Outcome:
    """Return the situation to decide about, or the refusal of a queue that is not managed.

    The mode is the lowest one that settings, tags and autonomy allow. Evidence is added later. A
    finding on a DLQ that Mendq made is reported even if only its source is managed.
    """
    mode, made_for = find_mode(group.queue_arn, run, tags), ""
    if mode is None and group.is_found:
        made_for = _find_made_for(group.queue_arn, tags, run)
        mode = Mode.OBSERVE if made_for else None
    if mode is None:
        return declined_outcome("not_managed", "the queue is not managed by Mendq")
    lowest = min(mode, find_autonomy(group.symptom, run, mode))
    facts = Facts(group.queue_arn, {}, tags)
    return make_situation(group.symptom, facts, lowest, view, run, made_for=made_for)


def make_situation(
    symptom: Symptom, facts: Facts, mode: Mode, view: CaseStoreView, run: FixContext, **more: Any
) -> Situation:
    """Return the situation before the queue is read. A closed change calendar freezes writes."""
    limits, timing = run.settings.limits, run.settings.timing
    situation = Situation(
        symptom, facts, mode, view, run.now, run.owner, run.whose, limits, timing, **more
    )
    if view.frozen or not run.settings.freeze_calendars or not situation.writes:
        return situation
    return structs.replace(situation, view=structs.replace(view, frozen=run.closed_calendars))


def _find_made_for(queue_arn: str, tags: Mapping[str, str], run: FixContext) -> str:
    """Return the managed source that Mendq made this DLQ for, or an empty text."""
    try:
        named_by = list_source_arns(run.clients, queue_arn)
    except QueueGone:
        return ""
    made, consent = run.stored(MadeDlqs), run.settings.consent
    return made.managed_source(queue_arn, tags, named_by, run.clients, consent)


def find_mode(queue_arn: str, run: FixContext, tags: Mapping[str, str]) -> Mode | None:
    """Return the mode that settings and tags give a queue. None if it is not managed."""
    return run.settings.consent.mode_of(parts_of(queue_arn).name, tags)


def find_autonomy(symptom: Symptom, run: FixContext, otherwise: Mode) -> Mode:
    """Return how far settings, or else the catalogue, let the symptom's plans go."""
    autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
    return otherwise if autonomy is None else autonomy


def _look_for_finding(group: Group, situation: Situation, run: FixContext) -> Situation | Outcome:
    """Measure the queue, unless the result would only repeat a recent case: metrics are billed."""
    symptom, tags = group.symptom, situation.facts.tags
    open_case, last_case = situation.open_case, situation.view.case
    if open_case is not None:
        noted = [sighting.event_time for sighting in situation.view.failures.sightings]
        if was_noted_lately(open_case, max(noted, default=None), run.now):
            reason = f"case {open_case.case_id} is {open_case.state}"
            return declined_outcome("case_already_open", reason)
    elif symptom.is_of_configuration and last_case is not None:
        modified_at = gather_facts(run, group.queue_arn, tags, {Need.QUEUE}).modified_at
        if would_repeat_unread(last_case, situation.mode, run.now, modified_at):
            return declined_outcome("said_already", last_case.reason)
    facts = gather_facts(run, group.queue_arn, tags, symptom.every_need)
    return confirm_finding(group, situation, facts, run)


def confirm_finding(
    group: Group, situation: Situation, facts: Facts, run: FixContext
) -> Situation | Outcome:
    """Return the situation if the queue shows the symptom now. A scan only says where to look.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The cases of the queues that share it.
    """
    detection = group.symptom.detection
    found = detection.detect(facts) if detection else None
    if found is None:
        return declined_outcome("not_found", "the queue does not show it, or not any more")
    refusal = None if situation.open_case else _find_same_request(group, found.about, run)
    if refusal is not None:
        return Outcome(refusal=refusal)
    fresh = (Sighting.from_scan(run.now),)
    facts = replace(facts, found=name_other_queues(found.because, group.shared))
    return structs.replace(situation, facts=facts, evidence=Evidence(fresh), fresh=fresh)


def _find_same_request(group: Group, about: str, run: FixContext) -> Refusal | None:
    """Return a refusal if another queue's open case already asks people for the missing queue.

    Args:
        group: The finding. Its `shared.open_at` names the queues whose cases may ask.
        about: The ARN of the missing queue, empty if the finding is about none.
    """
    for queue_arn in group.shared.open_at if about else ():
        case = run.case_store.look(queue_arn, group.symptom.name, ()).case
        if case is None or not case.is_open(run.now, run.settings.timing):
            continue
        if any(step.get("after") == about for step in case.steps):
            reason = f"case {case.case_id} of {queue_arn} asks for {about} already"
            return Ignore("said_of_another", reason)
    return None


def name_other_queues(because: str, shared: SharedFinding) -> str:
    """Return the sentence of a finding, with some of the other queues that share it."""
    if not shared.others:
        return because
    names = ", ".join(parts_of(queue_arn).name for queue_arn in shared.others)
    number = len(shared.others) + shared.more
    verb = "names" if number == 1 else "name"
    rest = f" and {shared.more:,} more" if shared.more else ""
    return f"{because}. {format_count(number, 'other queue')} {verb} it too: {names}{rest}"


def make_reader(run: FixContext) -> FactsReader:
    """Return the facts reader of this invocation, which asks the case store too."""
    return FactsReader(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.list_open_symptoms,
        noted_moves=lambda: run.stored(SeenMoves).into(run.now),
        list_newest_cases=run.open_cases.list_newest_cases,
        consent=run.settings.consent,
    )


def gather_facts(run: FixContext, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """Read the facts that `needs` names, and no more.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, CaseStoreUnreadable: They could not be read.
    """
    return _gather_more(run, make_reader(run).read_queue(queue_arn, tags, needs), needs)


def _gather_more(run: FixContext, facts: Facts, needs: Needs) -> Facts:
    facts = make_reader(run).with_more(facts, needs)
    return with_pins(run, facts, needs) if OF_PEOPLE.intersection(needs) else facts


def add_facts(situation: Situation, run: FixContext) -> Situation:
    """Answer `NeedsFacts`: read the queue and return the situation with its facts.

    If the queue was changed after the calls failed, only its attributes are read, and the change is
    noted: it excuses these calls.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, QueueRefusesUs: The queue could not be read.
    """
    situation = structs.replace(situation, is_read=True)
    symptom, facts = situation.symptom, situation.facts
    try:
        if not situation.is_found:
            # A missing queue may be the symptom itself. Then it needs no facts.
            read = attributes_of if symptom.needs else attributes_if_there
            facts = replace(facts, attributes=read(run.clients, facts.queue_arn))
            with_attributes = structs.replace(situation, facts=facts)
            if not with_attributes.has_current_evidence:
                return _note_excusing_change(with_attributes, run)
            facts = _gather_more(run, facts, symptom.needs)
    except QueueRefusesUs:
        if not symptom.notifies_anyway:
            raise
        facts = situation.facts
    facts = situation.view.add_facts_of_calls(facts, situation.evidence_in_question)
    situation = structs.replace(situation, facts=facts)
    if not situation.has_current_evidence:
        return _note_excusing_change(situation, run)
    return add_own_change(situation, run)


def _note_excusing_change(situation: Situation, run: FixContext) -> Situation:
    facts = situation.facts
    if facts.modified_at is None or situation.open_case is not None:
        return situation
    changes = run.case_store.note_change(
        facts.queue_arn, situation.symptom.name, facts.modified_at, run.now
    )
    return structs.replace(situation, changes=tuple(changes))


def add_own_change(situation: Situation, run: FixContext) -> Situation:
    """Return the situation with Mendq's newest change that can have caused the symptom, if any.

    If the cases cannot be read, the finding is reported without a change.

    Raises:
        CaseStoreUnavailable: The case store gives no answer.
    """
    if not situation.facts.exists or not _may_have_own_change(situation):
        return situation
    change = None
    with suppress(CaseStoreUnreadable):
        change = _find_own_change(situation.symptom.name, situation.facts, run)
    if change is None:
        return situation
    return structs.replace(situation, facts=replace(situation.facts, own_change=change))


def _may_have_own_change(situation: Situation) -> bool:
    """Return False if no step causes the symptom, or if Mendq's records show no such write."""
    symptom = situation.symptom.name
    if symptom not in CAUSED:
        return False
    attributes, records = attributes_behind(symptom), situation.records
    if attributes is None or not attributes <= records.attributes.keys():
        return True
    return any(records.record_of(attribute).writes for attribute in attributes)


def _find_own_change(symptom: str, facts: Facts, run: FixContext) -> OwnChange | None:
    newest = run.open_cases.list_newest_cases(_list_queues_around(facts))
    suspected = [case for case in newest if may_be_behind(case, symptom, facts)]
    histories = [run.open_cases.transitions(case.case_id) for case in suspected]
    return change_behind(symptom, facts, histories, run.now, run.settings.timing)


def _list_queues_around(facts: Facts) -> list[str]:
    """Return the queue, its sources and its own DLQ. A redrive is a case about the DLQ."""
    queue_arns = [facts.queue_arn, *facts.source_arns]
    dlq_arn = arn_of(facts.dlq_arn)
    if dlq_arn is not None:
        queue_arns.append(dlq_arn)
    return list(dict.fromkeys(queue_arns))


def add_reach(situation: Situation, spread: frozenset[str], run: FixContext) -> Situation:
    """Answer `NeedsReach`: count `spread`, the queues that showed the symptom in the last hour.

    Raises:
        FactsUnavailable: The managed queues could not be listed.
    """
    queue_arn, tags = situation.facts.queue_arn, situation.facts.tags
    mode = find_mode(queue_arn, run, tags) or Mode.OBSERVE
    reach = count_reach(spread, [queue_arn], run, mode)
    return situation.with_reach(reach, run.remaining_seconds())


def count_reach(
    spread: frozenset[str], seen_now: Iterable[str], run: FixContext, mode: Mode = Mode.OBSERVE
) -> Reach:
    """Count the managed queues among `spread`. A few need no listing: they are no mass symptom.

    Args:
        spread: The queues that showed the symptom in the last hour.
        seen_now: Queues that are managed, even if the listing does not show them yet.
        run: This invocation.
        mode: The mode of the queue to decide about.
    """
    if len(spread) <= COINCIDENCE_QUEUES:
        return Reach(spread)
    return Reach.among(spread, {**dict.fromkeys(seen_now, mode), **run.managed_modes}, mode)
