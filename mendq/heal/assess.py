"""Assess one symptom of one queue: gather what decides, and recover what a dead run left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from msgspec import structs

from mendq.aws.dlqs import source_arns_of
from mendq.aws.errors import (
    CaseStoreUnreadable,
    NotificationNotSent,
    QueueGone,
    QueueRefusesUs,
)
from mendq.aws.facts_reader import FactsReader
from mendq.aws.queue import tags_of
from mendq.cases import items
from mendq.cases.finding import Shared
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.pins import OF_PEOPLE, with_pins
from mendq.cases.seen_moves import MovesByName
from mendq.cases.spread import Reach
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import FixContext, Group, Outcome, declined
from mendq.heal.decide import Verdict, decide, needs_no_look, was_noted_lately
from mendq.heal.guardrails import FEW_QUEUES, Situation, is_fresh
from mendq.heal.own_changes import with_own_change
from mendq.heal.recover import settle_whosever
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.limits import Mode, counted_as
from mendq.model.plan import Ignore, Refusal
from mendq.model.queue import parts_of
from mendq.notifications.text import counted

Needs = Collection[Need]


def situation_of(
    symptom: Symptom, facts: Facts, mode: Mode, view: CaseStoreView, run: FixContext, **more: Any
) -> Situation:
    """The situation before the queue was looked at; a closed calendar freezes what is written."""
    limits, timing = run.settings.limits, run.settings.timing
    situation = Situation(
        symptom, facts, mode, view, run.now, run.owner, run.whose, limits, timing, **more
    )
    if view.frozen or not run.settings.freeze_calendars or not situation.writes:
        return situation
    return structs.replace(situation, view=structs.replace(view, frozen=run.closed_calendars))


def reader_of(run: FixContext) -> FactsReader:
    """The reader of an invocation, which asks the case store too."""
    return FactsReader(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.open_about,
        noted_moves=lambda: run.stored(MovesByName).into(run.now),
        newest_about=run.open_cases.newest_about,
        consent=run.settings.consent,
    )


def gather(run: FixContext, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """The facts that `needs` names, and no more.

    Raises FactsUnavailable, CaseStoreUnavailable or CaseStoreUnreadable.
    """
    return _gather_more(run, reader_of(run).queue(queue_arn, tags, needs), needs)


def _gather_more(run: FixContext, facts: Facts, needs: Needs) -> Facts:
    facts = reader_of(run).with_more(facts, needs)
    return with_pins(run, facts, needs) if OF_PEOPLE.intersection(needs) else facts


def recover(view: CaseStoreView, symptom: Symptom, run: FixContext) -> CaseStoreView | Outcome:
    """The view without what a run that died had left; the outcome of that where it has one.

    It may have been at work on another symptom's case, which it held as well.
    """
    if view.intent is None or view.held_by_another(run.owner, run.now):
        return view
    settled = settle_whosever(view, view.intent, symptom, run)
    return view.freed(view.intent) if settled == Outcome() else settled


def reach_of(
    spread: frozenset[str], now_seen: Iterable[str], run: FixContext, mode: Mode = Mode.OBSERVE
) -> Reach:
    """How far a symptom has spread; `now_seen` are managed, whatever a listing says yet."""
    if len(spread) <= FEW_QUEUES:
        return Reach(spread)
    return Reach.among(spread, {**dict.fromkeys(now_seen, mode), **run.managed_modes}, mode)


def decided(situation: Situation, run: FixContext, spread: Callable[[], frozenset[str]]) -> Verdict:
    """What is decided; how far the symptom has spread is asked where that matters."""

    def counted(of: Situation) -> Situation:
        queue_arn = of.facts.queue_arn
        its_own = mode_of(queue_arn, run, of.facts.tags) or Mode.OBSERVE
        reach = reach_of(spread(), [queue_arn], run, its_own)
        return structs.replace(of, reach=reach, remaining_seconds=run.remaining_seconds())

    return decide(situation, counted)


def assess(group: Group, run: FixContext, *, alone: bool) -> Situation | Outcome:
    """What is known of a group before its queue is looked at; or why nothing is to be decided.

    What was written is recovered before the mode is asked for: it has to be told, whatever the
    mode is now. Where the group is `alone` with its symptom, one look sees how far that has spread
    as well. Raises FactsUnavailable or CaseStoreUnavailable: the group is to come again.
    """
    try:
        return _assess(group, run, alone=alone)
    except QueueRefusesUs as refused:
        return declined("queue_refuses_us", str(refused))
    except CaseStoreUnreadable as unreadable:
        return declined("case_store_unreadable", str(unreadable))


def _assess(group: Group, run: FixContext, *, alone: bool) -> Situation | Outcome:
    queue_arn, symptom = group.queue_arn, group.symptom
    tags = _tags_of(group, run)
    if tags is None and symptom.needs:
        return declined("queue_gone", "the queue is gone")
    spread = counted_as(symptom.name, tags or {}) if alone else ""
    view = run.case_store.look(queue_arn, symptom.name, symptom.attributes, spread)
    if view.page is not None:
        with suppress(NotificationNotSent):  # a queue must not go unfixed as nobody can be told
            run.notifier.send_left_unsent(queue_arn, symptom.name, view.page, view.case)
    recovered = recover(view, symptom, run)
    if isinstance(recovered, Outcome):
        return recovered
    named = run.settings.consent.names_exactly(parts_of(queue_arn).name)
    if tags is None and not named and not _was_seen(queue_arn, run):
        return declined("never_seen", "no such queue was ever seen, and no setting names it alone")
    situation = managed_situation(group, run, tags or {}, recovered)
    if isinstance(situation, Outcome):
        return situation
    if group.is_found and (not group.calls or _may_measure(queue_arn, run)):
        return _found(group, situation, run)
    calls = (each for each in group.calls if is_fresh(each, run.now) and symptom.speaks(each))
    fresh = tuple(map(Sighting.of, calls))
    evidence = Evidence.of([*recovered.evidence.sightings, *fresh]).fresh(run.now)
    return structs.replace(situation, evidence=evidence, fresh=fresh)


def _was_seen(queue_arn: str, run: FixContext) -> bool:
    """Whether a scan found it well once, or a case was about it: anybody can make up a name."""
    return bool(run.baselines.of(queue_arn) or run.open_cases.newest_about([queue_arn]))


def _may_measure(queue_arn: str, run: FixContext) -> bool:
    """Once an hour a queue: each metric is billed, and anybody can have calls fail."""
    key, free = items.key(queue_arn, "measured"), "attribute_not_exists(pk) OR expires_at <= :now"
    until = run.now + timedelta(hours=1)
    return run.case_store.change(key, "SET expires_at = :until", free, until=until, now=run.now)


def managed_situation(
    group: Group, run: FixContext, tags: Mapping[str, str], view: CaseStoreView
) -> Situation | Outcome:
    """Return the situation to decide about, or the refusal of a queue that is not managed.

    The mode is the lowest one that settings, tags and autonomy allow. Evidence is added later. A
    finding on a DLQ that Mendq made is reported even if only its source is managed.
    """
    mode, made_for = mode_of(group.queue_arn, run, tags), ""
    if mode is None and group.is_found:
        made_for = _find_made_for(group.queue_arn, tags, run)
        mode = Mode.OBSERVE if made_for else None
    if mode is None:
        return declined("not_managed", "the queue is not managed by Mendq")
    lowest = min(mode, autonomy_of(group.symptom, run, mode))
    facts = Facts(group.queue_arn, {}, tags)
    return situation_of(group.symptom, facts, lowest, view, run, made_for=made_for)


def _find_made_for(queue_arn: str, tags: Mapping[str, str], run: FixContext) -> str:
    """Return the managed source that Mendq made this DLQ for, or an empty text."""
    try:
        named_by = source_arns_of(run.clients, queue_arn)
    except QueueGone:
        return ""
    made, consent = run.stored(MadeDlqs), run.settings.consent
    return made.managed_source(queue_arn, tags, named_by, run.clients, consent)


def mode_of(queue_arn: str, run: FixContext, tags: Mapping[str, str]) -> Mode | None:
    """How far settings and its tags let Mendq go on a queue; None: it is not managed."""
    return run.settings.consent.mode_of(parts_of(queue_arn).name, tags)


def autonomy_of(symptom: Symptom, run: FixContext, otherwise: Mode) -> Mode:
    """How far settings, or else the catalogue, let the symptom's plans go."""
    autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
    return otherwise if autonomy is None else autonomy


def as_found(
    group: Group, situation: Situation, facts: Facts, run: FixContext
) -> Situation | Outcome:
    """A scan only says where to look: what is there now is found here, or nothing is."""
    detection = group.symptom.detection
    found = detection.detect(facts) if detection else None
    if found is None:
        return declined("not_found", "the queue does not show it, or not any more")
    said = None if situation.open_case else _said_of_another(group, found.about, run)
    if said is not None:
        return Outcome(refusal=said)
    fresh = (Sighting.of_measurement(run.now),)
    facts = replace(facts, found=with_others(found.because, group.shared))
    return structs.replace(situation, facts=facts, evidence=Evidence(fresh), fresh=fresh)


def with_facts(situation: Situation, run: FixContext) -> Situation:
    """The situation with its queue's facts, and a change noted that excuses its failed calls.

    No more is read than the queue itself where nothing shows that it still is as it failed.
    Raises FactsUnavailable, CaseStoreUnavailable or QueueRefusesUs.
    """
    symptom, facts = situation.symptom, situation.facts
    try:
        if not situation.is_found:
            facts = reader_of(run).queue(facts.queue_arn, facts.tags, symptom.needs)
            looked_at = structs.replace(situation, facts=facts)
            if not looked_at.is_borne:
                return _with_changes(looked_at, run)
            facts = _gather_more(run, facts, symptom.needs)
    except QueueRefusesUs:
        if not symptom.notifies_anyway:
            raise
        facts = situation.facts
    facts = situation.view.with_what_calls_said(facts, situation.in_question)
    situation = structs.replace(situation, facts=facts)
    if not situation.is_borne:
        return _with_changes(situation, run)
    return with_own_change(situation, run)


def _with_changes(situation: Situation, run: FixContext) -> Situation:
    facts, symptom = situation.facts, situation.symptom.name
    if facts.modified_at is None or situation.open_case is not None:
        return situation
    changes = run.case_store.note_change(facts.queue_arn, symptom, facts.modified_at, run.now)
    return structs.replace(situation, changes=tuple(changes))


def _tags_of(group: Group, run: FixContext) -> Mapping[str, str] | None:
    """The queue's tags; none of one that keeps us out, where settings name it to be told of."""
    try:
        return tags_of(run.clients, group.queue_arn)
    except QueueRefusesUs:
        if group.symptom.notifies_anyway and mode_of(group.queue_arn, run, {}) is not None:
            return {}
        raise


def _found(group: Group, situation: Situation, run: FixContext) -> Situation | Outcome:
    """What would come to nothing anyway is not measured: each metric is billed."""
    symptom, tags, case = group.symptom, situation.facts.tags, situation.open_case
    last = situation.view.case
    if case is not None:
        noted = [each.event_time for each in situation.view.failures.sightings]
        if was_noted_lately(case, max(noted, default=None), run.now):
            return declined("case_already_open", f"case {case.case_id} is {case.state}")
    elif symptom.is_of_configuration and last is not None:
        changed_at = gather(run, group.queue_arn, tags, {Need.QUEUE}).modified_at
        if needs_no_look(last, situation.mode, run.now, changed_at):
            return declined("said_already", last.reason)
    facts = gather(run, group.queue_arn, tags, symptom.every_need)
    return as_found(group, situation, facts, run)


def _said_of_another(group: Group, about: str, run: FixContext) -> Refusal | None:
    """`about` is the queue that is missing, empty where none is; people are asked once for it.

    A scan names the queues with such a case; what it asks for, the case store says. A case of the
    queue's own comes first. Raises CaseStoreUnavailable or CaseStoreUnreadable.
    """
    for queue_arn in group.shared.open_at if about else ():
        case = run.case_store.look(queue_arn, group.symptom.name, ()).case
        if case is None or not case.is_open(run.now, run.settings.timing):
            continue
        if any(each.get("after") == about for each in case.steps):
            reason = f"case {case.case_id} of {queue_arn} asks for {about} already"
            return Ignore("said_of_another", reason)
    return None


def with_others(because: str, shared: Shared) -> str:
    """The sentence of a finding, with a few of the queues that it is said for as well."""
    if not shared.others:
        return because
    names = ", ".join(parts_of(each).name for each in shared.others)
    number = len(shared.others) + shared.more
    verb = "names" if number == 1 else "name"
    rest = f" and {shared.more:,} more" if shared.more else ""
    return f"{because}. {counted(number, 'other queue')} {verb} it too: {names}{rest}"
