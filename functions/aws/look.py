"""Looks at one group's queue and ledger, and settles what a run that died has left there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from functions.aws.errors import LedgerUnreadable, PageNotSent, QueueRefusesUs
from functions.aws.filing import try_to_file_owed
from functions.aws.gather_facts import gather
from functions.aws.mending import Mending
from functions.aws.queue_look import tags_of
from functions.aws.run import Group, Outcome, Run, declined
from functions.aws.said_elsewhere import said_of_another
from functions.aws.unfinished import settle
from functions.healing import guardrails
from functions.healing.evidence import Evidence, Sighting
from functions.healing.facts import Need
from functions.healing.ledger_view import LedgerView
from functions.healing.mode import Mode
from functions.healing.queue_names import parts_of
from functions.healing.repeats import needs_no_look, was_noted_lately
from functions.healing.shared_target import with_others


def look(group: Group, run: Run) -> Mending | Outcome:
    """What is known of a group's queue before it is decided; or why nothing is to be decided.

    Raises FactsUnavailable or LedgerUnavailable: then the group is to come again.
    """
    try:
        return _looked(group, run)
    except QueueRefusesUs as refused:
        return declined("queue_refuses_us", str(refused))
    except LedgerUnreadable as unreadable:
        return declined("ledger_unreadable", str(unreadable))


def _looked(group: Group, run: Run) -> Mending | Outcome:
    tags = _tags_of(group, run)
    if tags is None and group.symptom.needs:
        return declined("queue_gone", "the queue is gone")
    view = _settled(group, run)
    if isinstance(view, Outcome):
        return view
    name = parts_of(group.queue_arn).name
    if tags is None and view.known is None and not run.consent.names_exactly(name):
        return declined("never_seen", "no such queue was ever seen, and no setting names it alone")
    mode = run.consent.mode_of(name, tags or {})
    refusal = guardrails.not_managed(mode)
    if refusal or mode is None:
        return Outcome(refusal=refusal)
    return _undecided(group, run, tags or {}, mode, view)


def _tags_of(group: Group, run: Run) -> Mapping[str, str] | None:
    """Of a queue that keeps us out too, people are to be told where settings name it."""
    try:
        return tags_of(run.clients, group.queue_arn)
    except QueueRefusesUs:
        named = run.consent.mode_of(parts_of(group.queue_arn).name, {}) is not None
        if not (group.symptom.pages_anyway and named):
            raise
        return {}


def _undecided(
    group: Group, run: Run, tags: Mapping[str, str], mode: Mode, view: LedgerView
) -> Mending | Outcome:
    symptom = group.symptom
    autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
    lowest = mode if autonomy is None else min(mode, autonomy)
    if group.is_found:
        return _found(Mending(group, run, tags, lowest, view, Evidence(), ()))
    fresh = tuple(
        Sighting.of(each)
        for each in group.calls
        if guardrails.is_fresh(each, run.now) and symptom.speaks(each)
    )
    evidence = Evidence.of([*view.evidence.sightings, *fresh]).fresh(run.now)
    return Mending(group, run, tags, lowest, view, evidence, fresh)


def _found(mending: Mending) -> Mending | Outcome:
    """A sweep only says where to look: what is there now is found here, or nothing is."""
    symptom, run = mending.group.symptom, mending.run
    refusal = _not_to_be_measured(mending)
    if refusal is not None:
        return refusal
    facts = gather(run, mending.group.queue_arn, mending.tags, symptom.every_need)
    found = symptom.detection.detect(facts) if symptom.detection else None
    if found is None:
        return declined("not_found", "the queue does not show it, or not any more")
    said = None if mending.open_case else said_of_another(mending.group, found.about, run)
    if said is not None:
        return Outcome(refusal=said)
    fresh = (Sighting.of_measurement(run.now),)
    return replace(
        mending,
        evidence=Evidence(fresh),
        fresh=fresh,
        found_facts=replace(facts, found=with_others(found.because, mending.group.shared)),
    )


def _not_to_be_measured(mending: Mending) -> Outcome | None:
    """What would come to nothing anyway; each metric is billed, and a sweep finds it each hour."""
    run, case = mending.run, mending.open_case
    if case is not None:
        noted = [each.event_time for each in mending.view.failures.sightings]
        if was_noted_lately(case, max(noted, default=None), run.now):
            return declined("case_already_open", f"case {case.case_id} is {case.state}")
        return None
    if not mending.group.symptom.is_of_configuration or mending.view.case is None:
        return None
    facts = gather(run, mending.group.queue_arn, mending.tags, {Need.QUEUE})
    last = mending.view.case
    if needs_no_look(last, mending.mode, run.now, facts.modified_at):
        return declined("said_already", last.reason)
    return None


def _settled(group: Group, run: Run) -> LedgerView | Outcome:
    """Before the queue's mode is asked for: what was written has to be told, whatever it is now."""
    view = run.ledger.look(group.queue_arn, group.symptom.name, group.attributes)
    view = try_to_file_owed(view, run)
    with suppress(PageNotSent):  # a queue must not go unmended because nobody can be told
        run.pager.send_left_unsent(group.queue_arn, group.symptom.name, view.page, view.case)
    if view.intent is None or view.held_by_another(run.owner, run.now):
        return view
    return settle(view, view.intent, group.symptom, run)
