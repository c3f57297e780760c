"""Symptom `credentials_invalid`: callers of the queue have expired or invalid credentials.

The fault: a producer or consumer signs its calls with credentials that AWS no longer takes. Its
session has expired and it did not get a new one, its access key was deleted, deactivated or belongs
to another partition, its secret is wrong, or its clock is wrong. No policy is the cause.

How it shows: failed calls with codes such as ExpiredToken, InvalidClientTokenId or
SignatureDoesNotMatch. AWS does not document which of them CloudTrail records: a call that AWS
could not attribute to an account may have no record at all. So no such record does not mean that
all credentials are good.

What Mendq does: it notifies people, with the callers if the records name them. It changes nothing,
because no attribute of a queue helps.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

from mendq.catalogue.examples import ROLE_ARN, failed_call, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    NotifiedSymptom,
    is_message_call,
    make_code_patterns,
)
from mendq.model.facts import Facts
from mendq.model.failed_call import FailedCall
from mendq.model.limits import Limits
from mendq.model.message_calls import list_actions_allowing
from mendq.model.plan import Escalate, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import get_attributes_command


def is_evidence(call: FailedCall) -> bool:
    """Return True if the call is about messages.

    A person whose session has expired looks at queues too. A caller that sends or receives needs
    the credentials.
    """
    return is_message_call(call)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people, with the calls and the callers."""
    actions_text = ", ".join(list_actions_allowing(facts.event_names)) or "the call"
    reason = (
        f"{actions_text} on {facts.queue_arn} fails because the caller's credentials have expired "
        "or are invalid. No policy refuses it, and no setting of the queue helps. Let the caller "
        "get new credentials, or correct its access key, secret or clock. Who called: "
        f"{name_first_principals(facts.principals)}"
    )
    command = get_attributes_command(facts.queue_arn, "ApproximateNumberOfMessages")
    return Escalate("credentials_invalid", reason, command)


def _make_example(title: str, event_name: str, error_code: str) -> CallExample:
    facts = standard_queue(principals=(ROLE_ARN,), event_names=(event_name,))
    return CallExample(title, failed_call(event_name, error_code), facts, "credentials_invalid")


CREDENTIALS_INVALID = NotifiedSymptom(
    name="credentials_invalid",
    sentence="Callers have expired or invalid credentials, so messages stay unsent or unread.",
    plan_in_words="Page with the callers; no setting of a queue helps.",
    habit="keeps being called with expired or invalid credentials",
    first_step="Renew the callers' credentials, or stop the callers.",
    aws_page=f"{SQS_GUIDE}/troubleshooting-api-errors.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("credentials_invalid"),
    is_evidence=is_evidence,
    plan=plan,
    advice_if_many=Advice("Look for the role, access key or machine that these callers share."),
    examples=lambda: (
        _make_example("a session that has expired", "ReceiveMessage", "ExpiredToken"),
        _make_example("the older spelling of it", "SendMessage", "ExpiredTokenException"),
        _make_example("a deleted access key", "SendMessage", "InvalidClientTokenId"),
        _make_example("the same in JSON", "SendMessage", "UnrecognizedClientException"),
        _make_example("a wrong secret", "DeleteMessage", "SignatureDoesNotMatch"),
        CallNearMiss("a policy refuses it", failed_call("SendMessage", "AccessDenied")),
        CallNearMiss("the key's policy refuses it", failed_call("SendMessage", "KmsAccessDenied")),
        CallNearMiss("an expired handle", failed_call("DeleteMessage", "ReceiptHandleIsInvalid")),
        CallNearMiss("a call without TLS", failed_call("SendMessage", "InvalidSecurity")),
    ),
)
