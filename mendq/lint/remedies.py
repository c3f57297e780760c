"""The lines of a template that fix a finding, from the catalogue's own plans where it has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from mendq.catalogue.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.dlq_type_mismatch import DLQ_TYPE_MISMATCH
from mendq.catalogue.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.catalogue.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.redrive_cycle import REDRIVE_CYCLE
from mendq.catalogue.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.tls_not_enforced import TLS_NOT_ENFORCED
from mendq.lint.queues import Declared, Queue
from mendq.lint.values import NotKnown
from mendq.model.dlq import attributes_of_dlq
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import MAX_RECEIVE_COUNT, arn_of_dlq
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
    logical_id = f"{_alphanumeric(queue)}Dlq"
    while logical_id in found.template.resources:
        logical_id += "2"
    attributes = attributes_of_dlq(queue, arn_of_dlq(queue.queue_arn))
    attributes.pop(_ALLOW, None)
    properties = [f"    {_as_set(queue, *each)}" for each in sorted(attributes.items())]
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVE_COUNT}
    head = (f"{logical_id}:", "  Type: AWS::SQS::Queue", "  Properties:")
    return (*head, *properties, f"RedrivePolicy: {_compact(redrive)}")


def _as_set(queue: Queue, name: str, text: str) -> str:
    """A property as the template sets it, where the queue has the same, else as `text` says."""
    written = queue.resource.properties.get(name)
    is_the_same = isinstance(written, dict) and queue.attributes.get(name) == text
    return f"{name}: {_compact(written)}" if is_the_same else template_line(name, text)


def _denying_statement(queue: Queue, _found: Declared) -> Lines:
    """In the policy that it has, or in one of its own."""
    own = queue.resource.logical_id
    resource = _compact({"Fn::GetAtt": [own, "Arn"]})
    denial = f'{{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":{resource},'
    denial += '"Condition":{"Bool":{"aws:SecureTransport":"false"}}}'
    document = f'PolicyDocument: {{"Version":"2012-10-17","Statement":[{denial}]}}'
    if queue.policy is not None:
        return (document,)
    head = (f"{_alphanumeric(queue) or 'Queue'}Policy:", "  Type: AWS::SQS::QueuePolicy")
    return (*head, "  Properties:", f"    Queues: {_compact([{'Ref': own}])}", f"    {document}")


def _alphanumeric(queue: Queue) -> str:
    """Its logical id where it is one, for ids made of it."""
    own = queue.resource.logical_id
    return own if own.isascii() and own.isalnum() and len(own) <= 200 else ""


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


_OWN: Mapping[str, Lines | Callable[[Queue, Declared], Lines]] = {
    DLQ_MISSING.name: _new_dlq,
    TLS_NOT_ENFORCED.name: _denying_statement,
    # By an ARN that is written out: a source depends on its DLQ, which cannot depend on it too.
    DLQ_SOURCE_NOT_ALLOWED.name: (
        f"# leave {_ALLOW} out, or let the source in by an ARN without !GetAtt",
    ),
    NOT_ENCRYPTED.name: (_OWN_KEYS,),
    SERVICE_CANNOT_USE_KEY.name: ("# leave KmsMasterKeyId out", _OWN_KEYS),
    MAX_RECEIVE_COUNT_TOO_LOW.name: (f"maxReceiveCount: {MAX_RECEIVE_COUNT}",),
    REDRIVE_CYCLE.name: ("# leave RedrivePolicy out of the last of them",),
    DLQ_TYPE_MISMATCH.name: ("# name a queue of its own type in RedrivePolicy",),
}
