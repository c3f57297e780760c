"""Restore a pinned policy: check it with Access Analyzer, compare, then write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable, is_passing
from mendq.cases.pins import Pins
from mendq.heal.apply import write
from mendq.model.facts import Facts
from mendq.model.plan import Escalate, Refusal, Retry
from mendq.model.policy import Pin, doubt_at_once
from mendq.model.steps import AttributeStep, RestorePolicy

PASSED = "PASS"
_MOST_REASONS = 3


def refusal_to_write(clients: Clients, policy: str, approved: str) -> Refusal | None:
    """None where the policy lets no outsider in and adds no access to the approved one.

    Fails closed: whatever is not a PASS refuses, for now where AWS may answer another time.
    """
    analyzer = clients.access_analyzer
    checks: dict[str, Callable[[], Mapping[str, Any]]] = {
        "CheckNoPublicAccess": lambda: analyzer.check_no_public_access(
            policyDocument=policy, resourceType="AWS::SQS::Queue"
        ),
        "CheckNoNewAccess": lambda: analyzer.check_no_new_access(
            newPolicyDocument=policy, existingPolicyDocument=approved, policyType="RESOURCE_POLICY"
        ),
    }
    for name, check in checks.items():
        try:
            answer = check()
        except (ClientError, BotoCoreError) as error:
            reason = f"Access Analyzer's {name} of the pinned policy did not answer: {error}"
            if is_passing(error):
                return Retry("access_not_checked", reason)
            return Escalate("access_not_checked", reason)
        if answer.get("result") != PASSED:
            reason = f"the pinned policy does not pass Access Analyzer's {name}: {_said(answer)}"
            return Escalate("access_check_failed", reason)
    return None


def _said(answer: Mapping[str, Any]) -> str:
    reasons = [str(each.get("description", "")) for each in answer.get("reasons", [])]
    sentences = [str(answer.get("message", "")), *reasons[:_MOST_REASONS]]
    return "; ".join(each.rstrip(". ") for each in sentences)


class PolicyWriter(Struct, frozen=True):
    """The one way in which a policy is ever written."""

    pins: Pins
    now: datetime

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Restore it: None when the pinned text stands there; else why nothing was written.

        Raises as `apply.write` does, and CaseStoreUnavailable.
        """
        pin = self._pin_behind(seen, steps)
        if isinstance(pin, Refusal):
            return pin
        (step,) = steps
        return refusal_to_write(clients, str(step.after), pin.policy) or write(clients, seen, steps)

    def _pin_behind(self, seen: Facts, steps: Sequence[AttributeStep]) -> Pin | Refusal:
        """The pin that the one step restores, as the case store holds it at this moment."""
        try:
            pin, gathered = self.pins.of(seen.queue_arn), seen.pin
        except CaseStoreUnreadable:
            return _not_pinned("its pin cannot be read")
        if len(steps) != 1 or not isinstance(steps[0], RestorePolicy):
            return _not_pinned("only a policy is restored, and nothing beside it")
        if pin is None or gathered is None or pin != gathered.pin:
            return _not_pinned("the pin was changed or taken away meanwhile")
        doubt = gathered.doubt or doubt_at_once(pin, seen.queue_arn, seen.created_at, self.now)
        if doubt:
            return _not_pinned(f"the pin may not be restored: {doubt}")
        if steps[0].after != pin.policy:
            return _not_pinned("what was to be written is not the pinned text")
        return pin


def _not_pinned(reason: str) -> Refusal:
    return Escalate("pin_not_good", reason)
