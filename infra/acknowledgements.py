"""What the rules of cdk-nag (AwsSolutions) find here and we mean, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import Construct

from infra.buckets import LOGS, TABLES
from infra.lambdas.deliver_report import OBJECTS, configuration_sets_arn
from infra.lambdas.heal import heal_reads
from infra.lambdas.owner_lambda import owner_reads
from infra.lambdas.scan import scan_reader
from infra.nightly import STAGING
from infra.own_queues import queue_arn
from infra.queue_grants import every_key_arn, looked_at, quarantine_arns
from infra.settings.deployment import DeploymentSettings
from mendq.model.facts import FOLLOW_UP_READS, ROLLBACK_READS, ReadAction
from mendq.model.steps import Owner
from mendq.nightly.verdict import NIGHTLY_RUNS


class Meant(NamedTuple):
    """A finding on the construct at `path`, below the stack."""

    path: str
    rule: str
    reason: str


# The Lambdas that nobody waits for.
_PARKING = ("StartNightly", "WatchNightly", "DeliverReport", "FollowUp", "Scan", "Probe")
# What writes beside heal.
_OWNERS = {
    "AttachDlq": Owner.ATTACH_DLQ,
    "RestorePolicy": Owner.RESTORE_POLICY,
    "Redrive": Owner.REDRIVE,
}
_ALWAYS = (
    Meant(
        "Trail/Bucket",
        "AwsSolutions-S1",
        "This bucket holds logs; who reads it shows in CloudTrail's S3 data events where wanted.",
    ),
    Meant(
        "Cases/Bucket",
        "AwsSolutions-S1",
        "Only what moves cases may write here, under keys that are versioned; reads show in "
        "CloudTrail's S3 data events where wanted.",
    ),
    Meant(
        "Reports/Bucket",
        "AwsSolutions-S1",
        "Only the nightly job and deliver_report may write here, and versions are kept; reads "
        "show in CloudTrail's S3 data events where wanted.",
    ),
    *(
        Meant(path, "AwsSolutions-SQS3", "It is a DLQ itself, of what is no queue.")
        for path in ("Intake/Undelivered", *(f"{each}/Dlq" for each in _PARKING))
    ),
    Meant("Probe/Queue", "AwsSolutions-SQS3", "It never holds a message: it refuses every one."),
    *(
        Meant(
            f"{path}/Function",
            "AwsSolutions-L1",
            "Python 3.13 on purpose: the wheels in the zip are locked and tested for it.",
        )
        for path in ("Heal", *_OWNERS, "Approve", "Rollback", *_PARKING)
    ),
)
_ON_QUEUES = (
    "Which queues are managed is said by tags, which change without a deployment. "
    "Looking is harmless; writing takes the tag, and a Deny covers every other tag and our own."
)
_ON_PREFIXES = "The settings name the start of these queues' names."
_ON_QUARANTINES = (
    "A quarantine is called after its source and bears no tag; it is made where messages first "
    "come back, and may only be sent to."
)
_ON_KEYS = "Which keys encrypt managed queues changes without a deployment; SQS alone uses them."
_ON_OBJECTS = "One object per hour, day, week or transition, under one prefix of one bucket."
_ON_STAGING = "One folder per write, named anew, and deleted once its table is put whole."
_ON_CONFIGURATION_SETS = "Which one an identity sends by is set in SES; the sender is one alone."
_ON_RUNS = "Every run of our own application; each night starts a new one."
_ON_READS = {
    "queue": _ON_QUEUES,
    "function": "Any function of the account may read a managed queue; its timeout is looked at.",
    "any": "These actions take no narrower resource.",
}
_ON_A_TRAILS_KEY = "Whose key encrypts an existing trail is not said; only trails' objects count."


def acknowledge(stack: Stack, settings: DeploymentSettings) -> None:
    """Note the reasons on the constructs they are about, for whoever runs the rules."""
    for meant in expected(stack, settings):
        note = Acknowledgment(id=meant.rule, reason=meant.reason)
        construct = _below(stack, meant.path)
        if construct is not None:
            Validations.of(construct).acknowledge(note)


def expected(stack: Stack, settings: DeploymentSettings) -> tuple[Meant, ...]:
    """What the rules find on this stack."""
    everywhere = (*_ALWAYS, *_wildcards(stack, settings))
    return tuple(meant for meant in everywhere if _below(stack, meant.path) is not None)


def _wildcards(stack: Stack, settings: DeploymentSettings) -> Iterator[Meant]:
    """The rule's name holds the resource, and so the account and the bucket's logical id."""
    writes = _of_writes(stack, settings)
    cases = {f"{_bucket(stack, 'Cases')}/cases/*": _ON_OBJECTS}
    findings = {f"{_bucket(stack, 'Cases')}/findings/*": _ON_OBJECTS}
    for path, found in (
        ("HealRole/Role", _of_reads(stack, heal_reads()) | writes | cases),
        ("FollowUp/Role", _of_reads(stack, FOLLOW_UP_READS) | cases),
        ("Scan/Role", _of_reads(stack, scan_reader()) | findings),
        ("Approve/Role", cases),
        *(
            (f"{path}/Role", _of_reads(stack, owner_reads(owner)) | writes | cases)
            for path, owner in _OWNERS.items()
        ),
        ("Redrive/Role", _of_messages(stack)),
        ("Rollback/Role", _of_reads(stack, ROLLBACK_READS) | writes | cases),
        ("Nightly/Role", _of_the_nightly(stack, settings)),
        ("WatchNightly/Role", _of_the_watch(stack)),
        ("DeliverReport/Role", _of_the_report(stack, settings)),
    ):
        for resource, reason in found.items():
            yield Meant(path, f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def _of_reads(stack: Stack, reader: Iterable[ReadAction]) -> dict[str, str]:
    found = looked_at(stack, reader).items()
    return {_shown(stack.resolve(arn)): _ON_READS[kind] for kind, arn in found}


def _of_writes(stack: Stack, settings: DeploymentSettings) -> dict[str, str]:
    prefixes = (queue_arn(stack, each) for each in settings.queues if each.endswith("*"))
    return {_shown(stack.resolve(each)): _ON_PREFIXES for each in prefixes}


def _of_messages(stack: Stack) -> dict[str, str]:
    quarantines = dict.fromkeys(quarantine_arns(stack), _ON_QUARANTINES)
    found = {**quarantines, every_key_arn(stack): _ON_KEYS}
    return {_shown(stack.resolve(arn)): reason for arn, reason in found.items()}


def _of_the_nightly(stack: Stack, settings: DeploymentSettings) -> dict[str, str]:
    partition = _shown(stack.resolve(stack.partition))
    existing = settings.trail.bucket
    trail = f"arn:{partition}:s3:::{existing}" if existing else _bucket(stack, "Trail")
    reports = _bucket(stack, "Reports")
    cases = _bucket(stack, "Cases")
    folders = (f"{trail}/AWSLogs", f"{cases}/cases", f"{cases}/findings")
    written = (f"{reports}/{each}" for each in (*TABLES, LOGS))
    keys = {f"arn:{partition}:kms:{stack.region}:*:key/*": _ON_A_TRAILS_KEY} if existing else {}
    staging = {f"{reports}/{STAGING}*": _ON_STAGING}
    return {f"{each}/*": _ON_OBJECTS for each in (*folders, *written)} | staging | keys


def _of_the_watch(stack: Stack) -> dict[str, str]:
    application = f"<{_logical_id(stack, 'Nightly/Application')}.Arn>"
    nightly_runs = f"{_bucket(stack, 'Reports')}/{NIGHTLY_RUNS}/*"
    return {nightly_runs: _ON_OBJECTS, f"{application}/jobruns/*": _ON_RUNS}


def _of_the_report(stack: Stack, settings: DeploymentSettings) -> dict[str, str]:
    bucket = _bucket(stack, "Reports")
    found = {f"{bucket}/{keys}": _ON_OBJECTS for _, keys in OBJECTS}
    sets = _shown(stack.resolve(configuration_sets_arn(stack)))
    return found | ({sets: _ON_CONFIGURATION_SETS} if settings.report.mails else {})


def _bucket(stack: Stack, name: str) -> str:
    return f"<{_logical_id(stack, f'{name}/Bucket/Resource')}.Arn>"


def _below(stack: Stack, path: str) -> Construct | None:
    found: Any = stack
    for name in path.split("/"):
        found = found.node.try_find_child(name) if found else None
    construct: Construct | None = found
    return construct


def _logical_id(stack: Stack, path: str) -> str:
    return str(stack.resolve(getattr(_below(stack, path), "logical_id", "")))


def _shown(resolved: Any) -> str:
    """A resolved value as cdk-nag spells it in a rule's name."""
    if not isinstance(resolved, dict):
        return str(resolved)
    if "Fn::Join" in resolved:
        return "".join(_shown(part) for part in resolved["Fn::Join"][1])
    return f"<{resolved['Ref']}>"
