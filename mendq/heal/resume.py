"""Continue a waiting case, in the Lambda that writes its next step.

The case waits because it was approved, or because its last step did not help. The queue's facts are
read again, and all guardrails about the plan are checked again. No new evidence is needed, because
the case was opened with evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import structs

from mendq.aws.errors import CaseUnreadable
from mendq.aws.queue import read_queue_tags
from mendq.cases.context import FixContext
from mendq.cases.spread import Reach
from mendq.cases.view import (
    CaseStoreView,
    add_refusals,
    restore_delete_interval,
    restore_refused_function,
)
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.apply import carry_out_decision
from mendq.heal.decide import RecordTransition
from mendq.heal.gather import (
    add_reach,
    find_autonomy,
    find_mode,
    gather_and_decide,
    gather_facts,
    make_situation,
)
from mendq.heal.outcome import Outcome, make_declined_outcome
from mendq.heal.recover import recover_left_claim
from mendq.heal.rollback import roll_back_unhelpful_change
from mendq.heal.shared_default import read_shared_cases
from mendq.heal.situation import Situation
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.lifecycle import STATES_THAT_CALL_OWNER
from mendq.model.mode import Mode
from mendq.model.plan import owner_of_case
from mendq.model.queue import queue_arn_or_none
from mendq.model.state import State


def read_case_request(request: Mapping[str, Any]) -> tuple[Symptom, str, str]:
    """Read a request. Return its symptom, the queue's ARN and the case's id.

    Raises:
        CaseUnreadable: The request lacks one of these values, the symptom is not in the catalogue,
            or the ARN is not that of a queue.
    """
    request_fields = request if isinstance(request, Mapping) else {}
    symptom = SYMPTOM_BY_NAME.get(str(request_fields.get("symptom")))
    queue_arn = request_fields.get("queue_arn")
    case_id = request_fields.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {request!s:.400}")
    if queue_arn_or_none(queue_arn) is None:
        raise CaseUnreadable(f"no queue's ARN: {queue_arn[:200]}")
    return symptom, queue_arn, case_id


def continue_case(request: Mapping[str, Any], run: FixContext) -> Outcome:
    """Continue a case, and return the outcome.

    Args:
        request: `{"case_id", "queue_arn", "symptom"}`.
        run: This invocation.

    Raises:
        CaseUnreadable: The request is malformed (`read_case_request`).
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The caller must
            try again.
        QueueRefusesUs, CaseStoreUnreadable: The queue or the case store's items cannot be read.
    """
    symptom, queue_arn, case_id = read_case_request(request)
    if not run.is_here(queue_arn):
        return make_declined_outcome("elsewhere", "the queue is in another account or region")
    view = run.case_store.look(queue_arn, symptom.name, symptom.attributes)
    recovered_view = recover_left_claim(view, symptom, run)
    if isinstance(recovered_view, Outcome):
        return recovered_view
    case = recovered_view.case
    if case is None or case.case_id != case_id or case.state not in STATES_THAT_CALL_OWNER:
        return make_declined_outcome("moved_on", f"case {case_id} is not waiting for anybody")
    if owner_of_case(case.steps) is not run.writer:
        return make_declined_outcome(
            "another_owner", f"case {case_id} is not {run.writer}'s to write"
        )
    return _continue_waiting_case(case, symptom, recovered_view, run)


def _continue_waiting_case(
    case: Case, symptom: Symptom, view: CaseStoreView, run: FixContext
) -> Outcome:
    """Decide about the waiting case, and carry out the decision."""
    tags = read_queue_tags(run.clients, case.queue_arn)
    mode = _find_case_mode(case, symptom, tags, run)
    facts = Facts(case.queue_arn, {}, tags or {})
    situation = make_situation(
        symptom,
        facts,
        mode,
        view,
        run,
        waiting_case=case,
        is_queue_gone=tags is None,
        shared_cases=read_shared_cases(case, run),
    )
    decision, situation = gather_and_decide(
        situation,
        read_queue=partial(_read_and_add_facts, case=case, run=run),
        count_queues=partial(_count_affected_queues, run=run),
    )
    if isinstance(decision, RecordTransition) and decision.must_roll_back:
        rolled_back_case = roll_back_unhelpful_change(decision.case, run)
        if rolled_back_case is not None:
            return Outcome(rolled_back_case, decision.refusal)
    return carry_out_decision(decision, situation, run)


def _find_case_mode(
    case: Case, symptom: Symptom, tags: Mapping[str, str] | None, run: FixContext
) -> Mode:
    """Return the mode for the case: HEAL if Mendq may write its next step.

    The mode is OBSERVE if the queue does not exist, is not managed, or is only observed. Otherwise
    it is HEAL if a person approved the case, or else the queue's mode limited by the symptom's
    autonomy.
    """
    mode = find_mode(case.queue_arn, run, tags or {})
    if tags is None or mode is None or mode is Mode.OBSERVE:
        return Mode.OBSERVE
    if case.is_approved_by_person:
        return Mode.HEAL
    return min(mode, find_autonomy(symptom, run, Mode.OBSERVE))


def _read_and_add_facts(situation: Situation, case: Case, run: FixContext) -> Situation:
    """Return the situation with the queue's facts, read again.

    If a scan found the symptom, run its detection again, because the plan depends on the result.
    """
    symptom = situation.symptom
    scan_detection = None if case.evidence["failed_calls"] else symptom.detection
    needs = symptom.all_needs if scan_detection else symptom.needs
    facts = gather_facts(run, case.queue_arn, situation.facts.tags, needs)
    if scan_detection:
        fault = scan_detection.find_fault(facts, run.now)
        facts = replace(facts, found=fault.because if fault else "")
    if case.state is State.APPROVED and "refused_by" in case.evidence:
        facts = add_refusals(facts, case.evidence)
    else:
        facts = situation.view.add_facts_of_calls(facts, situation.view.failures)
    if case.state is State.APPROVED:
        facts = restore_delete_interval(facts, case.evidence)
        facts = restore_refused_function(facts, case.evidence)
    return structs.replace(situation, facts=facts, are_facts_read=True)


def _count_affected_queues(situation: Situation, run: FixContext) -> Situation:
    """Note that the queue shows the symptom, and count the queues that showed it in the last hour.

    The queues of a shared default that a person approved are neither noted nor counted.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable, FactsUnavailable: The queues could not be
            counted.
    """
    facts = situation.facts
    if situation.approved_shared_default is not None:
        # Its cause is known, and a person was shown all of its queues: it is no mass symptom, and
        # must not make one of other queues' cases.
        return situation.with_reach(Reach(), run.remaining_seconds())
    spread = run.case_store.note_spread([facts.queue_arn], situation.mass_symptom_key, run.now)
    return add_reach(situation, spread, run)
