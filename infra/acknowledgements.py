"""What the rules of cdk-nag (AwsSolutions) find here and we mean, each with its reason.

Which role asks for what, and that none asks for more than it calls, is not said here: a test holds
every role against the calls of its code.
"""

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
from constructs import Construct, IConstruct


class Meant(NamedTuple):
    """A finding on a construct."""

    construct: IConstruct
    rule: str
    reason: str


_READS = (
    "This bucket holds logs, or only what moves cases, the nightly job and deliver_report write; "
    "who reads it shows in CloudTrail's S3 data events where wanted."
)
# What rule finds what on which construct, by the end of its path; the first row that fits.
_CONSTRUCTS: tuple[tuple[type[Construct], str, str, str], ...] = (
    (s3.Bucket, "", "AwsSolutions-S1", _READS),
    (sqs.Queue, "Probe/Queue", "AwsSolutions-SQS3", "It refuses every message."),
    # The intake's own is a queue's, as the rule wants it.
    (sqs.Queue, "Intake/Queue", "", ""),
    (sqs.Queue, "Intake/Dlq", "", ""),
    (sqs.Queue, "", "AwsSolutions-SQS3", "It is a DLQ itself, of what is no queue."),
    (lambda_.Function, "", "AwsSolutions-L1", "The wheels in the zip are locked for Python 3.13."),
)
_OBJECTS = "One object per hour, day, week or transition, under one prefix."
# Which resources roles may ask for, as cdk-nag spells them; all other wildcards are findings.
WILDCARDS = {
    r"\*": "These actions take no narrower resource.",
    r"arn:.+:sqs:.+:\*": "Which queues are managed is said by tags, which change without a "
    "deployment. Looking is harmless; writing takes the tag, and a Deny covers every other tag and "
    "our own.",
    r"arn:.+:lambda:.+:function:\*": "Any function of the account may read a managed queue; its "
    "timeout is looked at.",
    r"arn:.+:sqs:.+:\*-quarantine(\.fifo)?": "A quarantine is called after its source and bears "
    "no tag; it is made where messages first come back, and may only be sent to.",
    r"arn:.+:kms:.+:<AWS::AccountId>:key/\*": "Which keys encrypt managed queues changes without "
    "a deployment; SQS alone uses them.",
    r"arn:.+:sqs:.+:[\w-]+\*": "The settings name the start of these queues' names.",
    r"<CasesBucket\w+\.Arn>/(cases|findings)/\*": _OBJECTS,
    r"(<TrailBucket\w+\.Arn>|arn:.+:s3:::[^/]+)/AWSLogs/\*": _OBJECTS,
    r"<ReportsBucket\w+\.Arn>/(\w+|report/\*/delivered)/\*": _OBJECTS,
    r"<ReportsBucket\w+\.Arn>/quality/\.writing-\*": "One folder per write, named anew, and "
    "deleted once its table is put whole.",
    r"arn:.+:kms:.+:\*:key/\*": "Whose key encrypts an existing trail is not said; only trails' "
    "objects count.",
    r"<NightlyApplication\w*\.Arn>/jobruns/\*": "Every run of our own application; each night "
    "starts a new one.",
    r"arn:.+:ses:.+:configuration-set/\*": "Which one an identity sends by is set in SES; the "
    "sender is one alone.",
}


def acknowledge(stack: Stack) -> None:
    """Note the reasons on the constructs they are about, for whoever runs the rules."""
    for meant in expected(stack):
        note = Acknowledgment(id=meant.rule, reason=meant.reason)
        Validations.of(meant.construct).acknowledge(note)


def expected(stack: Stack) -> Iterator[Meant]:
    """What the rules find on this stack; no reason is for what nothing has."""
    for each in stack.node.find_all():
        for kind, end, rule, reason in _CONSTRUCTS:
            if isinstance(each, kind) and each.node.path.endswith(end):
                yield from [Meant(each, rule, reason)] if rule else []
                break
        # The rule's name holds the resource, and so the account and the bucket's logical id.
        for resource in wildcards(stack, each) if isinstance(each, iam.Role) else ():
            for reason in reasons_for(resource)[:1]:
                yield Meant(each, f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def reasons_for(resource: str) -> list[str]:
    """Why a role may ask for it."""
    return [said for pattern, said in WILDCARDS.items() if re.fullmatch(pattern, resource)]


def wildcards(stack: Stack, role: iam.Role) -> Iterator[str]:
    """Each resource with a wildcard that a role is allowed something on."""
    policy = role.node.try_find_child("DefaultPolicy")
    if isinstance(policy, iam.Policy):
        document = stack.resolve(policy.document.to_json())
        allowed = (each["Resource"] for each in document["Statement"] if each["Effect"] == "Allow")
        named = (one for each in allowed for one in (each if isinstance(each, list) else [each]))
        yield from dict.fromkeys(shown for each in named if "*" in (shown := _shown(each)))


def _shown(resolved: Any) -> str:
    """A resolved value as cdk-nag spells it in a rule's name."""
    if not isinstance(resolved, dict):
        return str(resolved)
    if "Fn::Join" in resolved:
        return "".join(_shown(part) for part in resolved["Fn::Join"][1])
    if "Fn::GetAtt" in resolved:
        return f"<{'.'.join(resolved['Fn::GetAtt'])}>"
    return f"<{resolved['Ref']}>" if "Ref" in resolved else json.dumps(resolved)
