"""Make the template lines that fix a finding.

For most symptoms, the lines come from the catalogue's plan, which heal would carry out. The other
symptoms have a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


def find_remedy(symptom: Symptom, queue: Queue, declared: DeclaredQueues) -> Lines:
    """Return the lines that fix a symptom of a queue.

    Empty if no line of the template would fix it, or if a value that it depends on is not known.
    """
    try:
        if make_lines := _REMEDIES.get(symptom.name):
            return make_lines(queue, declared)
        plan = symptom.plan(queue, Limits()) if symptom.plan else None
    except NotKnown:
        return ()
    if not isinstance(plan, Plan):
        return ()
    lines = list[str]()
    for step in plan.steps:
        lines += declared.template.render(step.attribute, step.after)
    return tuple(lines)


def _add_dlq(queue: Queue, declared: DeclaredQueues) -> Lines:
    """Return a new DLQ and the redrive policy that names it.

    The DLQ has no RedriveAllowPolicy: it would have to name the source, and CloudFormation cannot
    create two resources that name each other.
    """
    logical_id = f"{queue.resource.logical_id}Dlq"
    while logical_id in declared.template.resources:
        logical_id += "2"
    source_properties = queue.resource.properties
    dlq_properties = {
        name: source_properties[name]
        for name in _COPIED_TO_DLQ
        if source_properties.get(name) not in (None, "false")
    }
    dlq_properties["MessageRetentionPeriod"] = LONGEST_RETENTION_SECONDS
    target = {"Fn::GetAtt": [logical_id, "Arn"]}
    redrive = {TARGET: target, COUNT: MAX_RECEIVE_COUNT}
    dlq = declared.template.render(logical_id, {"Type": QUEUE, "Properties": dlq_properties})
    return dlq + declared.template.render(REDRIVE, redrive)


def _deny_without_tls(queue: Queue, declared: DeclaredQueues) -> Lines:
    """Return the lines of a policy statement that denies calls without TLS.

    If the template sets the queue's policy, the statement belongs into that policy, whose other
    statements stay. Otherwise it is returned inside a new policy.
    """
    logical_id = queue.resource.logical_id
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": {"Fn::GetAtt": [logical_id, "Arn"]},
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if queue.policy is not None:
        comment = f"# add to the Statement of {plain(queue.policy.logical_id)}"
        return comment, *declared.template.render("", denial)
    document = {"Version": "2012-10-17", "Statement": [denial]}
    properties = {"Queues": [{"Ref": logical_id}], "PolicyDocument": document}
    policy = {"Type": "AWS::SQS::QueuePolicy", "Properties": properties}
    return declared.template.render(f"{logical_id}Policy", policy)


@dataclass(frozen=True)
class _SetProperty:
    """A remedy that sets one property to a fixed value."""

    name: str
    value: object

    def __call__(self, _queue: Queue, declared: DeclaredQueues) -> Lines:
        return declared.template.render(self.name, self.value)


@dataclass(frozen=True)
class _Comment:
    """A remedy that a person must decide: a comment line about one attribute.

    `{}` in `words` stands for the attribute's name.
    """

    words: str
    attribute: str

    def __call__(self, _queue: Queue, declared: DeclaredQueues) -> Lines:
        attribute = declared.template.spell_attribute(self.attribute)
        return (f"# {self.words.format(attribute)}",)


def _use_sqs_keys(queue: Queue, declared: DeclaredQueues) -> Lines:
    """Return the lines that replace the KMS key by SQS's own keys."""
    return _WITHOUT_KEY(queue, declared) + _SQS_OWNED_KEYS(queue, declared)


_COPIED_TO_DLQ = ("KmsMasterKeyId", "FifoQueue", "ContentBasedDeduplication")
_WITHOUT_KEY = _Comment("leave {} out", "KmsMasterKeyId")
_SQS_OWNED_KEYS = _SetProperty("SqsManagedSseEnabled", True)
# Remedies that do not come from the catalogue's plan, by symptom.
_REMEDIES: Mapping[str, Remedy] = {
    DLQ_MISSING.name: _add_dlq,
    TLS_NOT_ENFORCED.name: _deny_without_tls,
    # The source's ARN must be written out. A reference would make the DLQ depend on the source, and
    # the source depends on the DLQ already.
    DLQ_SOURCE_NOT_ALLOWED.name: _Comment(
        "leave {} out, or let the source in by an ARN that is written out",
        DLQ_SOURCE_NOT_ALLOWED.shown_attributes[0],
    ),
    NOT_ENCRYPTED.name: _SQS_OWNED_KEYS,
    POLICY_IS_PUBLIC.name: _Comment(
        "name who may, or narrow it: aws:SourceArn, aws:PrincipalOrgID", REDRIVE
    ),
    SERVICE_CANNOT_USE_KEY.name: _use_sqs_keys,
    MAX_RECEIVE_COUNT_TOO_LOW.name: _SetProperty(COUNT, MAX_RECEIVE_COUNT),
    REDRIVE_CYCLE.name: _Comment("leave {} out of the last of them", REDRIVE),
    DLQ_TYPE_MISMATCH.name: _Comment("name a queue of its own type in {}", REDRIVE),
    TAG_NOT_UNDERSTOOD.name: _Comment("correct the tag, or leave it out", REDRIVE),
}
