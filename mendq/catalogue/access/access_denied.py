"""Callers are refused by a policy; which one decides whose matter it is.

What a policy grants is decided by people, and no statement is ever made up here: it pages, or puts
back, whole, what a person has pinned.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.catalogue.access.minimum_policy import before_granting
from mendq.catalogue.access.restore_policy import FINDINGS, granted_by_the_pin, leading, restoration
from mendq.catalogue.examples import AT, QUEUE_ARN, ROLE, failed_call, policy, queue
from mendq.catalogue.symptom import (
    Advice,
    CallExample,
    CallNearMiss,
    FixedSymptom,
    RefusalExample,
    Steps,
    carries_messages,
    seen_as_labelled,
)
from mendq.model.evidence import actions_allowing, has_identity_outside, name_first_few
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall, RefusedBy
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.policy import CheckedPin, Pin, QueueChange, digest_of
from mendq.model.queue import parts_of
from mendq.model.steps import RestorePolicy

# A new session's permissions take a moment to be known everywhere.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
SESSION_SETTLES = timedelta(seconds=60)


def is_evidence(call: FailedCall) -> bool:
    """Message traffic alone, and not while the caller's session is new."""
    created = call.session_created_at
    settled = created is None or call.event_time - created > SESSION_SETTLES
    return carries_messages(call) and settled


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The pinned policy, where nothing but its loss refused them; else a page."""
    restored: Plan | Refusal | str = ""
    if facts.refused_by == {RefusedBy.IDENTITY_POLICY}:
        restored = granted_by_the_pin(facts)
    elif facts.refused_by == {RefusedBy.NO_RESOURCE_POLICY}:
        because = FINDINGS[RefusedBy.NO_RESOURCE_POLICY].because
        restored = restoration(facts, f"{_refused(facts)}. {because}")
    return _page(facts, restored) if isinstance(restored, str) else restored


def _page(facts: Facts, about_the_pin: str) -> Refusal:
    first = leading(facts)
    finding, others = FINDINGS[first], ", ".join(sorted(facts.refused_by - {first}))
    sentences = (
        _refused(facts),
        finding.because,
        _missing_grant(facts) if finding.code.endswith("_lacks_grant") else "",
        f"Other calls were refused by {others}" if others else "",
        about_the_pin,
        f"Who called: {name_first_few(facts.principals)}",
    )
    return Escalate(finding.code, ". ".join(filter(None, sentences)), finding.command(facts))


def _refused(facts: Facts) -> str:
    actions = ", ".join(actions_allowing(facts.event_names)) or "the call"
    return f"{actions} on {facts.queue_arn} is refused"


def _missing_grant(facts: Facts) -> str:
    if has_identity_outside(parts_of(facts.queue_arn).account, facts.principals):
        return "A caller of another account needs it in the queue's policy and in its own"
    return "Of its own account, a caller needs it in one of the two: its own or the queue's"


_REFUSED_CALL = (
    "User: arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc is not authorized to "
    f"perform: sqs:sendmessage on resource: {QUEUE_ARN} "
)
_NO_GRANT = f"{_REFUSED_CALL}because no resource-based policy allows the sqs:sendmessage action"
_DENIED = f"{_REFUSED_CALL}with an explicit deny in a resource-based policy"


def _caught(title: str, says: str, facts: Facts, answer: Steps | str) -> CallExample:
    return CallExample(title, failed_call("SendMessage", "AccessDenied", says), facts, answer)


def _called(refused_by: RefusedBy, **over: Any) -> Facts:
    refused = frozenset({refused_by})
    return queue(principals=(ROLE,), event_names=("SendMessage",), refused_by=refused, **over)


_PINNED = policy(Sid="Workers", Principal={"AWS": ROLE}, Resource=QUEUE_ARN)
_STANDS = '{"Version": "2012-10-17", "Statement": []}'
_PIN = Pin(
    QUEUE_ARN,
    _PINNED,
    digest_of(_PINNED),
    generation=1,
    pinned_at=AT - timedelta(days=7),
    pinned_by="arn:aws:sts::123456789012:assumed-role/operators/ada",
    queue_created_at=AT - timedelta(days=90),
    queue_modified_at=AT - timedelta(days=8),
)
_DEPLOYED = QueueChange(AT - timedelta(hours=1), "SetQueueAttributes", ROLE, by_cloudformation=True)


def _overwritten(**pinned: Any) -> Facts:
    pin = CheckedPin(_PIN, **pinned)
    return _called(RefusedBy.NO_RESOURCE_POLICY, Policy=_STANDS, pin=pin)


_LOST, _UNTOLD = _overwritten(changed=_DEPLOYED), _overwritten(doubt="not told yet", passes=True)
_SILENT = _called(RefusedBy.NO_RESOURCE_POLICY)
_DENYING = _called(RefusedBy.RESOURCE_POLICY_DENIES)
_BACK = RestorePolicy(_STANDS, _PINNED)

ACCESS_DENIED = FixedSymptom(
    name="access_denied",
    sentence="Callers are refused by a policy, so their messages are neither sent nor handled.",
    plan_in_words="Page with the policy that refused, the grant that is missing and whose matter "
    "it is; or, where a deployment overwrote a policy that a person has pinned and that grants the "
    "call, put that one back byte for byte.",
    habit="keeps turning callers away",
    aws_page="https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html",
    seen_as=seen_as_labelled("access_denied"),
    needs=frozenset({Need.QUEUE, Need.PIN}),
    steps=(RestorePolicy,),
    plan=plan,
    notifies_anyway=True,
    is_evidence=is_evidence,
    shown_attributes=("Policy",),
    extra_sections=before_granting,
    advice_if_many=Advice(
        "Look for what these queues have in common: a role, a policy, an organization's."
    ),
    examples=lambda: (
        _caught("a deployment overwrote the pinned policy", _NO_GRANT, _LOST, (_BACK,)),
        _caught("it does not name the caller", _NO_GRANT, _SILENT, "queue_policy_lacks_grant"),
        _caught("the queue's policy denies", _DENIED, _DENYING, "queue_policy_denies"),
        RefusalExample("CloudTrail has not told yet who changed it", _UNTOLD, "pin_not_judged_yet"),
        CallNearMiss("a key's policy", failed_call("SendMessage", "KmsAccessDenied", _DENIED)),
        CallNearMiss(
            "in a parameter", failed_call("SendMessage", "InvalidParameterValue", _DENIED)
        ),
    ),
)
