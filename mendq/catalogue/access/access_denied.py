"""Symptom `access_denied`: a policy refuses callers of the queue.

The fault: a producer or consumer calls the queue and gets AccessDenied. Its messages are neither
sent nor handled. Several kinds of policy can refuse a call: the queue's own policy, the caller's
IAM policy, its permissions boundary, its session policy, a service or resource control policy of
the AWS organization, or the policy of a VPC endpoint. Each has another owner.

How it shows: CloudTrail records the failed calls. The error message often names the policy that
refused (`RefusedBy`).

What Mendq does: people decide what a policy grants, so Mendq never writes a statement of its own.
It notifies people with the policy that refused, its owner, and the least policy that would allow
the call. In one case it proposes a change: a person has pinned the queue's policy (called it good),
a deployment has overwritten it since, and the pinned policy grants all the refused calls. Then
Mendq proposes to put the pinned policy back, byte for byte.

Why that is safe: the text comes from a person, not from Mendq. `restore_policy.py` refuses if the
pin does not grant the calls to every refused caller by name, if it lets everybody in, or if the
last change may have been made on purpose. A person must approve the write in every mode.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.catalogue.access.minimum_policy import make_grant_sections
from mendq.catalogue.access.restore_policy import (
    FINDING_BY_REFUSING_POLICY,
    choose_leading_policy,
    describe_granting_pin,
    plan_restoration,
)
from mendq.catalogue.examples import EXAMPLE_TIME, QUEUE_ARN, ROLE_ARN, failed_call, policy, queue
from mendq.catalogue.symptom import (
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    FixedSymptom,
    RefusalExample,
    Steps,
    is_message_call,
    make_code_patterns,
)
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall, RefusedBy
from mendq.model.limits import Limits
from mendq.model.message_calls import list_actions_allowing
from mendq.model.plan import Escalate, Plan, Refusal
from mendq.model.policy import CheckedPin, Pin, QueueChange, digest_of_policy
from mendq.model.principals import has_role_or_user_outside_account, name_first_principals
from mendq.model.queue import parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import RestorePolicy

# AWS needs a moment to make a new session's permissions known everywhere. A call that is refused in
# this time after the session began is no evidence.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html
SESSION_SETTLING_TIME = timedelta(seconds=60)


def is_evidence(call: FailedCall) -> bool:
    """Return True if the call is about messages, and no new session is known to have made it."""
    session_created_at = call.session_created_at
    is_session_settled = (
        session_created_at is None or call.event_time - session_created_at > SESSION_SETTLING_TIME
    )
    return is_message_call(call) and is_session_settled


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to restore the pinned policy if the calls are refused only because it was overwritten.

    Otherwise return the refusal that notifies people, or a `Retry` as long as CloudTrail has not
    reported who changed the policy.

    If the caller's own IAM policy refused all calls, either policy may be the one that people meant
    to grant them. Then the notification mentions the pin, and Mendq restores nothing.
    """
    if facts.refused_by == {RefusedBy.NO_RESOURCE_POLICY}:
        no_grant_sentence = FINDING_BY_REFUSING_POLICY[RefusedBy.NO_RESOURCE_POLICY].sentence
        first_sentence = f"{_describe_refused_calls(facts)}. {no_grant_sentence}"
        restoration_plan = plan_restoration(facts, first_sentence)
        if not isinstance(restoration_plan, str):
            return restoration_plan
        return _notify_about_refusal(facts, restoration_plan)
    if facts.refused_by == {RefusedBy.IDENTITY_POLICY}:
        return _notify_about_refusal(facts, describe_granting_pin(facts))
    return _notify_about_refusal(facts, "")


def _notify_about_refusal(facts: Facts, pin_sentence: str) -> Refusal:
    """Return the refusal that notifies people: which policy refused, and where they look first.

    `pin_sentence` says why a pinned policy is not restored; it may be empty.
    """
    refusing_policy = choose_leading_policy(facts)
    policy_finding = FINDING_BY_REFUSING_POLICY[refusing_policy]
    reason_sentences = [_describe_refused_calls(facts), policy_finding.sentence]
    if policy_finding.code.endswith("_lacks_grant"):
        reason_sentences.append(_describe_missing_grant(facts))
    other_policies_text = ", ".join(sorted(facts.refused_by - {refusing_policy}))
    if other_policies_text:
        reason_sentences.append(f"Other calls were refused by {other_policies_text}")
    if pin_sentence:
        reason_sentences.append(pin_sentence)
    reason_sentences.append(f"Who called: {name_first_principals(facts.principals)}")
    return Escalate(
        policy_finding.code, ". ".join(reason_sentences), policy_finding.make_command(facts)
    )


def _describe_refused_calls(facts: Facts) -> str:
    actions = ", ".join(list_actions_allowing(facts.event_names)) or "the call"
    return f"{actions} on {facts.queue_arn} is refused"


def _describe_missing_grant(facts: Facts) -> str:
    """Return a sentence that says in which policies the grant is needed.

    A caller of the queue's account needs the grant in its own policy or in the queue's policy. Any
    other caller needs it in both policies.
    """
    if has_role_or_user_outside_account(parse_queue_arn(facts.queue_arn).account, facts.principals):
        return "A caller of another account needs it in the queue's policy and in its own"
    return "Of its own account, a caller needs it in one of the two: its own or the queue's"


_REFUSED_CALL_TEXT = (
    "User: arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc is not authorized to "
    f"perform: sqs:sendmessage on resource: {QUEUE_ARN} "
)
_NO_GRANT_MESSAGE = (
    f"{_REFUSED_CALL_TEXT}because no resource-based policy allows the sqs:sendmessage action"
)
_EXPLICIT_DENY_MESSAGE = f"{_REFUSED_CALL_TEXT}with an explicit deny in a resource-based policy"


def _make_example(
    title: str, error_message: str, facts: Facts, expected_outcome: Steps | str
) -> CallExample:
    call = failed_call("SendMessage", "AccessDenied", error_message)
    return CallExample(title, call, facts, expected_outcome)


def _make_example_queue(refused_by: RefusedBy, **overrides: Any) -> Facts:
    """Return a queue to which ROLE_ARN could not send, because this kind of policy refused."""
    return queue(
        principals=(ROLE_ARN,),
        event_names=("SendMessage",),
        refused_by=frozenset({refused_by}),
        **overrides,
    )


_PINNED_POLICY = policy(Sid="Workers", Principal={"AWS": ROLE_ARN}, Resource=QUEUE_ARN)
_DEPLOYED_POLICY = '{"Version": "2012-10-17", "Statement": []}'
_EXAMPLE_PIN = Pin(
    QUEUE_ARN,
    _PINNED_POLICY,
    digest_of_policy(_PINNED_POLICY),
    generation=1,
    pinned_at=EXAMPLE_TIME - timedelta(days=7),
    pinned_by="arn:aws:sts::123456789012:assumed-role/operators/ada",
    queue_created_at=EXAMPLE_TIME - timedelta(days=90),
    queue_modified_at=EXAMPLE_TIME - timedelta(days=8),
)
_POLICY_CHANGE_BY_DEPLOYMENT = QueueChange(
    EXAMPLE_TIME - timedelta(hours=1), "SetQueueAttributes", ROLE_ARN, by_cloudformation=True
)


def _make_queue_with_pin(**pin_judgement: Any) -> Facts:
    """Return a queue with an overwritten pinned policy.

    `pin_judgement` has fields of `CheckedPin`.
    """
    pin = CheckedPin(_EXAMPLE_PIN, **pin_judgement)
    return _make_example_queue(RefusedBy.NO_RESOURCE_POLICY, Policy=_DEPLOYED_POLICY, pin=pin)


_QUEUE_WITH_OVERWRITTEN_POLICY = _make_queue_with_pin(
    deployment_change=_POLICY_CHANGE_BY_DEPLOYMENT
)
_QUEUE_WITH_DOUBTFUL_PIN = _make_queue_with_pin(doubt="not told yet", may_doubt_pass=True)
_QUEUE_WITHOUT_GRANT = _make_example_queue(RefusedBy.NO_RESOURCE_POLICY)
_QUEUE_WITH_DENY = _make_example_queue(RefusedBy.RESOURCE_POLICY_DENIES)
_RESTORE_STEP = RestorePolicy(_DEPLOYED_POLICY, _PINNED_POLICY)

ACCESS_DENIED = FixedSymptom(
    name="access_denied",
    sentence="Callers are refused by a policy, so their messages are neither sent nor handled.",
    plan_in_words="Page with the policy that refused, the grant that is missing and whose matter "
    "it is; or, where a deployment overwrote a policy that a person has pinned and that grants the "
    "call, put that one back byte for byte.",
    habit="keeps turning callers away",
    first_step="Allow the refused call, or stop the caller.",
    aws_page="https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("access_denied"),
    needs=frozenset({Need.QUEUE, Need.PIN}),
    steps=(RestorePolicy,),
    plan=plan,
    notifies_anyway=True,
    is_evidence=is_evidence,
    shown_attributes=("Policy",),
    extra_sections=make_grant_sections,
    advice_if_many=Advice(
        "Look for what these queues have in common: a role, a policy, an organization's."
    ),
    examples=lambda: (
        _make_example(
            "a deployment overwrote the pinned policy",
            _NO_GRANT_MESSAGE,
            _QUEUE_WITH_OVERWRITTEN_POLICY,
            (_RESTORE_STEP,),
        ),
        _make_example(
            "it does not name the caller",
            _NO_GRANT_MESSAGE,
            _QUEUE_WITHOUT_GRANT,
            "queue_policy_lacks_grant",
        ),
        _make_example(
            "the queue's policy denies",
            _EXPLICIT_DENY_MESSAGE,
            _QUEUE_WITH_DENY,
            "queue_policy_denies",
        ),
        RefusalExample(
            "CloudTrail has not told yet who changed it",
            _QUEUE_WITH_DOUBTFUL_PIN,
            "pin_not_judged_yet",
        ),
        CallNearMiss(
            "a key's policy", failed_call("SendMessage", "KmsAccessDenied", _EXPLICIT_DENY_MESSAGE)
        ),
        CallNearMiss(
            "in a parameter",
            failed_call("SendMessage", "InvalidParameterValue", _EXPLICIT_DENY_MESSAGE),
        ),
    ),
)
