"""The case store and the buckets outlive the stack, and are not in the way of the next one."""

from __future__ import annotations

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, name_of, properties

BUCKET, TABLE = "AWS::S3::Bucket", "AWS::DynamoDB::Table"
RETAINED = {BUCKET: "BucketName", TABLE: "TableName"}


def findings(template: Template) -> Findings:
    for name, each in template.raw["Resources"].items():
        policies = {each.get("DeletionPolicy"), each.get("UpdateReplacePolicy")}
        if each["Type"] not in RETAINED:
            if "Retain" in policies:
                yield f"{name} is kept, and docs/deploy.md does not name it"
            continue
        if policies != {"Retain"}:
            yield f"{name} goes with the stack"
        if RETAINED[each["Type"]] in each["Properties"]:
            yield f"{name} is kept under a name that the next stack would want"
        if each["Type"] == TABLE and not _is_restorable(each["Properties"]):
            yield f"{name} cannot be restored"


def _is_restorable(table: Resources) -> bool:
    wanted = table.get("PointInTimeRecoverySpecification", {})
    return wanted.get("PointInTimeRecoveryEnabled") is True


def _not_retained(resources: Resources, kind: str, policy: str) -> None:
    resources[name_of(resources, kind)][policy] = "Delete"


def _a_retained_key(resources: Resources) -> None:
    resources[name_of(resources, "AWS::KMS::Key")]["DeletionPolicy"] = "Retain"


def _named(resources: Resources, kind: str) -> None:
    properties(resources, kind)[RETAINED[kind]] = "mendq"


RULE = Rule(
    findings,
    {
        "a bucket's name": lambda found: _named(found, BUCKET),
        "a table's name": lambda found: _named(found, TABLE),
        "a table that goes": lambda found: _not_retained(found, TABLE, "DeletionPolicy"),
        "a bucket that is replaced": lambda found: _not_retained(
            found, BUCKET, "UpdateReplacePolicy"
        ),
        "a key that stays behind": _a_retained_key,
        "a table without backups": lambda found: properties(found, TABLE).pop(
            "PointInTimeRecoverySpecification"
        ),
    },
)
