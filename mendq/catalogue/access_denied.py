"""Callers are refused by a policy; which one decides whose matter it is.

What a policy grants is decided by people, and no statement is ever made up here: it pages, or puts
back, whole, what a person has pinned.
https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from mendq.catalogue import examples
from mendq.catalogue._restore_policy import Finding, granted_by_the_pin, leading, restoration
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from mendq.model.evidence import MESSAGE_TRAFFIC, are_strangers_to, granted_by, named
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall, RefusedBy
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.policy import Pin, Pinned, QueueChange, digest_of
from mendq.model.queue import parts_of
from mendq.model.steps import RestorePolicy

# A new session's permissions take a moment to be known everywhere.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
SESSION_SETTLES = timedelta(seconds=60)


def speaks(call: FailedCall) -> bool:
    """Message traffic alone, and not while the caller's session is new."""
    created = call.session_created_at
    settled = created is None or call.event_time - created > SESSION_SETTLES
    return call.event_name in MESSAGE_TRAFFIC and settled


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The pinned policy, where nothing but its loss refused them; else a page."""
    finding = leading(facts)
    restored = _restored(facts, finding)
    return _page(facts, finding, restored) if isinstance(restored, str) else restored


def _restored(facts: Facts, finding: Finding) -> Plan | Refusal | str:
    if facts.refused_by == {RefusedBy.IDENTITY_POLICY}:
        return granted_by_the_pin(facts)
    if facts.refused_by != {RefusedBy.NO_RESOURCE_POLICY}:
        return ""
    return restoration(facts, f"{_refused(facts)}. {finding.because}")


def _page(facts: Facts, finding: Finding, about_the_pin: str) -> Refusal:
    sentences = [
        _refused(facts),
        finding.because,
        *_missing_grant(facts, finding),
        *_other_refusals(facts, finding),
        *([about_the_pin] if about_the_pin else []),
        f"Who called: {named(facts.principals)}",
    ]
    reason = ". ".join(sentences)
    return Escalate(finding.code, reason, next_command=finding.look(facts))


def _refused(facts: Facts) -> str:
    actions = ", ".join(granted_by(facts.event_names)) or "the call"
    return f"{actions} on {facts.queue_arn} is refused"


def _missing_grant(facts: Facts, finding: Finding) -> list[str]:
    if not finding.lacks_a_grant:
        return []
    if are_strangers_to(parts_of(facts.queue_arn).account, facts.principals):
        return ["A caller of another account needs it in the queue's policy and in its own"]
    return ["Of its own account, a caller needs it in one of the two: its own or the queue's"]


def _other_refusals(facts: Facts, finding: Finding) -> list[str]:
    others = sorted(facts.refused_by - {finding.refused_by})
    return [f"Other calls were refused by {', '.join(others)}"] if others else []


_REFUSED_CALL = (
    "User: arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc is not authorized to "
    f"perform: sqs:sendmessage on resource: {examples.QUEUE_ARN} "
)
_NOT_GRANTED = f"{_REFUSED_CALL}because no resource-based policy allows the sqs:sendmessage action"
_DENIED = f"{_REFUSED_CALL}with an explicit deny in a resource-based policy"
_CALLED = replace(
    examples.queue(),
    principals=("arn:aws:iam::123456789012:role/orders-worker",),
    event_names=("SendMessage",),
)
_STATEMENT = {
    "Sid": "Workers",
    "Effect": "Allow",
    "Principal": {"AWS": _CALLED.principals[0]},
    "Action": list(granted_by(_CALLED.event_names)),
    "Resource": examples.QUEUE_ARN,
}
_PINNED = json.dumps({"Version": "2012-10-17", "Statement": [_STATEMENT]})
_STANDS = json.dumps({"Version": "2012-10-17", "Statement": []})
_PIN = Pin(
    examples.QUEUE_ARN,
    _PINNED,
    digest_of(_PINNED),
    generation=1,
    pinned_at=examples.AT - timedelta(days=7),
    pinned_by="arn:aws:sts::123456789012:assumed-role/operators/ada",
    queue_created_at=examples.AT - timedelta(days=90),
    queue_modified_at=examples.AT - timedelta(days=8),
)
_DEPLOYED = QueueChange(
    examples.AT - timedelta(hours=1),
    "SetQueueAttributes",
    "arn:aws:iam::123456789012:role/deploys",
    by_cloudformation=True,
)
_OVERWRITTEN = replace(
    _CALLED,
    attributes={**_CALLED.attributes, "Policy": _STANDS},
    refused_by=frozenset({RefusedBy.NO_RESOURCE_POLICY}),
    pin=Pinned(_PIN, changed=_DEPLOYED, is_settled=True),
)

ACCESS_DENIED = Symptom(
    name="access_denied",
    sentence="Callers are refused by a policy, so their messages are neither sent nor handled.",
    plan_in_words="Page with the policy that refused, the grant that is missing and whose matter "
    "it is; or, where a deployment overwrote a policy that a person has pinned and that grants the "
    "call, put that one back byte for byte.",
    aws_page="https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html",
    seen_as=seen_as_labelled("access_denied"),
    needs=frozenset({Need.QUEUE, Need.PIN}),
    steps=(RestorePolicy,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    notifies_callers=True,
    speaks=speaks,
    shows=("Policy",),
    mass_advice="Look for what these queues have in common: a role, a policy, an organization's.",
    caught=(
        Caught(
            "a deployment overwrote the policy that a person has pinned",
            examples.failed_call("SendMessage", "AccessDenied", _NOT_GRANTED),
            _OVERWRITTEN,
            (RestorePolicy(_STANDS, _PINNED),),
        ),
        Caught(
            "somebody changed the policy after it was pinned",
            examples.failed_call("SendMessage", "AccessDenied", _NOT_GRANTED),
            replace(_OVERWRITTEN, pin=Pinned(_PIN, "a person has changed it since")),
            code="queue_policy_lacks_grant",
        ),
        Caught(
            "the queue's policy does not name the caller",
            examples.failed_call("SendMessage", "AccessDenied", _NOT_GRANTED),
            replace(_CALLED, refused_by=frozenset({RefusedBy.NO_RESOURCE_POLICY})),
            code="queue_policy_lacks_grant",
        ),
        Caught(
            "the queue's policy denies",
            examples.failed_call("SendMessageBatch", "AccessDeniedException", _DENIED),
            replace(_CALLED, refused_by=frozenset({RefusedBy.RESOURCE_POLICY_DENIES})),
            code="queue_policy_denies",
        ),
        Caught(
            "nobody says which policy it was",
            examples.failed_call(
                "ReceiveMessage", "AccessDenied", "Access to the resource is denied."
            ),
            replace(_CALLED, refused_by=frozenset({RefusedBy.NOT_SAID})),
            code="policy_not_named",
        ),
    ),
    near_misses=(
        NearMiss(
            "CloudTrail has not told yet who changed the policy",
            "pin_not_judged_yet",
            facts=replace(_OVERWRITTEN, pin=Pinned(_PIN, "not told yet", passes=True)),
        ),
        NearMiss(
            "KMS's refusal is another policy's",
            "no_match",
            call=examples.failed_call("SendMessage", "KMS.AccessDeniedException", _DENIED),
        ),
        NearMiss(
            "a call without a signature that SQS takes",
            "no_match",
            call=examples.failed_call("SendMessage", "InvalidSecurity", "Request denied."),
        ),
        NearMiss(
            "a caller who writes IAM's sentence into a parameter",
            "no_match",
            call=examples.failed_call("SendMessage", "InvalidParameterValue", _DENIED),
        ),
    ),
)
