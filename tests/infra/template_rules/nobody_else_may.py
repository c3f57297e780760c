"""No policy of ours lets in everybody, nor a service on behalf of whomever asks it to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import THREE, Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, as_list, properties

# Services that name nobody when they ask: Lambda for a role, EventBridge for a key (SNS's page).
NAME_NOBODY = {
    ("AWS::IAM::Role", "lambda.amazonaws.com"),
    ("AWS::KMS::Key", "events.amazonaws.com"),
}
ACCOUNTS = {each["account"] for each in THREE}
FOR_WHOM = {"aws:sourcearn", "aws:sourceaccount"}


def findings(template: Template) -> Findings:
    for name, kind, statement in _statements(template):
        if statement["Effect"] != "Allow":
            continue
        if "NotPrincipal" in statement or "NotAction" in statement:
            yield f"{name} allows all but some"
        for who in _principals(statement.get("Principal", {})):
            if "*" in who:
                yield f"{name} lets in {who}"
        for service in as_list(_services(statement)):
            if (kind, service) not in NAME_NOBODY and not _says_for_whom(statement):
                yield f"{name} lets {service} in for anybody"


def _statements(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Of every policy that says who: on queues, topics, buckets, keys, functions and roles."""
    for name, each in template.raw["Resources"].items():
        given = template.resolved(each["Properties"])
        for field in ("PolicyDocument", "KeyPolicy", "AssumeRolePolicyDocument"):
            for statement in given.get(field, {}).get("Statement", []):
                if each["Type"] != "AWS::IAM::Policy":
                    yield name, each["Type"], statement
        if each["Type"] == "AWS::Lambda::Permission":
            conditions = {
                f"aws:{key}": given[key] for key in ("SourceArn", "SourceAccount") if key in given
            }
            who = given["Principal"]
            principal = {"Service" if who.endswith(".amazonaws.com") else "AWS": who}
            condition = {"Condition": {"StringEquals": conditions}}
            yield name, each["Type"], {"Effect": "Allow", "Principal": principal, **condition}


def _principals(principal: Any) -> list[str]:
    if isinstance(principal, str):
        return [principal]
    return [who for each in principal.values() for who in as_list(each)]


def _services(statement: dict[str, Any]) -> list[str]:
    principal = statement.get("Principal", {})
    return as_list(principal.get("Service", [])) if isinstance(principal, dict) else []


def _says_for_whom(statement: dict[str, Any]) -> bool:
    """By a source that is ours: its account, or an ARN that a template of ours names."""
    return any(
        any(each in value for each in ACCOUNTS) or value.removeprefix("arn:").isalnum()
        for test in statement.get("Condition", {}).values()
        for key, values in test.items()
        if key.lower() in FOR_WHOM
        for value in as_list(values)
    )


def _open(resources: Resources, kind: str, start: str, principal: Any) -> None:
    given = properties(resources, kind, start)
    document = given.get("PolicyDocument") or given["KeyPolicy"]
    document["Statement"].append(
        {"Effect": "Allow", "Principal": principal, "Action": "sqs:SendMessage", "Resource": "*"}
    )


def _anybodys_rule(resources: Resources) -> None:
    statements = properties(resources, "AWS::SQS::QueuePolicy", "IntakeQueue")["PolicyDocument"]
    del statements["Statement"][1]["Condition"]


def _anybodys_permission(resources: Resources) -> None:
    del properties(resources, "AWS::Lambda::Permission")["SourceArn"]


def _anybodys_schedule(resources: Resources) -> None:
    role = properties(resources, "AWS::IAM::Role", "SchedulesRole")
    del role["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]


RULE = Rule(
    findings,
    {
        "a queue for everybody": lambda found: _open(
            found, "AWS::SQS::QueuePolicy", "IntakeQueue", "*"
        ),
        "a topic for every account": lambda found: _open(
            found, "AWS::SNS::TopicPolicy", "TopicsUrgent", {"AWS": ["*"]}
        ),
        "a key for everybody": lambda found: _open(found, "AWS::KMS::Key", "Topics", {"AWS": "*"}),
        "anybody's rule": _anybodys_rule,
        "anybody's permission": _anybodys_permission,
        "anybody's schedule": _anybodys_schedule,
    },
)
