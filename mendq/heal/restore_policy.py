"""Restore a pinned policy: check it with Access Analyzer, compare, then write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable, FactsUnavailable, QueueRefusesUs, code_of
from mendq.aws.queue import attributes_of
from mendq.cases.context import FixContext
from mendq.cases.pins import Pins
from mendq.cases.record import Notification, record_transition
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.heal.apply import write
from mendq.heal.outcome import Outcome
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Mode
from mendq.model.plan import Escalate, Refusal, Retry
from mendq.model.policy import doubt_without_history
from mendq.model.steps import AttributeStep, RestorePolicy
from mendq.notifications.announcements import severity_of

PASSED = "PASS"
# What Access Analyzer says of a text that it cannot take: an answer, and the same each time.
_NOT_TAKEN = frozenset(
    {"InvalidParameterException", "UnprocessableEntityException", "ValidationException"}
)
NOBODY = '{"Version": "2012-10-17", "Statement": []}'
_MOST_REASONS = 3


def refusal_to_write(clients: Clients, policy: str) -> Refusal | None:
    """Return a refusal unless Access Analyzer says that the policy gives no public access.

    It fails closed: every answer except PASS refuses. If Access Analyzer gives Mendq no answer, the
    refusal passes: a person's approval waits for it until it expires.
    """
    try:
        answer = clients.access_analyzer.check_no_public_access(
            policyDocument=policy, resourceType="AWS::SQS::Queue"
        )
    except (ClientError, BotoCoreError) as error:
        reason = f"Access Analyzer's CheckNoPublicAccess did not answer: {error}"
        if isinstance(error, ClientError) and code_of(error) in _NOT_TAKEN:
            return Escalate("access_not_checked", reason)
        return Retry("access_not_checked", reason)
    if answer.get("result") != PASSED:
        reason = f"the policy does not pass CheckNoPublicAccess: {_said(answer)}"
        return Escalate("access_check_failed", reason)
    return None


def check_restored_policy(outcome: Outcome, run: FixContext) -> Outcome:
    """Have Access Analyzer check the queue's policy after a restore. Return the outcome.

    If it finds the policy public, the case is escalated: a person decides about it.

    Raises:
        CaseMoved, CaseStoreUnavailable, NotificationNotSent: The case could not be escalated.
    """
    case = outcome.case
    if case is None or case.state is not State.APPLIED:
        return outcome
    attributes: Mapping[str, str] = {}
    try:
        attributes = attributes_of(run.clients, case.queue_arn)
        refusal = refusal_to_write(run.clients, attributes.get("Policy") or NOBODY)
    except (FactsUnavailable, QueueRefusesUs) as error:
        refusal = Retry("access_not_checked", f"what stands there could not be read: {error}")
    if not isinstance(refusal, Escalate):
        word = refusal.reason if refusal else "Access Analyzer finds what stands there not public"
        return Outcome(replace(case, reason=f"{case.reason}. {word}"))
    said = f"it was put back, and as it stands there {refusal.reason}"
    moved = case.move_to(State.ESCALATED, said, run.just_now, actor=run.writer, code=refusal.code)
    severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
    notice = Notification(ACCESS_DENIED, Facts(case.queue_arn, attributes), severity)
    view = run.case_store.look(case.queue_arn, case.symptom, ACCESS_DENIED.attributes)
    return Outcome(record_transition(moved, view, notice, run), refusal)


def new_access(clients: Clients, stands: str, policy: str) -> str:
    """Return AWS's words on the access that a policy would add. Never raise.

    It informs the person who approves and vetoes nothing: the restored policy is meant to add the
    access that is missing.
    """
    try:
        answer = clients.access_analyzer.check_no_new_access(
            newPolicyDocument=policy,
            existingPolicyDocument=stands or NOBODY,
            policyType="RESOURCE_POLICY",
        )
    except (ClientError, BotoCoreError) as error:
        return f"CheckNoNewAccess did not answer: {error}"
    return f"{answer.get('result')}: {_said(answer)}"


def _said(answer: Mapping[str, Any]) -> str:
    reasons = [str(each.get("description", "")) for each in answer.get("reasons", [])]
    sentences = [str(answer.get("message", "")), *reasons[:_MOST_REASONS]]
    return "; ".join(each.rstrip(". ") for each in sentences)


class PolicyWriter(Struct, frozen=True):
    """Writes a queue's policy. Nothing else in Mendq does."""

    pins: Pins
    now: datetime

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Restore the pinned policy. Return a refusal if nothing was written.

        Raises:
            FactsUnavailable, StepFailed: As `apply.write` raises them.
            CaseStoreUnavailable: The pin could not be read.
        """
        if refusal := self._not_behind(seen, steps):
            return refusal
        (step,) = steps
        return refusal_to_write(clients, str(step.after)) or write(clients, seen, steps)

    def _not_behind(self, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
        """Return a refusal unless the one step restores the pin that the case store holds now."""
        try:
            pin, gathered = self.pins.of(seen.queue_arn), seen.pin
        except CaseStoreUnreadable:
            return _not_pinned("its pin cannot be read")
        if len(steps) != 1 or not isinstance(steps[0], RestorePolicy):
            return _not_pinned("only a policy is restored, and nothing beside it")
        if pin is None or gathered is None or pin != gathered.pin:
            return _not_pinned("the pin was changed or taken away meanwhile")
        doubt = gathered.doubt or doubt_without_history(
            pin, seen.queue_arn, seen.created_at, self.now
        )
        if doubt:
            return _not_pinned(f"the pin may not be restored: {doubt}")
        if steps[0].after != pin.policy:
            return _not_pinned("what was to be written is not the pinned text")
        return None


def _not_pinned(reason: str) -> Refusal:
    return Escalate("pin_not_good", reason)
