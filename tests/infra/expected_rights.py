"""The IAM decisions that the roles' policies must give, by settings, resource, tags and keys.

Each entry of RIGHTS stands for every combination of its settings, roles, actions, resources and
request contexts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mendq.catalogue import CATALOGUE
from mendq.model.message_calls import MESSAGE_ACTIONS
from tests.infra.synthesized import ACCOUNT, CALENDAR, QUEUE_ARNS, REGION

_FIXABLE_SYMPTOMS = [symptom.name for symptom in CATALOGUE if symptom.steps]
_OBSERVE = dict.fromkeys(_FIXABLE_SYMPTOMS, "observe")
_PROPOSE = dict.fromkeys(_FIXABLE_SYMPTOMS, "propose")
ON_CALL = f"arn:aws:sns:{REGION}:{ACCOUNT}:on-call"
# Settings by name, besides those of tests.infra.synthesized.
FURTHER_SETTINGS: dict[str, dict[str, Any]] = {
    "autonomous observing": {"mode": "heal", "tagMayRaiseTo": "heal", "autonomy": _OBSERVE},
    "autonomous proposing": {"mode": "heal", "autonomy": _PROPOSE},
    "tag proposing": {"tagMayRaiseTo": "propose"},
    "prefixed": {"trail": {"create": False, "bucket": "our-logs", "prefix": "a/o-abc"}},
    "own prefixed": {"trail": {"prefix": "logs"}},
    "their topics": {"notifications": {"topics": {"urgent": ON_CALL, "info": f"{ON_CALL}-info"}}},
}
# The Lambdas that write queue attributes. Only the first three and redrive act without a person.
WRITERS = ("Heal", "AttachDlq", "RestorePolicy", "Redrive", "Rollback")
FIXERS = ("Heal", "AttachDlq", "RestorePolicy", "Redrive")
WRITERS_OF_ONE_QUEUE = ("Heal", "AttachDlq", "RestorePolicy", "Rollback")

SET_ATTRIBUTES = "sqs:SetQueueAttributes"
CREATE_QUEUE = "sqs:CreateQueue"
MOVE_MESSAGES = MESSAGE_ACTIONS
# Every message action that could empty a queue.
TAKE_MESSAGES = tuple(action for action in MESSAGE_ACTIONS if action != "sqs:SendMessage")
USE_KEY = ("kms:Decrypt", "kms:GenerateDataKey")
READ_OR_WRITE_ITEM = ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
DELETE_ITEM = ("dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:PartiQLDelete")
READ_SEVERAL_ITEMS = ("dynamodb:Query", "dynamodb:Scan", "dynamodb:BatchGetItem")
# Calls that write items without a partition key that IAM sees, or change the table.
WRITE_TO_WHOLE_TABLE = (
    "dynamodb:BatchWriteItem",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PartiQLDelete",
    "dynamodb:UpdateTable",
    "dynamodb:UpdateTimeToLive",
    "dynamodb:DeleteTable",
    "dynamodb:RestoreTableToPointInTime",
)
SEND_MAIL = ("ses:SendEmail", "ses:SendRawEmail")

ALLOWED = ("Allow",)
DENIED = ("Deny",)
NOT_GRANTED = ("ImplicitDeny",)
DENIED_OR_NOT_GRANTED = ("Deny", "ImplicitDeny")

OWN_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
KEY_OF_ANOTHER_ACCOUNT = f"arn:aws:kms:{REGION}:444455556666:key/1"


@dataclass(frozen=True)
class StackResource:
    """A resource of the stack whose logical id begins with `id_prefix`, and a path below it."""

    id_prefix: str
    path: str = ""


@dataclass(frozen=True)
class RequestContext:
    """The tags of the called queue, and the other condition keys of the call."""

    tags: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpectedRights:
    """The answers that IAM may give to every combination of these values."""

    settings: tuple[str, ...]
    roles: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str | StackResource, ...]
    contexts: tuple[RequestContext, ...]
    answers: tuple[str, ...]


def queue(name: str) -> str:
    return f"{QUEUE_ARNS}{name}"


def mail_resource(path: str) -> str:
    return f"arn:aws:ses:{REGION}:{ACCOUNT}:{path}"


UNTAGGED = RequestContext()
TAGGED_HEAL = RequestContext(tags={"mendq": "heal"})
TAGGED_PROPOSE = RequestContext(tags={"mendq": "propose"})
# Values of the tag that let nothing be written.
TAGGED_OTHERWISE = (
    RequestContext(tags={"mendq": "observe"}),
    RequestContext(tags={"mendq": "off"}),
    RequestContext(tags={"mendq": "Heal"}),
    RequestContext(tags={"mendq": ""}),
)


def _make_key_context(service: str) -> RequestContext:
    return RequestContext(
        keys={
            "kms:ViaService": f"{service}.{REGION}.amazonaws.com",
            "kms:CallerAccount": ACCOUNT,
        }
    )


BY_SQS = _make_key_context("sqs")
BY_SNS = _make_key_context("sns")
BY_S3 = _make_key_context("s3")


def _make_partition_context(partition_key: str) -> RequestContext:
    return RequestContext(keys={"dynamodb:LeadingKeys": partition_key})


CASE_STORE = StackResource("CaseStore")
SEALS = StackResource("Seals")
WITHOUT_PARTITION = UNTAGGED
PARTITION_OF_ACCOUNT = _make_partition_context("account")
PARTITION_OF_QUEUE = _make_partition_context(queue("orders"))
PARTITION_OF_CASE = _make_partition_context("case#1a2b")
PARTITION_OF_BASELINES = _make_partition_context(f"baselines#{queue('orders')}")
# Keys that only resemble the partition about the account.
OTHER_PARTITIONS = tuple(
    _make_partition_context(partition_key) for partition_key in ("", "Account", "account#", "*")
)
CASE_WRITERS = (*WRITERS, "FollowUp", "Approve")
LAMBDAS_WITH_THE_CASE_STORE = (*CASE_WRITERS, "Scan", "Probe")
LAMBDAS_WITHOUT_SEALS = (
    *(name for name in LAMBDAS_WITH_THE_CASE_STORE if name != "Redrive"),
    "StartNightly",
    "WatchNightly",
    "DeliverReport",
    "Nightly",
)
FOR_THE_TRAIL = RequestContext(
    keys={"kms:EncryptionContext:aws:cloudtrail:arn": "arn:aws:cloudtrail:::trail/theirs"}
)

RIGHTS = (
    # Changing an attribute of a queue, and moving its messages.
    ExpectedRights(
        settings=("default",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"), queue("not-named")),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("AttachDlq", "Redrive"),
        actions=(CREATE_QUEUE, *MOVE_MESSAGES),
        resources=(queue("orders"), queue("orders-quarantine")),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=DENIED_OR_NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("orders"),),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged", "named"),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("not-named"),),
        contexts=(TAGGED_HEAL, TAGGED_PROPOSE),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged", "named"),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("not-named"),),
        contexts=(TAGGED_HEAL, TAGGED_PROPOSE),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("proposing",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("not-named"),),
        contexts=(TAGGED_HEAL, TAGGED_PROPOSE),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("proposing",),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("not-named"),),
        contexts=(TAGGED_HEAL, TAGGED_PROPOSE),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"), queue("billing-eu"), queue("billing-eu.fifo")),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("orders"), queue("billing-eu")),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("proposing",),
        roles=("Heal", "Rollback"),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("not-named"), queue("orders-eu"), queue("billing"), queue("xorders")),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("not-named"),),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # A tag with another value forbids every write, even if the settings name the queue.
    ExpectedRights(
        settings=("named",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=TAGGED_OTHERWISE,
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("not-named"),),
        contexts=TAGGED_OTHERWISE,
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("AttachDlq",),
        actions=(CREATE_QUEUE,),
        resources=(queue("orders"),),
        contexts=TAGGED_OTHERWISE,
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("Redrive",),
        actions=MOVE_MESSAGES,
        resources=(queue("orders"),),
        contexts=TAGGED_OTHERWISE,
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("Redrive",),
        actions=(*MOVE_MESSAGES, SET_ATTRIBUTES),
        resources=(queue("orders"),),
        contexts=(
            RequestContext(tags={"mendq": "heal", "mendq:redrive": "off"}),
            RequestContext(tags={"mendq": "heal", "mendq:redrive": "no"}),
            RequestContext(tags={"mendq:redrive": "off"}),
        ),
        answers=DENIED,
    ),
    # Queues of another account or region.
    ExpectedRights(
        settings=("named",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(
            "arn:aws:sqs:us-east-1:444455556666:orders",
            "arn:aws:sqs:eu-west-1:111122223333:orders",
        ),
        contexts=(TAGGED_HEAL,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("AttachDlq",),
        actions=(CREATE_QUEUE,),
        resources=("arn:aws:sqs:us-east-1:444455556666:a", "arn:aws:sqs:eu-west-1:111122223333:a"),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # Only attach_dlq creates queues, under any name and without tags.
    ExpectedRights(
        settings=("tagged",),
        roles=("AttachDlq",),
        actions=(CREATE_QUEUE,),
        resources=(queue("any-name"),),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("AttachDlq",),
        actions=(CREATE_QUEUE,),
        resources=(queue("any-name"),),
        contexts=(RequestContext(keys={"aws:TagKeys": "team"}),),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged", "proposing", "named"),
        roles=("Heal", "Rollback", "RestorePolicy", "FollowUp", "Approve", "Scan", "Probe"),
        actions=(CREATE_QUEUE,),
        resources=(queue("any-name"),),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=NOT_GRANTED,
    ),
    # Redrive creates quarantine queues and sends to them. No role may empty or change one, even if
    # its name or tag is managed.
    ExpectedRights(
        settings=("tagged", "proposing", "named"),
        roles=("Redrive",),
        actions=(CREATE_QUEUE,),
        resources=(queue("billing-quarantine"), queue("billing-quarantine.fifo")),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged", "proposing", "named"),
        roles=("Redrive",),
        actions=("sqs:SendMessage", "sqs:GetQueueAttributes"),
        resources=(queue("billing-quarantine"), queue("billing-quarantine.fifo")),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged", "proposing", "named"),
        roles=("Redrive",),
        actions=(*TAKE_MESSAGES, SET_ATTRIBUTES),
        resources=(queue("billing-quarantine"), queue("billing-quarantine.fifo")),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("tagged", "named"),
        roles=("Redrive",),
        actions=(*TAKE_MESSAGES, SET_ATTRIBUTES),
        resources=(queue("billing-dlq"),),
        contexts=(TAGGED_HEAL,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged", "proposing", "named"),
        roles=WRITERS_OF_ONE_QUEUE,
        actions=(SET_ATTRIBUTES, CREATE_QUEUE, *MOVE_MESSAGES),
        resources=(queue("billing-quarantine"), queue("billing-quarantine.fifo")),
        contexts=(UNTAGGED, TAGGED_HEAL),
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("Redrive",),
        actions=(CREATE_QUEUE, "sqs:SendMessage"),
        resources=(queue("orders-quarantine-2"), queue("quarantine-orders"), queue("orders-dlq")),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("Redrive",),
        actions=(CREATE_QUEUE,),
        resources=(queue("orders-quarantine"),),
        contexts=(RequestContext(keys={"aws:TagKeys": "mendq"}),),
        answers=NOT_GRANTED,
    ),
    # No other Lambda moves messages of a managed queue, and the Lambdas that only invoke an owner
    # write nothing.
    ExpectedRights(
        settings=("named",),
        roles=(
            "Heal",
            "AttachDlq",
            "RestorePolicy",
            "Rollback",
            "FollowUp",
            "Approve",
            "Scan",
            "Probe",
        ),
        actions=MOVE_MESSAGES,
        resources=(queue("orders"),),
        contexts=(TAGGED_HEAL,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged", "named"),
        roles=("FollowUp", "Approve", "Scan", "Probe"),
        actions=(SET_ATTRIBUTES, CREATE_QUEUE),
        resources=(queue("orders"),),
        contexts=(TAGGED_HEAL,),
        answers=NOT_GRANTED,
    ),
    # Keys of this account's queues, only if SQS uses them for the role.
    ExpectedRights(
        settings=("tagged",),
        roles=("Redrive",),
        actions=USE_KEY,
        resources=(OWN_KEY,),
        contexts=(BY_SQS,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("Redrive",),
        actions=USE_KEY,
        resources=(OWN_KEY,),
        contexts=(UNTAGGED, BY_S3),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tagged",),
        roles=("Redrive",),
        actions=USE_KEY,
        resources=(KEY_OF_ANOTHER_ACCOUNT,),
        contexts=(BY_SQS,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("Redrive",),
        actions=USE_KEY,
        resources=(OWN_KEY,),
        contexts=(BY_SQS,),
        answers=NOT_GRANTED,
    ),
    # The key of an existing trail, only for files that this trail wrote.
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("kms:Decrypt",),
        resources=(KEY_OF_ANOTHER_ACCOUNT,),
        contexts=(FOR_THE_TRAIL,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("kms:Decrypt",),
        resources=(KEY_OF_ANOTHER_ACCOUNT,),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("kms:Encrypt",),
        resources=(KEY_OF_ANOTHER_ACCOUNT,),
        contexts=(FOR_THE_TRAIL,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("Nightly",),
        actions=("kms:Decrypt",),
        resources=(KEY_OF_ANOTHER_ACCOUNT,),
        contexts=(FOR_THE_TRAIL,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            "arn:aws:s3:::our-cloudtrail-logs/AWSLogs/111122223333/a.json.gz",
            "arn:aws:s3:::our-cloudtrail-logs/AWSLogs/o-abc/111122223333/a.json.gz",
        ),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("s3:PutObject",),
        resources=("arn:aws:s3:::our-cloudtrail-logs/AWSLogs/111122223333/a.json.gz",),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # Trail files of another account.
    ExpectedRights(
        settings=("existing trail",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            "arn:aws:s3:::our-cloudtrail-logs/AWSLogs/444455556666/a.json.gz",
            "arn:aws:s3:::our-cloudtrail-logs/AWSLogs/o-abc/444455556666/a.json.gz",
        ),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # Below the trail's prefix, only files of the stack's own account.
    ExpectedRights(
        settings=("prefixed",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            "arn:aws:s3:::our-logs/a/o-abc/AWSLogs/111122223333/x",
            "arn:aws:s3:::our-logs/a/o-abc/AWSLogs/o-abc/111122223333/x",
        ),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("prefixed",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            "arn:aws:s3:::our-logs/a/o-abc/AWSLogs/444455556666/x",
            "arn:aws:s3:::our-logs/a/o-abc/AWSLogs/o-abc/444455556666/x",
        ),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("prefixed",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            "arn:aws:s3:::our-logs/AWSLogs/111122223333/x",
            "arn:aws:s3:::our-logs/x/a/o-abc/AWSLogs/111122223333/x",
            "arn:aws:s3:::our-logs/a/o-abc/111122223333/x",
        ),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("own prefixed",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(StackResource("TrailBucket", "/logs/AWSLogs/111122223333/x"),),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("own prefixed",),
        roles=("Nightly",),
        actions=("s3:GetObject",),
        resources=(
            StackResource("TrailBucket", "/AWSLogs/111122223333/x"),
            StackResource("TrailBucket", "/logs/AWSLogs/444455556666/x"),
        ),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # Existing topics of this account, and their keys if SNS uses them for the role.
    ExpectedRights(
        settings=("their topics",),
        roles=("Heal", "AttachDlq", "RestorePolicy", "Redrive", "FollowUp"),
        actions=("sns:Publish",),
        resources=(
            "arn:aws:sns:us-east-1:111122223333:on-call",
            "arn:aws:sns:us-east-1:111122223333:on-call-info",
        ),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("their topics",),
        roles=("Heal",),
        actions=("sns:Publish",),
        resources=("arn:aws:sns:us-east-1:111122223333:on-call-2",),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("their topics",),
        roles=("Heal",),
        actions=USE_KEY,
        resources=(OWN_KEY,),
        contexts=(BY_SNS,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("their topics",),
        roles=("Heal",),
        actions=USE_KEY,
        resources=(OWN_KEY,),
        contexts=(BY_S3,),
        answers=NOT_GRANTED,
    ),
    # Only change calendars that the settings name.
    ExpectedRights(
        settings=("default",),
        roles=FIXERS,
        actions=("ssm:GetCalendarState",),
        resources=(CALENDAR,),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=FIXERS,
        actions=("ssm:GetCalendarState",),
        resources=(CALENDAR,),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=FIXERS,
        actions=("ssm:GetCalendarState",),
        resources=(f"{CALENDAR}-of-others",),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    # Passing the job's role only to EMR Serverless, and listing only the job's prefixes.
    ExpectedRights(
        settings=("default",),
        roles=("StartNightly",),
        actions=("iam:PassRole",),
        resources=(StackResource("NightlyRole"),),
        contexts=(RequestContext(keys={"iam:PassedToService": "emr-serverless.amazonaws.com"}),),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("StartNightly",),
        actions=("iam:PassRole",),
        resources=(StackResource("NightlyRole"),),
        contexts=(
            RequestContext(keys={"iam:PassedToService": "lambda.amazonaws.com"}),
            RequestContext(keys={"iam:PassedToService": ""}),
            UNTAGGED,
        ),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("StartNightly",),
        actions=("iam:PassRole",),
        resources=(StackResource("HealRole"), "arn:aws:iam::111122223333:role/admin"),
        contexts=(RequestContext(keys={"iam:PassedToService": "emr-serverless.amazonaws.com"}),),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("WatchNightly",),
        actions=("s3:ListBucket",),
        resources=(StackResource("ReportsBucket"),),
        contexts=(
            RequestContext(keys={"s3:prefix": "nightly/dt="}),
            RequestContext(keys={"s3:prefix": "summary/week="}),
        ),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("WatchNightly",),
        actions=("s3:ListBucket",),
        resources=(StackResource("ReportsBucket"),),
        contexts=(RequestContext(keys={"s3:prefix": "report/"}), UNTAGGED),
        answers=NOT_GRANTED,
    ),
    # Mail only from the sender, with identities of the sender and the recipients.
    ExpectedRights(
        settings=("named",),
        roles=("DeliverReport",),
        actions=SEND_MAIL,
        resources=(
            mail_resource("identity/reports@mail.example.com"),
            mail_resource("identity/mail.example.com"),
            mail_resource("identity/example.com"),
            mail_resource("identity/ada@example.com"),
            mail_resource("identity/example.org"),
            mail_resource("configuration-set/ours"),
        ),
        contexts=(RequestContext(keys={"ses:FromAddress": "reports@mail.example.com"}),),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("DeliverReport",),
        actions=SEND_MAIL,
        resources=(
            mail_resource("identity/reports@mail.example.com"),
            mail_resource("identity/example.com"),
            mail_resource("configuration-set/ours"),
        ),
        contexts=(
            RequestContext(keys={"ses:FromAddress": "ceo@example.com"}),
            RequestContext(keys={"ses:FromAddress": "reports@mail.example.com.evil.io"}),
            RequestContext(keys={"ses:FromAddress": ""}),
        ),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("DeliverReport",),
        actions=SEND_MAIL,
        resources=(
            mail_resource("identity/another.com"),
            mail_resource("identity/com"),
            mail_resource("identity/org"),
            mail_resource("identity/ceo@example.com"),
            mail_resource("identity/*"),
        ),
        contexts=(RequestContext(keys={"ses:FromAddress": "reports@mail.example.com"}),),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("named",),
        roles=("DeliverReport",),
        actions=("ses:SendBulkEmail", "ses:SendTemplatedEmail", "ses:CreateEmailIdentity"),
        resources=(mail_resource("identity/reports@mail.example.com"),),
        contexts=(RequestContext(keys={"ses:FromAddress": "reports@mail.example.com"}),),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default",),
        roles=("DeliverReport",),
        actions=SEND_MAIL,
        resources=(mail_resource("identity/example.com"),),
        contexts=(RequestContext(keys={"ses:FromAddress": "reports@mail.example.com"}),),
        answers=NOT_GRANTED,
    ),
    # Modes and autonomy that forbid every write, or allow it only by tag or approval.
    ExpectedRights(
        settings=("autonomous observing",),
        roles=WRITERS,
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(UNTAGGED, TAGGED_PROPOSE, TAGGED_HEAL),
        answers=DENIED_OR_NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("autonomous proposing",),
        roles=("Heal",),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(UNTAGGED,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("autonomous proposing",),
        roles=("Heal",),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(RequestContext(tags={"mendq": "observe"}),),
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("tag proposing",),
        roles=("Heal",),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(UNTAGGED,),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("tag proposing",),
        roles=("Heal",),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(RequestContext(tags={"mendq": "observe"}),),
        answers=DENIED,
    ),
    ExpectedRights(
        settings=("tag proposing",),
        roles=("Heal",),
        actions=(SET_ATTRIBUTES,),
        resources=(queue("orders"),),
        contexts=(TAGGED_PROPOSE,),
        answers=ALLOWED,
    ),
    # The items of the case store, by partition key. A call without one is denied too.
    ExpectedRights(
        settings=("default", "named"),
        roles=("Probe",),
        actions=READ_OR_WRITE_ITEM,
        resources=(CASE_STORE,),
        contexts=(PARTITION_OF_ACCOUNT,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Probe",),
        actions=READ_OR_WRITE_ITEM,
        resources=(CASE_STORE,),
        contexts=(
            WITHOUT_PARTITION,
            PARTITION_OF_QUEUE,
            PARTITION_OF_CASE,
            PARTITION_OF_BASELINES,
            *OTHER_PARTITIONS,
        ),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Probe",),
        actions=(*DELETE_ITEM, *READ_SEVERAL_ITEMS),
        resources=(CASE_STORE,),
        contexts=(WITHOUT_PARTITION, PARTITION_OF_ACCOUNT),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Scan",),
        actions=("dynamodb:UpdateItem",),
        resources=(CASE_STORE,),
        contexts=(PARTITION_OF_ACCOUNT, PARTITION_OF_BASELINES),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Scan",),
        actions=("dynamodb:UpdateItem",),
        resources=(CASE_STORE,),
        contexts=(
            WITHOUT_PARTITION,
            PARTITION_OF_QUEUE,
            PARTITION_OF_CASE,
            _make_partition_context("baselines"),
            *OTHER_PARTITIONS,
        ),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Scan",),
        actions=("dynamodb:PutItem", *DELETE_ITEM),
        resources=(CASE_STORE,),
        contexts=(WITHOUT_PARTITION, PARTITION_OF_ACCOUNT, PARTITION_OF_QUEUE),
        answers=NOT_GRANTED,
    ),
    # Only redrive reads the keys of the seals. No Lambda deletes them.
    ExpectedRights(
        settings=("default", "named"),
        roles=("Redrive",),
        actions=("dynamodb:GetItem", "dynamodb:UpdateItem"),
        resources=(SEALS,),
        contexts=(PARTITION_OF_QUEUE,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=("Redrive",),
        actions=("dynamodb:PutItem", *DELETE_ITEM, *READ_SEVERAL_ITEMS, *WRITE_TO_WHOLE_TABLE),
        resources=(SEALS,),
        contexts=(WITHOUT_PARTITION, PARTITION_OF_QUEUE),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=LAMBDAS_WITHOUT_SEALS,
        actions=(
            *READ_OR_WRITE_ITEM,
            "dynamodb:ConditionCheckItem",
            "dynamodb:PartiQLSelect",
            *DELETE_ITEM,
            *READ_SEVERAL_ITEMS,
            *WRITE_TO_WHOLE_TABLE,
        ),
        resources=(SEALS,),
        contexts=(WITHOUT_PARTITION, PARTITION_OF_QUEUE, PARTITION_OF_ACCOUNT),
        answers=NOT_GRANTED,
    ),
    # No Lambda deletes the freeze, which is in the partition about the account.
    ExpectedRights(
        settings=("default", "named"),
        roles=CASE_WRITERS,
        actions=("dynamodb:DeleteItem",),
        resources=(CASE_STORE,),
        contexts=(PARTITION_OF_QUEUE,),
        answers=ALLOWED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=(*LAMBDAS_WITH_THE_CASE_STORE, "StartNightly", "WatchNightly", "DeliverReport"),
        actions=DELETE_ITEM,
        resources=(CASE_STORE,),
        contexts=(
            WITHOUT_PARTITION,
            PARTITION_OF_ACCOUNT,
            PARTITION_OF_CASE,
            _make_partition_context(""),
        ),
        answers=NOT_GRANTED,
    ),
    ExpectedRights(
        settings=("default", "named"),
        roles=LAMBDAS_WITH_THE_CASE_STORE,
        actions=WRITE_TO_WHOLE_TABLE,
        resources=(CASE_STORE,),
        contexts=(WITHOUT_PARTITION, PARTITION_OF_ACCOUNT, PARTITION_OF_QUEUE),
        answers=NOT_GRANTED,
    ),
)
