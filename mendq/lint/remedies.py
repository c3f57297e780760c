"""The lines of a template that fix a finding, from the catalogue's own plans where it has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mendq.catalogue.access.policy_is_public import POLICY_IS_PUBLIC
from mendq.catalogue.access.tls_not_enforced import TLS_NOT_ENFORCED
from mendq.catalogue.configuration.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.dlq.dlq_type_mismatch import DLQ_TYPE_MISMATCH
from mendq.catalogue.dlq.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.catalogue.dlq.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.keys.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.keys.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.symptom import Symptom
from mendq.lint.queues import COUNT, REDRIVE, TARGET, DeclaredQueues, Queue
from mendq.lint.values import QUEUE, NotKnown
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import LONGEST_RETENTION_SECONDS, MAX_RECEIVE_COUNT
from mendq.notifications.text import plain

Lines = tuple[str, ...]
Remedy = Callable[[Queue, DeclaredQueues], Lines]


def remedy_of(symptom: Symptom, queue: Queue, found: DeclaredQueues) -> Lines:
    """Empty where no line of the template would fix it, or what it takes is not known."""
    try:
        if own := _OWN.get(symptom.name):
            return own(queue, found)
        plan = symptom.plan(queue, Limits()) if symptom.plan else None
    except NotKnown:
        return ()
    steps = plan.steps if isinstance(plan, Plan) else ()
    return tuple(line for e in steps for line in found.template.written(e.attribute, e.after))


def _new_dlq(queue: Queue, found: DeclaredQueues) -> Lines:
    """Without a RedriveAllowPolicy: each of the two would have to be made before the other."""
    logical_id = f"{queue.resource.logical_id}Dlq"
    while logical_id in found.template.resources:
        logical_id += "2"
    written = queue.resource.properties
    properties = {
        name: written[name] for name in _AS_ITS_SOURCE if written.get(name) not in (None, "false")
    }
    properties["MessageRetentionPeriod"] = LONGEST_RETENTION_SECONDS
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {TARGET: target, COUNT: MAX_RECEIVE_COUNT}
    dlq = found.template.written(logical_id, {"Type": QUEUE, "Properties": properties})
    return dlq + found.template.written(REDRIVE, redrive)


def _denying_statement(queue: Queue, found: DeclaredQueues) -> Lines:
    """For the policy that it has, whose other statements let people in, or a policy of its own."""
    own = queue.resource.logical_id
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": {"Fn::GetAtt": [own, "Arn"]},
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if queue.policy is not None:
        to = f"# add to the Statement of {plain(queue.policy.logical_id)}"
        return to, *found.template.written("", denial)
    document = {"Version": "2012-10-17", "Statement": [denial]}
    properties = {"Queues": [{"Ref": own}], "PolicyDocument": document}
    policy = {"Type": "AWS::SQS::QueuePolicy", "Properties": properties}
    return found.template.written(f"{own}Policy", policy)


def _sets(attribute: str, value: object) -> Remedy:
    return lambda _, found: found.template.written(attribute, value)


def _said(words: str, attribute: str) -> Remedy:
    """What a person has to decide, about an attribute."""
    return lambda _, found: (f"# {words.format(found.template.named(attribute))}",)


_AS_ITS_SOURCE = ("KmsMasterKeyId", "FifoQueue", "ContentBasedDeduplication")
_WITHOUT_KEY = _said("leave {} out", "KmsMasterKeyId")
_OWN_KEYS = _sets("SqsManagedSseEnabled", True)
_OWN: Mapping[str, Remedy] = {
    DLQ_MISSING.name: _new_dlq,
    TLS_NOT_ENFORCED.name: _denying_statement,
    # By an ARN that is written out: a source depends on its DLQ, which cannot depend on it too.
    DLQ_SOURCE_NOT_ALLOWED.name: _said(
        "leave {} out, or let the source in by an ARN that is written out",
        DLQ_SOURCE_NOT_ALLOWED.shown_attributes[0],
    ),
    NOT_ENCRYPTED.name: _OWN_KEYS,
    POLICY_IS_PUBLIC.name: _said(
        "name who may, or narrow it: aws:SourceArn, aws:PrincipalOrgID", REDRIVE
    ),
    SERVICE_CANNOT_USE_KEY.name: lambda *of: _WITHOUT_KEY(*of) + _OWN_KEYS(*of),
    MAX_RECEIVE_COUNT_TOO_LOW.name: _sets(COUNT, MAX_RECEIVE_COUNT),
    REDRIVE_CYCLE.name: _said("leave {} out of the last of them", REDRIVE),
    DLQ_TYPE_MISMATCH.name: _said("name a queue of its own type in {}", REDRIVE),
    TAG_NOT_UNDERSTOOD.name: _said("correct the tag, or leave it out", REDRIVE),
}
