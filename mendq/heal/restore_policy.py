"""Restore a pinned policy: compare it with the pin, check it with Access Analyzer, then write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable, FactsUnavailable, QueueRefusesUs, error_code_of
from mendq.aws.queue import read_queue_attributes
from mendq.cases.context import FixContext
from mendq.cases.pins import Pins
from mendq.cases.record import Notification, record_transition
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.heal.apply import write_attributes
from mendq.heal.outcome import Outcome
from mendq.model.facts import Facts
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Refusal, Retry
from mendq.model.policy import find_pin_doubt_without_history
from mendq.model.state import State
from mendq.model.steps import AttributeStep, RestorePolicy
from mendq.notifications.announcements import choose_severity

# Access Analyzer's answer for a policy that gives no public access.
PASSED_RESULT = "PASS"
# Access Analyzer's error codes for a text that it can never check, so that a retry does not help.
_PERMANENT_ERROR_CODES = frozenset(
    {"InvalidParameterException", "UnprocessableEntityException", "ValidationException"}
)
# A policy that gives nobody access.
EMPTY_POLICY = '{"Version": "2012-10-17", "Statement": []}'
_MAXIMUM_REASON_COUNT = 3


def refuse_public_policy(clients: Clients, policy: str) -> Refusal | None:
    """Return a refusal unless Access Analyzer finds that the policy gives no public access.

    The refusal is an `Escalate` for every answer except PASS, and for an error that means that
    Access Analyzer can never check the text. If Access Analyzer does not answer, the refusal is a
    `Retry`: an approved case then waits until its approval expires.
    """
    try:
        analyzer_answer = clients.access_analyzer.check_no_public_access(
            policyDocument=policy, resourceType="AWS::SQS::Queue"
        )
    except (ClientError, BotoCoreError) as error:
        reason = f"Access Analyzer's CheckNoPublicAccess did not answer: {error}"
        if isinstance(error, ClientError) and error_code_of(error) in _PERMANENT_ERROR_CODES:
            return Escalate("access_not_checked", reason)
        return Retry("access_not_checked", reason)
    if analyzer_answer.get("result") != PASSED_RESULT:
        analyzer_reasons = _join_analyzer_reasons(analyzer_answer)
        reason = f"the policy does not pass CheckNoPublicAccess: {analyzer_reasons}"
        return Escalate("access_check_failed", reason)
    return None


def check_restored_policy(outcome: Outcome, run: FixContext) -> Outcome:
    """Ask Access Analyzer about the queue's policy after a restore. Return the new outcome.

    If Access Analyzer does not pass the policy, escalate the case, so that a person decides. If it
    passes the policy, does not answer, or the policy cannot be read, add this to the returned
    case's reason. Return an outcome without an `applied` case unchanged.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The case could not be escalated.
        NotificationNotSent: The case was escalated, but SNS did not accept the notification.
    """
    case = outcome.case
    if case is None or case.state is not State.APPLIED:
        return outcome
    attributes: Mapping[str, str] = {}
    try:
        attributes = read_queue_attributes(run.clients, case.queue_arn)
        refusal = refuse_public_policy(run.clients, attributes.get("Policy") or EMPTY_POLICY)
    except (FactsUnavailable, QueueRefusesUs) as error:
        refusal = Retry("access_not_checked", f"what stands there could not be read: {error}")
    if not isinstance(refusal, Escalate):
        check_text = (
            refusal.reason if refusal else "Access Analyzer finds what stands there not public"
        )
        return Outcome(replace(case, reason=f"{case.reason}. {check_text}"))
    reason = f"it was put back, and as it stands there {refusal.reason}"
    escalated_case = case.move_to(
        State.ESCALATED, reason, run.clock_time, actor=run.writer, code=refusal.code
    )
    severity = choose_severity(escalated_case, Mode.HEAL, is_about_plan=True)
    notification = Notification(ACCESS_DENIED, Facts(case.queue_arn, attributes), severity)
    view = run.case_store.look(case.queue_arn, case.symptom, ACCESS_DENIED.attributes)
    return Outcome(record_transition(escalated_case, view, notification, run), refusal)


def describe_new_access(clients: Clients, current_policy: str, new_policy: str) -> str:
    """Return Access Analyzer's sentences about the access that a policy would add.

    They inform the person who approves the case. They do not prevent the restore, because a
    restored policy must add the access that is missing. Errors of AWS become a sentence too.

    Args:
        clients: The clients of this invocation.
        current_policy: The queue's present policy, or an empty text.
        new_policy: The policy to restore.
    """
    try:
        analyzer_answer = clients.access_analyzer.check_no_new_access(
            newPolicyDocument=new_policy,
            existingPolicyDocument=current_policy or EMPTY_POLICY,
            policyType="RESOURCE_POLICY",
        )
    except (ClientError, BotoCoreError) as error:
        return f"CheckNoNewAccess did not answer: {error}"
    return f"{analyzer_answer.get('result')}: {_join_analyzer_reasons(analyzer_answer)}"


def _join_analyzer_reasons(analyzer_answer: Mapping[str, Any]) -> str:
    """Return Access Analyzer's message and the first reasons, joined by semicolons."""
    reasons = [str(reason.get("description", "")) for reason in analyzer_answer.get("reasons", [])]
    message_and_reasons = [
        str(analyzer_answer.get("message", "")),
        *reasons[:_MAXIMUM_REASON_COUNT],
    ]
    return "; ".join(sentence.rstrip(". ") for sentence in message_and_reasons)


class PolicyWriter(Struct, frozen=True):
    """Writes a pinned policy to a queue. No other code of Mendq writes a policy."""

    pins: Pins
    now: datetime

    def write(
        self, clients: Clients, facts_when_planned: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Write the pinned policy to the queue. Return a refusal if nothing was written.

        Raises:
            FactsUnavailable, QueueRefusesUs, StepFailed: See `apply.write_attributes`.
            CaseStoreUnavailable: The pin could not be read.
        """
        refusal = self._refuse_unless_pinned(facts_when_planned, steps)
        if refusal:
            return refusal
        (step,) = steps
        return refuse_public_policy(clients, str(step.after)) or write_attributes(
            clients, facts_when_planned, steps
        )

    def _refuse_unless_pinned(
        self, facts_when_planned: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Return a refusal unless the only step restores the pin that is stored now.

        Return a refusal also if the pin is doubtful, for example because it expired.
        """
        try:
            stored_pin = self.pins.load(facts_when_planned.queue_arn)
        except CaseStoreUnreadable:
            return _make_pin_refusal("its pin cannot be read")
        checked_pin = facts_when_planned.pin
        if len(steps) != 1 or not isinstance(steps[0], RestorePolicy):
            return _make_pin_refusal("only a policy is restored, and nothing beside it")
        if stored_pin is None or checked_pin is None or stored_pin != checked_pin.pin:
            return _make_pin_refusal("the pin was changed or taken away meanwhile")
        pin_doubt = checked_pin.doubt or find_pin_doubt_without_history(
            stored_pin, facts_when_planned.queue_arn, facts_when_planned.created_at, self.now
        )
        if pin_doubt:
            return _make_pin_refusal(f"the pin may not be restored: {pin_doubt}")
        if steps[0].after != stored_pin.policy:
            return _make_pin_refusal("what was to be written is not the pinned text")
        return None


def _make_pin_refusal(reason: str) -> Refusal:
    """Return the refusal to restore a policy from its pin."""
    return Escalate("pin_not_good", reason)
