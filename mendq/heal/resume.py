"""The way in of every owner of a write: a case that was approved, or whose last step did not help.

The facts are gathered anew and every guardrail is asked again; only evidence is not, because the
case stands on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from mendq.aws.errors import CaseUnreadable
from mendq.aws.queue import tags_of
from mendq.cases.view import CaseStoreView, with_what_refused
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.apply import carry_out
from mendq.heal.assess import autonomy_of, decided, gather, mode_of, recover, situation_of
from mendq.heal.context import FixContext, Outcome, declined
from mendq.heal.decide import decide_unlooked, is_approved_by_person
from mendq.model.case import Case, State
from mendq.model.facts import Facts
from mendq.model.lifecycle import CALLING
from mendq.model.limits import Mode, counted_as
from mendq.model.plan import owner_of_case
from mendq.model.queue import arn_of


def named_in(request: Mapping[str, Any]) -> tuple[Symptom, str, str]:
    """The symptom, the queue and the case; raises CaseUnreadable for what is no request of ours."""
    asked = request if isinstance(request, Mapping) else {}
    symptom = BY_NAME.get(str(asked.get("symptom")))
    queue_arn, case_id = asked.get("queue_arn"), asked.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {request!s:.400}")
    if arn_of(queue_arn) is None:
        raise CaseUnreadable(f"no queue's ARN: {queue_arn[:200]}")
    return symptom, queue_arn, case_id


def take_up(request: Mapping[str, Any], run: FixContext) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`; raises CaseUnreadable, or what `apply` raises."""
    symptom, queue_arn, case_id = named_in(request)
    if not run.is_here(queue_arn):
        return declined("elsewhere", "the queue is in another account or region")
    looked = run.case_store.look(queue_arn, symptom.name, symptom.attributes)
    view = recover(looked, symptom, run)
    if isinstance(view, Outcome):
        return view
    case = view.case
    if case is None or case.case_id != case_id or case.state not in CALLING:
        return declined("moved_on", f"case {case_id} is not waiting for anybody")
    if owner_of_case(case.steps) is not run.whose:
        return declined("another_owner", f"case {case_id} is not {run.whose}'s to write")
    return _resume(case, symptom, view, run)


def _resume(case: Case, symptom: Symptom, view: CaseStoreView, run: FixContext) -> Outcome:
    tags = tags_of(run.clients, case.queue_arn)
    mode = _mode_of(case, symptom, tags, run)
    unlooked = Facts(case.queue_arn, {}, tags or {})
    situation = situation_of(symptom, unlooked, mode, view, run, waits=case)
    verdict = decide_unlooked(situation, is_gone=tags is None)
    if verdict is None:
        situation = structs.replace(
            situation, facts=_facts_of(case, symptom, view, unlooked.tags, run)
        )
        word = counted_as(symptom.name, unlooked.tags)
        verdict = decided(
            situation, run, lambda: run.case_store.spread_to([case.queue_arn], word, run.now)
        )
    return carry_out(verdict, situation, run)


def _mode_of(case: Case, symptom: Symptom, tags: Mapping[str, str] | None, run: FixContext) -> Mode:
    """A person's word lets a proposal be written; nothing lets an unmanaged queue be."""
    mode = mode_of(case.queue_arn, run, tags or {})
    if tags is None or mode is None or mode is Mode.OBSERVE:
        return Mode.OBSERVE
    if is_approved_by_person(case):
        return Mode.HEAL
    return min(mode, autonomy_of(symptom, run, Mode.OBSERVE))


def _facts_of(
    case: Case, symptom: Symptom, view: CaseStoreView, tags: Mapping[str, str], run: FixContext
) -> Facts:
    """What a scan found is looked for again as it was found; whether it is, the plan says."""
    detection = None if case.evidence["failed_calls"] else symptom.detection
    needs = symptom.every_need if detection else symptom.needs
    facts = gather(run, case.queue_arn, tags, needs)
    if detection:
        found = detection.detect(facts)
        facts = replace(facts, found=found.because if found else "")
    if case.state is State.APPROVED and "refused_by" in case.evidence:
        return with_what_refused(facts, case.evidence)
    return view.with_what_calls_said(facts, view.failures)
