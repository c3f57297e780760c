"""The lines of a template that fix a finding, from the catalogue's own plans where it has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import inf

import yaml

from mendq.catalogue.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.dlq_type_mismatch import DLQ_TYPE_MISMATCH
from mendq.catalogue.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.catalogue.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.policy_is_public import POLICY_IS_PUBLIC
from mendq.catalogue.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.catalogue.tls_not_enforced import TLS_NOT_ENFORCED
from mendq.lint.queues import Declared, Queue
from mendq.lint.values import QUEUE, NotKnown
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import LONGEST_RETENTION_SECONDS, MAX_RECEIVE_COUNT
from mendq.notifications.change_lines import template_line

_ALLOW = DLQ_SOURCE_NOT_ALLOWED.shows[0]
_OWN_KEYS = template_line("SqsManagedSseEnabled", "true")
Lines = tuple[str, ...]


def remedy_of(symptom: Symptom, queue: Queue, found: Declared) -> Lines:
    """Empty where no line of the template would fix it, or what it takes is not known."""
    try:
        if own := _OWN.get(symptom.name):
            return own if isinstance(own, tuple) else own(queue, found)
        plan = symptom.plan(queue, Limits()) if symptom.plan else None
    except NotKnown:
        return ()
    steps = plan.steps if isinstance(plan, Plan) else ()
    return tuple(template_line(each.attribute, str(each.after)) for each in steps)


def _new_dlq(queue: Queue, found: Declared) -> Lines:
    """Without a RedriveAllowPolicy: each of the two would have to be made before the other."""
    logical_id = f"{queue.resource.logical_id}Dlq"
    while logical_id in found.template.resources:
        logical_id += "2"
    written = queue.resource.properties
    properties = {name: written[name] for name in _AS_ITS_SOURCE if name in written}
    properties["MessageRetentionPeriod"] = LONGEST_RETENTION_SECONDS
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVE_COUNT}
    dlq = _lines(logical_id, {"Type": QUEUE, "Properties": properties})
    return dlq + _lines("RedrivePolicy", redrive)


def _denying_statement(queue: Queue, _found: Declared) -> Lines:
    """In the policy that it has, or in one of its own."""
    own = queue.resource.logical_id
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": {"Fn::GetAtt": [own, "Arn"]},
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    document = {"Version": "2012-10-17", "Statement": [denial]}
    if queue.policy is not None:
        return _lines("PolicyDocument", document)
    properties = {"Queues": [{"Ref": own}], "PolicyDocument": document}
    return _lines(f"{own}Policy", {"Type": "AWS::SQS::QueuePolicy", "Properties": properties})


def _lines(name: str, document: object) -> Lines:
    """As YAML; of a name that may be anybody's, what CloudFormation takes."""
    plain = "".join(each for each in name if each.isascii() and each.isalnum())
    # The decoder's own types, which PyYAML does not write, are JSON as well.
    written = {plain: json.loads(json.dumps(document))}
    return tuple(yaml.safe_dump(written, sort_keys=False, width=inf).splitlines())


_AS_ITS_SOURCE = ("KmsMasterKeyId", "FifoQueue", "ContentBasedDeduplication")
_OWN: Mapping[str, Lines | Callable[[Queue, Declared], Lines]] = {
    DLQ_MISSING.name: _new_dlq,
    TLS_NOT_ENFORCED.name: _denying_statement,
    # By an ARN that is written out: a source depends on its DLQ, which cannot depend on it too.
    DLQ_SOURCE_NOT_ALLOWED.name: (
        f"# leave {_ALLOW} out, or let the source in by an ARN without !GetAtt",
    ),
    NOT_ENCRYPTED.name: (_OWN_KEYS,),
    POLICY_IS_PUBLIC.name: ("# name who may, or narrow it: aws:SourceArn, aws:PrincipalOrgID",),
    SERVICE_CANNOT_USE_KEY.name: ("# leave KmsMasterKeyId out", _OWN_KEYS),
    MAX_RECEIVE_COUNT_TOO_LOW.name: (f"maxReceiveCount: {MAX_RECEIVE_COUNT}",),
    REDRIVE_CYCLE.name: ("# leave RedrivePolicy out of the last of them",),
    DLQ_TYPE_MISMATCH.name: ("# name a queue of its own type in RedrivePolicy",),
    TAG_NOT_UNDERSTOOD.name: ("# correct the tag, or leave it out",),
}
