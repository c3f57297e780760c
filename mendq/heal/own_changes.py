"""Find a change by Mendq that may have caused the symptom, before it is reported."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from mendq.aws.errors import CaseStoreUnreadable
from mendq.model.harms import CAUSED, attributes_behind, change_behind, may_be_behind
from mendq.model.queue import arn_of

if TYPE_CHECKING:
    from mendq.heal.context import FixContext
    from mendq.heal.guardrails import Situation
    from mendq.model.facts import Facts
    from mendq.model.own_change import OwnChange


def with_own_change(situation: Situation, run: FixContext) -> Situation:
    """Return the situation with Mendq's newest change that can have caused the symptom, if any.

    If the cases cannot be read, the finding is reported without a change.

    Raises:
        CaseStoreUnavailable: The case store gives no answer.
    """
    if not situation.facts.exists or not _is_worth_a_look(situation):
        return situation
    change = None
    with suppress(CaseStoreUnreadable):
        change = _change_behind(situation.symptom.name, situation.facts, run)
    if change is None:
        return situation
    return structs.replace(situation, facts=replace(situation.facts, own_change=change))


def _is_worth_a_look(situation: Situation) -> bool:
    """Return False if no step causes the symptom, or if Mendq's records show no such write."""
    symptom = situation.symptom.name
    if symptom not in CAUSED:
        return False
    attributes, records = attributes_behind(symptom), situation.records
    if attributes is None or not attributes <= records.attributes.keys():
        return True
    return any(records.record_of(name).writes for name in attributes)


def _change_behind(symptom: str, facts: Facts, run: FixContext) -> OwnChange | None:
    newest = run.open_cases.newest_about(_queues_around(facts))
    suspected = [case for case in newest if may_be_behind(case, symptom, facts)]
    histories = [run.open_cases.transitions(case.case_id) for case in suspected]
    return change_behind(symptom, facts, histories, run.now, run.settings.timing)


def _queues_around(facts: Facts) -> list[str]:
    """Return the queue, its sources and its own DLQ. A redrive is a case about the DLQ."""
    named = [facts.queue_arn, *facts.source_arns]
    if (dlq_arn := arn_of(facts.dlq_arn)) is not None:
        named.append(dlq_arn)
    return list(dict.fromkeys(named))
