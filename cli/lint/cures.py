"""The lines of a template that mend a finding, from the catalogue's own plans where it has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from cli.lint.attributes import DeclaredFacts
from cli.lint.declared import Declared, Queue
from cli.lint.values import NotKnown
from functions.catalogue.dead_letter_access_refused import DEAD_LETTER_ACCESS_REFUSED
from functions.catalogue.dead_letter_queue_missing import DEAD_LETTER_QUEUE_MISSING
from functions.catalogue.dead_letter_queue_of_another_type import DEAD_LETTER_QUEUE_OF_ANOTHER_TYPE
from functions.catalogue.not_encrypted import NOT_ENCRYPTED
from functions.catalogue.redrive_cycle import REDRIVE_CYCLE
from functions.catalogue.sender_cannot_deliver import SENDER_CANNOT_DELIVER
from functions.catalogue.symptom import Symptom
from functions.catalogue.tls_not_enforced import TLS_NOT_ENFORCED
from functions.catalogue.too_few_receives import TOO_FEW_RECEIVES
from functions.healing.dead_letters import (
    MAX_RECEIVE_COUNT,
    Redrive,
    RedriveAllow,
    allow_of,
    arn_for,
    attributes_of_new,
)
from functions.healing.limits import Limits
from functions.healing.plan import Plan
from functions.healing.template_lines import template_line

_LOGICAL_ID = re.compile(r"[A-Za-z0-9]{1,200}")
_LEAVE_OUT = "# leave {0} out"
Lines = tuple[str, ...]


def cure_of(symptom: Symptom, queue: Queue, found: Declared) -> Lines:
    """Empty where no line of the template would mend it, or what it takes is not known."""
    own = _OWN.get(symptom.name, _planned(symptom))
    try:
        return tuple(found.made.written(each) for each in own(found.facts_of(queue), queue, found))
    except NotKnown:
        return ()


def _planned(symptom: Symptom) -> Callable[[DeclaredFacts, Queue, Declared], Lines]:
    def lines(facts: DeclaredFacts, _queue: Queue, _found: Declared) -> Lines:
        plan = symptom.plan(facts, Limits()) if symptom.plan else None
        steps = plan.steps if isinstance(plan, Plan) else ()
        return tuple(template_line(each.attribute, str(each.after)) for each in steps)

    return lines


def _new_dead_letters(facts: DeclaredFacts, queue: Queue, found: Declared) -> Lines:
    """Without a RedriveAllowPolicy: each of the two would have to be made before the other."""
    own = queue.resource.logical_id
    base = f"{own if _LOGICAL_ID.fullmatch(own) else ''}DeadLetters"
    logical_id, number = base, 1
    while logical_id in found.template.resources:
        number += 1
        logical_id = f"{base}{number}"
    attributes = attributes_of_new(facts, arn_for(facts.queue_arn))
    attributes.pop(DEAD_LETTER_ACCESS_REFUSED.shows[0], None)
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVE_COUNT}
    return (
        f"{logical_id}:",
        "  Type: AWS::SQS::Queue",
        "  Properties:",
        *(f"    {template_line(name, text)}" for name, text in sorted(attributes.items())),
        f"RedrivePolicy: {_compact(redrive)}",
    )


def _let_in(facts: DeclaredFacts, _queue: Queue, found: Declared) -> Lines:
    """By name alone: a source depends on its dead-letter queue, which cannot depend on it too."""
    attribute = DEAD_LETTER_ACCESS_REFUSED.shows[0]
    allowed = allow_of(facts.attributes.get(attribute, ""))
    plan = DEAD_LETTER_ACCESS_REFUSED.plan
    decided = plan(facts, Limits()) if plan else None
    if allowed is None or not isinstance(decided, Plan):
        return (_LEAVE_OUT.format(attribute),)
    wanted = allow_of(str(decided.steps[0].after)) or RedriveAllow("allowAll")
    names = {arn: found.made.by_name(found.made.queues.get(arn, "")) for arn in wanted.sources}
    if any(arn in found.made.queues and name is None for arn, name in names.items()):
        return (_LEAVE_OUT.format(attribute),)
    sources = [{"Fn::Sub": name} if name else arn for arn, name in names.items()]
    written = {"redrivePermission": wanted.permission, "sourceQueueArns": sources}
    return (f"{attribute}: {_compact(written)}",)


def _denying_statement(_facts: DeclaredFacts, queue: Queue, _found: Declared) -> Lines:
    """In the policy that it has, or in one of its own."""
    own = queue.resource.logical_id
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": {"Fn::GetAtt": [own, "Arn"]},
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    first, *others = (f"{name}: {_compact(each)}" for name, each in statement.items())
    item = (f"    - {first}", *(f"      {each}" for each in others))
    if queue.policy is not None:
        return ("PolicyDocument:", "  Statement:", *item)
    document = ("PolicyDocument:", '  Version: "2012-10-17"', "  Statement:", *item)
    return (
        f"{own if _LOGICAL_ID.fullmatch(own) else 'Queue'}Policy:",
        "  Type: AWS::SQS::QueuePolicy",
        "  Properties:",
        f"    Queues: {_compact([{'Ref': own}])}",
        *(f"    {each}" for each in document),
    )


def _by_sqs_keys(*_: object) -> Lines:
    return (template_line("SqsManagedSseEnabled", "true"),)


def _another_key(*_: object) -> Lines:
    return (_LEAVE_OUT.format("KmsMasterKeyId"), *_by_sqs_keys())


def _more_receives(facts: DeclaredFacts, _queue: Queue, _found: Declared) -> Lines:
    if facts.dead_letters_unknown is not None:
        return (f"maxReceiveCount: {MAX_RECEIVE_COUNT}",)
    redrive = Redrive(facts.dead_letter_arn or "", MAX_RECEIVE_COUNT)
    return (template_line("RedrivePolicy", redrive.text),)


def _none(*_: object) -> Lines:
    return (_LEAVE_OUT.format("RedrivePolicy") + " of the last of them",)


def _same_type(facts: DeclaredFacts, *_: object) -> Lines:
    kind = "FIFO" if facts.is_fifo else "standard"
    return (f"# name a {kind} queue in RedrivePolicy",)


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


_OWN: Mapping[str, Callable[[DeclaredFacts, Queue, Declared], Lines]] = {
    DEAD_LETTER_QUEUE_MISSING.name: _new_dead_letters,
    DEAD_LETTER_ACCESS_REFUSED.name: _let_in,
    TLS_NOT_ENFORCED.name: _denying_statement,
    NOT_ENCRYPTED.name: _by_sqs_keys,
    SENDER_CANNOT_DELIVER.name: _another_key,
    TOO_FEW_RECEIVES.name: _more_receives,
    REDRIVE_CYCLE.name: _none,
    DEAD_LETTER_QUEUE_OF_ANOTHER_TYPE.name: _same_type,
}
