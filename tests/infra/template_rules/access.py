"""Whom policies on resources let in: senders of ours, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Template, as_list

PERMISSION = "AWS::Lambda::Permission"
# Services that name nobody when they ask: Lambda for a role.
NAME_NOBODY = {("AWS::IAM::Role", "lambda.amazonaws.com")}
FOR_WHOM = {"aws:sourcearn", "aws:sourceaccount"}


def nobody_else_may(template: Template) -> Iterator[str]:
    """No policy lets in everybody, nor a service on behalf of whomever asks it to."""
    for name, kind, statement in _statements(template):
        principal = statement.get("Principal", {})
        if statement["Effect"] != "Allow":
            continue
        if "NotPrincipal" in statement or "NotAction" in statement:
            yield f"{name} allows all but some"
        said = principal if isinstance(principal, dict) else {"AWS": principal}
        for who in (who for each in said.values() for who in as_list(each) if "*" in who):
            yield f"{name} lets in {who}"
        for service in as_list(said.get("Service", [])):
            if (kind, service) not in NAME_NOBODY and not _says_for_whom(statement):
                yield f"{name} lets {service} in for anybody"


def _statements(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Of every policy that says who: on queues, topics, buckets, keys, functions and roles."""
    for name, each in template.raw["Resources"].items():
        given, kind = template.resolved(each["Properties"]), each["Type"]
        for field in ("PolicyDocument", "KeyPolicy", "AssumeRolePolicyDocument"):
            for statement in given.get(field, {}).get("Statement", []):
                if kind != "AWS::IAM::Policy":
                    yield name, kind, statement
        if kind == PERMISSION:
            yield name, kind, _as_statement(given)


def _as_statement(permission: dict[str, Any]) -> dict[str, Any]:
    """A permission of Lambda's as a policy would say it."""
    who = permission["Principal"]
    sources = {
        f"aws:{key}": permission[key] for key in ("SourceArn", "SourceAccount") if key in permission
    }
    return {
        "Effect": "Allow",
        "Principal": {"Service" if who.endswith(".amazonaws.com") else "AWS": who},
        "Condition": {"ArnEquals": sources},
    }


def _says_for_whom(statement: dict[str, Any]) -> bool:
    """By the source's account, or by its ARN."""
    tests = statement.get("Condition", {}).values()
    return any(key.lower() in FOR_WHOM for test in tests for key in test)
