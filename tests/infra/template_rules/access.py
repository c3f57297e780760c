"""Resource policies let in only Mendq's own senders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from tests.infra.synthesized import Template, as_list

PERMISSION = "AWS::Lambda::Permission"
# Services that send no source account or ARN: Lambda when it assumes a role.
SERVICES_WITHOUT_SOURCE = {("AWS::IAM::Role", "lambda.amazonaws.com")}
SOURCE_KEYS = {"aws:sourcearn", "aws:sourceaccount"}


def check_resource_policies(template: Template) -> Iterator[str]:
    """No policy lets in everybody, or a service on behalf of any account."""
    for name, kind, statement in _statements(template):
        if statement["Effect"] != "Allow":
            continue
        if "NotPrincipal" in statement or "NotAction" in statement:
            yield f"{name} allows all but some"
        yield from _check_principals(name, kind, statement)


def _check_principals(name: str, kind: str, statement: dict[str, Any]) -> Iterator[str]:
    principal = statement.get("Principal", {})
    principals = principal if isinstance(principal, dict) else {"AWS": principal}
    for entry in chain.from_iterable(map(as_list, principals.values())):
        if "*" in entry:
            yield f"{name} lets in {entry}"
    for service in as_list(principals.get("Service", [])):
        if (kind, service) not in SERVICES_WITHOUT_SOURCE and not _names_source(statement):
            yield f"{name} lets {service} in for anybody"


def _statements(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the statements of all resource policies, key policies and trust policies."""
    for name, resource in template.raw["Resources"].items():
        given = template.resolve(resource["Properties"])
        kind = resource["Type"]
        for field in ("PolicyDocument", "KeyPolicy", "AssumeRolePolicyDocument"):
            for statement in given.get(field, {}).get("Statement", []):
                if kind != "AWS::IAM::Policy":
                    yield name, kind, statement
        if kind == PERMISSION:
            yield name, kind, _as_statement(given)


def _as_statement(permission: dict[str, Any]) -> dict[str, Any]:
    """Return a Lambda permission as a policy statement."""
    principal = permission["Principal"]
    sources = {
        f"aws:{key}": permission[key] for key in ("SourceArn", "SourceAccount") if key in permission
    }
    return {
        "Effect": "Allow",
        "Principal": {"Service" if principal.endswith(".amazonaws.com") else "AWS": principal},
        "Condition": {"ArnEquals": sources},
    }


def _names_source(statement: dict[str, Any]) -> bool:
    """Return True if a condition names the source's account or ARN."""
    tests = statement.get("Condition", {}).values()
    return any(key.lower() in SOURCE_KEYS for test in tests for key in test)
