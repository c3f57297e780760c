"""What the rules of cdk-nag (AwsSolutions) find here and we mean, each with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct


class Meant(NamedTuple):
    """A finding on a construct."""

    construct: Construct
    rule: str
    reason: str


_READS = (
    "This bucket holds logs, or only what moves cases, the nightly job and deliver_report write; "
    "who reads it shows in CloudTrail's S3 data events where wanted."
)
_PARKS = "It is a DLQ itself, of what is no queue."
_REFUSES = "It never holds a message: it refuses every one."
_PYTHON = "Python 3.13 on purpose: the wheels in the zip are locked and tested for it."
_ON_QUEUES = (
    "Which queues are managed is said by tags, which change without a deployment. "
    "Looking is harmless; writing takes the tag, and a Deny covers every other tag and our own."
)
_ON_QUARANTINES = (
    "A quarantine is called after its source and bears no tag; it is made where messages first "
    "come back, and may only be sent to."
)
_LOOKING = "HealRole AttachDlq RestorePolicy Redrive FollowUp Rollback Scan"
_MOVING = "HealRole AttachDlq RestorePolicy Redrive FollowUp Approve Rollback"


class Wildcard(NamedTuple):
    """Whose roles may ask for which resources, as cdk-nag spells them, and why."""

    roles: str
    pattern: str
    reason: str

    def is_for(self, role: str, resource: str) -> bool:
        """Return true where this is the reason."""
        return role in self.roles.split() and re.fullmatch(self.pattern, resource) is not None


_ROWS = (
    (_LOOKING, r"\*", "These actions take no narrower resource."),
    (_LOOKING, r"arn:.+:sqs:.+:\*", _ON_QUEUES),
    (
        "HealRole AttachDlq Redrive Scan",
        r"arn:.+:lambda:.+:function:\*",
        "Any function of the account may read a managed queue; its timeout is looked at.",
    ),
    ("Redrive", r"arn:.+:sqs:.+:\*-quarantine(\.fifo)?", _ON_QUARANTINES),
    (
        "Redrive",
        r"arn:.+:kms:.+:<AWS::AccountId>:key/\*",
        "Which keys encrypt managed queues changes without a deployment; SQS alone uses them.",
    ),
    (
        "HealRole AttachDlq RestorePolicy Redrive Rollback",
        r"arn:.+:sqs:.+:[\w-]+\*",
        "The settings name the start of these queues' names.",
    ),
    *(
        (roles, objects, "One object per hour, day, week or transition, under one prefix.")
        for roles, objects in (
            (_MOVING, r"<CasesBucket\w+\.Arn>/cases/\*"),
            ("Scan", r"<CasesBucket\w+\.Arn>/findings/\*"),
            ("WatchNightly", r"<ReportsBucket\w+\.Arn>/nightly/\*"),
            ("DeliverReport", r"<ReportsBucket\w+\.Arn>/(summary|report|report/\*/delivered)/\*"),
            ("Nightly", r"<CasesBucket\w+\.Arn>/(cases|findings)/\*"),
            ("Nightly", r"(<TrailBucket\w+\.Arn>|arn:.+:s3:::[^/]+)/AWSLogs/\*"),
            ("Nightly", r"<ReportsBucket\w+\.Arn>/\w+/\*"),
        )
    ),
    (
        "Nightly",
        r"<ReportsBucket\w+\.Arn>/quality/\.writing-\*",
        "One folder per write, named anew, and deleted once its table is put whole.",
    ),
    (
        "Nightly",
        r"arn:.+:kms:.+:\*:key/\*",
        "Whose key encrypts an existing trail is not said; only trails' objects count.",
    ),
    (
        "WatchNightly",
        r"<NightlyApplication\w*\.Arn>/jobruns/\*",
        "Every run of our own application; each night starts a new one.",
    ),
    (
        "DeliverReport",
        r"arn:.+:ses:.+:configuration-set/\*",
        "Which one an identity sends by is set in SES; the sender is one alone.",
    ),
)

WILDCARDS = tuple(Wildcard(*each) for each in _ROWS)


def acknowledge(stack: Stack) -> None:
    """Note the reasons on the constructs they are about, for whoever runs the rules."""
    for meant in expected(stack):
        note = Acknowledgment(id=meant.rule, reason=meant.reason)
        Validations.of(meant.construct).acknowledge(note)


def expected(stack: Stack) -> Iterator[Meant]:
    """What the rules find on this stack; no reason is for what nothing has."""
    for each in stack.node.find_all():
        path = each.node.path
        if isinstance(each, s3.Bucket):
            yield Meant(each, "AwsSolutions-S1", _READS)
        elif isinstance(each, sqs.Queue) and path.endswith("Probe/Queue"):
            yield Meant(each, "AwsSolutions-SQS3", _REFUSES)
        # The intake's own is a queue's, as the rule wants it.
        elif isinstance(each, sqs.Queue) and not path.endswith(("Intake/Queue", "Intake/Dlq")):
            yield Meant(each, "AwsSolutions-SQS3", _PARKS)
        elif isinstance(each, lambda_.Function):
            yield Meant(each, "AwsSolutions-L1", _PYTHON)
        elif isinstance(each, iam.Role):
            yield from _wildcards_of(stack, each)


def _wildcards_of(stack: Stack, role: iam.Role) -> Iterator[Meant]:
    """The rule's name holds the resource, and so the account and the bucket's logical id."""
    for name, resource in wildcards(stack, role):
        reason = next((each.reason for each in WILDCARDS if each.is_for(name, resource)), None)
        if reason:
            yield Meant(role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def wildcards(stack: Stack, role: iam.Role) -> Iterator[tuple[str, str]]:
    """The role, by whose it is, and each resource with a wildcard that it is allowed."""
    policy, name = role.node.try_find_child("DefaultPolicy"), role.node.path.split("/")[-2]
    if isinstance(policy, iam.Policy):
        document = stack.resolve(policy.document.to_json())
        yield from ((name, resource) for resource in dict.fromkeys(_allowed(document)))


def _allowed(document: Any) -> Iterator[str]:
    """The resources with a wildcard that a policy allows something on."""
    for statement in document["Statement"]:
        named = statement["Resource"] if statement["Effect"] == "Allow" else []
        for each in named if isinstance(named, list) else [named]:
            if "*" in (shown := _shown(each)):
                yield shown


def _shown(resolved: Any) -> str:
    """A resolved value as cdk-nag spells it in a rule's name."""
    if not isinstance(resolved, dict):
        return str(resolved)
    if "Fn::Join" in resolved:
        return "".join(_shown(part) for part in resolved["Fn::Join"][1])
    if "Fn::GetAtt" in resolved:
        return f"<{'.'.join(resolved['Fn::GetAtt'])}>"
    return f"<{resolved['Ref']}>" if "Ref" in resolved else json.dumps(resolved)
