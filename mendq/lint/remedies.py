"""The lines of a template that fix a finding, from the catalogue's own plans where it has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

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
from mendq.lint.template import MOST_RESOURCES
from mendq.lint.values import NotKnown
from mendq.model.dlq import attributes_of_dlq
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import MAX_RECEIVE_COUNT, allow_of, arn_of_dlq
from mendq.model.steps import AttributeStep
from mendq.notifications.change_lines import template_line

_LOGICAL_ID = re.compile(r"[A-Za-z0-9]{1,200}")
_LEAVE_OUT = "# leave {0} out"
_ALLOW = DLQ_SOURCE_NOT_ALLOWED.shows[0]
Lines = tuple[str, ...]


def remedy_of(symptom: Symptom, queue: Queue, found: Declared) -> Lines:
    """Empty where no line of the template would fix it, or what it takes is not known."""
    try:
        if own := _OWN.get(symptom.name):
            return own(queue, found)
        steps = _steps(symptom, queue)
        return tuple(template_line(each.attribute, str(each.after)) for each in steps)
    except NotKnown:
        return ()


def _steps(symptom: Symptom, queue: Queue) -> Sequence[AttributeStep]:
    """Of the catalogue's own plan, where it has one."""
    plan = symptom.plan(queue, Limits()) if symptom.plan else None
    return plan.steps if isinstance(plan, Plan) else ()


def _new_dlq(queue: Queue, found: Declared) -> Lines:
    """Without a RedriveAllowPolicy: each of the two would have to be made before the other."""
    own = queue.resource.logical_id
    base = f"{own if _LOGICAL_ID.fullmatch(own) else ''}Dlq"
    free = (f"{base}{number or ''}" for number in (0, *range(2, MOST_RESOURCES + 2)))
    logical_id = next(each for each in free if each not in found.template.resources)
    attributes = attributes_of_dlq(queue, arn_of_dlq(queue.queue_arn))
    attributes.pop(_ALLOW, None)
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVE_COUNT}
    return (
        f"{logical_id}:",
        "  Type: AWS::SQS::Queue",
        "  Properties:",
        *(f"    {_as_set(queue, name, text)}" for name, text in sorted(attributes.items())),
        f"RedrivePolicy: {_compact(redrive)}",
    )


def _as_set(queue: Queue, name: str, text: str) -> str:
    """A property as the template sets it, where the queue has the same, else as `text` says."""
    written = queue.resource.properties.get(name)
    is_the_same = isinstance(written, dict) and queue.attributes.get(name) == text
    return f"{name}: {_compact(written)}" if is_the_same else template_line(name, text)


def _let_in(queue: Queue, found: Declared) -> Lines:
    """By name alone: a source depends on its DLQ, which cannot depend on it too."""
    steps = _steps(DLQ_SOURCE_NOT_ALLOWED, queue)
    wanted = allow_of(str(steps[0].after)) if steps else None
    arns = wanted.sources if wanted else ()
    names = {arn: found.names.by_name(found.names.queues.get(arn, "")) for arn in arns}
    if wanted is None or any(arn in found.queues and not name for arn, name in names.items()):
        return (_LEAVE_OUT.format(_ALLOW),)
    sources = [{"Fn::Sub": name} if name else arn for arn, name in names.items()]
    written = {"redrivePermission": wanted.permission, "sourceQueueArns": sources}
    return (f"{_ALLOW}: {_compact(written)}",)


def _denying_statement(queue: Queue, _found: Declared) -> Lines:
    """In the policy that it has, or in one of its own."""
    own = queue.resource.logical_id
    statement = (
        "  Statement:",
        '    - Effect: "Deny"',
        '      Principal: "*"',
        '      Action: "sqs:*"',
        f"      Resource: {_compact({'Fn::GetAtt': [own, 'Arn']})}",
        '      Condition: {"Bool":{"aws:SecureTransport":"false"}}',
    )
    if queue.policy is not None:
        return ("PolicyDocument:", *statement)
    document = ("PolicyDocument:", '  Version: "2012-10-17"', *statement)
    return (
        f"{own if _LOGICAL_ID.fullmatch(own) else 'Queue'}Policy:",
        "  Type: AWS::SQS::QueuePolicy",
        "  Properties:",
        f"    Queues: {_compact([{'Ref': own}])}",
        *(f"    {each}" for each in document),
    )


def _same_type(queue: Queue, *_: object) -> Lines:
    return (f"# name a {'FIFO' if queue.is_fifo else 'standard'} queue in RedrivePolicy",)


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


_OWN_KEYS = template_line("SqsManagedSseEnabled", "true")
_OWN: Mapping[str, Callable[[Queue, Declared], Lines]] = {
    DLQ_MISSING.name: _new_dlq,
    DLQ_SOURCE_NOT_ALLOWED.name: _let_in,
    TLS_NOT_ENFORCED.name: _denying_statement,
    NOT_ENCRYPTED.name: lambda *_: (_OWN_KEYS,),
    SERVICE_CANNOT_USE_KEY.name: lambda *_: (_LEAVE_OUT.format("KmsMasterKeyId"), _OWN_KEYS),
    MAX_RECEIVE_COUNT_TOO_LOW.name: lambda *_: (f"maxReceiveCount: {MAX_RECEIVE_COUNT}",),
    REDRIVE_CYCLE.name: lambda *_: (_LEAVE_OUT.format("RedrivePolicy") + " of the last of them",),
    DLQ_TYPE_MISMATCH.name: _same_type,
}
