"""Looks at one group's queue and ledger, and settles what a run that died has left there."""

from __future__ import annotations

from functions.aws.errors import LedgerUnreadable, QueueRefusesUs
from functions.aws.gather_facts import tags_of
from functions.aws.mending import Mending
from functions.aws.run import Group, Outcome, Run, declined
from functions.aws.unfinished import settle
from functions.healing import guardrails
from functions.healing.evidence import Evidence, Sighting
from functions.healing.ledger_view import LedgerView
from functions.healing.queue_names import parts_of


def look(group: Group, run: Run) -> Mending | Outcome:
    """What is known of a group's queue before it is decided; or why nothing is to be decided.

    Raises FactsUnavailable or LedgerUnavailable: then the group is to come again.
    """
    try:
        tags = tags_of(run.clients, group.queue_arn)
        if tags is None:
            return declined("queue_gone", "the queue is gone")
        view = _settled(group, run)
    except QueueRefusesUs as refused:
        return declined("queue_refuses_us", str(refused))
    except LedgerUnreadable as unreadable:
        return declined("ledger_unreadable", str(unreadable))
    if isinstance(view, Outcome):
        return view
    mode = run.consent.mode_of(parts_of(group.queue_arn).name, tags)
    refusal = guardrails.not_managed(mode)
    if refusal or mode is None:
        return Outcome(refusal=refusal)
    autonomy = run.settings.autonomy.get(group.symptom.name, group.symptom.autonomy)
    fresh = [each for each in group.calls if guardrails.is_fresh(each, run.now)]
    evidence = Evidence.of([*view.evidence.sightings, *map(Sighting.of, fresh)]).fresh(run.now)
    return Mending(group, run, tags, min(mode, autonomy), view, evidence, len(fresh))


def _settled(group: Group, run: Run) -> LedgerView | Outcome:
    """Before the queue's mode is asked for: what was written has to be told, whatever it is now."""
    view = run.ledger.look(group.queue_arn, group.symptom.name, group.attribute)
    intent = view.attribute.intent
    if intent is None or view.attribute.held_by_another(run.owner, run.now):
        return view
    return settle(view, intent, run)
