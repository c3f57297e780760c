"""Whom policies on resources let in: every sender of ours, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from docs.stack_outline import FEEDS, JOINS, NOTICES, WATCHES, Arrow, arrows
from tests.infra.synthesized import THREE, Template, as_list
from tests.infra.template_rules.rule import (
    Fault,
    Findings,
    Resources,
    Rule,
    changed,
    dropped,
    name_of,
    properties,
    seeded,
)

TOPIC, QUEUE, FUNCTION = "AWS::SNS::Topic", "AWS::SQS::Queue", "AWS::Lambda::Function"
PERMISSION = "AWS::Lambda::Permission"
SENDER = {
    "AWS::Events::Rule": "events.amazonaws.com",
    "AWS::CloudTrail::Trail": "cloudtrail.amazonaws.com",
    "AWS::CloudWatch::Alarm": "cloudwatch.amazonaws.com",
    "AWS::CloudWatch::CompositeAlarm": "cloudwatch.amazonaws.com",
}
ACTIONS = {
    TOPIC: ("sns:Publish",),
    QUEUE: ("sqs:SendMessage",),
    "AWS::S3::Bucket": ("s3:GetBucketAcl", "s3:PutObject"),
    FUNCTION: ("lambda:InvokeFunction",),
}
POLICIES = {
    "AWS::SNS::TopicPolicy": "Topics",
    "AWS::SQS::QueuePolicy": "Queues",
    "AWS::S3::BucketPolicy": "Bucket",
}
OF_A_KEY = ("kms:GenerateDataKey", "kms:Decrypt")
# The redrive of a queue's own messages asks nobody, and what only looks sends nothing.
ASKS_NOBODY = {WATCHES, JOINS, NOTICES, FEEDS}


def _arrows(template: Template) -> Findings:
    """Every arrow ends where its sender is let in, and may use the key that is there.

    SNS and SQS encrypt with the sender's permissions: without a grant on the key nothing arrives,
    and no deployment says so. https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
    """
    resources = template.raw["Resources"]
    for arrow in arrows(resources):
        kinds = resources[arrow.source]["Type"], resources[arrow.target]["Type"]
        if arrow.does in ASKS_NOBODY or kinds == (QUEUE, QUEUE):
            continue
        lacks = _lacks if kinds[0] in SENDER else _lacks_its_role
        for each in lacks(template, arrow):
            yield f"{arrow.source} {arrow.does} {arrow.target} without {each}"
    for kind in (TOPIC, QUEUE):
        for name, each in template.all(kind).items():
            key = each["Properties"].get("KmsMasterKeyId")
            for role in template.all("AWS::IAM::Role") if key else ():
                publishes = any(_role_may(template, role, one, name) for one in ACTIONS[kind])
                if publishes and not all(_role_may(template, role, a, key) for a in OF_A_KEY):
                    yield f"{role} may send to {name} and not use its key"


def _lacks(template: Template, arrow: Arrow) -> Iterator[str]:
    """What the policies at its end do not let a service do."""
    resources = template.raw["Resources"]
    source, target = resources[arrow.source], resources[arrow.target]
    service, trail = SENDER[source["Type"]], source["Properties"].get("TrailName")
    policies = list(_policy_of(template, arrow.target))
    for action in ACTIONS[target["Type"]]:
        if not any(_lets(each, service, action, arrow, trail) for each in policies):
            yield action
    if key := target["Properties"].get("KmsMasterKeyId"):
        # None where the key is not ours: the AWS-managed ones let no service in.
        ours = template.all("AWS::KMS::Key").get(template.resolved(key).removeprefix("arn:"))
        statements = ours["Properties"]["KeyPolicy"]["Statement"] if ours else []
        for action in OF_A_KEY:
            if not any(_lets(each, service, action, arrow) for each in statements):
                yield f"{action} on its key"


def _lacks_its_role(template: Template, arrow: Arrow) -> Iterator[str]:
    """What the role under which it is sent may not do."""
    source = template.resolved(template.raw["Resources"][arrow.source])["Properties"]
    role = source.get("Role") or source["Target"]["RoleArn"]
    target = template.raw["Resources"][arrow.target]["Type"]
    for action in ACTIONS[target]:
        if not _role_may(template, role, action, template.arn_of(target, arrow.target)):
            yield f"{action} of its role"


def _role_may(template: Template, role: str, action: str, resource: str) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and _names(statement["Action"], action)
        and _names(statement["Resource"], resource)
        for policy in template.all("AWS::IAM::Policy").values()
        if role.removeprefix("arn:") in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    )


def _policy_of(template: Template, target: str) -> Iterator[dict[str, Any]]:
    for kind, field in POLICIES.items():
        for policy in template.all(kind).values():
            if target in as_list(policy["Properties"][field]):
                yield from policy["Properties"]["PolicyDocument"]["Statement"]
    for permission in template.all(PERMISSION).values():
        if permission["Properties"]["FunctionName"].removeprefix("arn:") == target:
            yield _as_statement(permission["Properties"])


def _as_statement(permission: dict[str, Any]) -> dict[str, Any]:
    """A permission of Lambda's as a policy would say it."""
    who = permission["Principal"]
    sources = {
        f"aws:{key}": permission[key] for key in ("SourceArn", "SourceAccount") if key in permission
    }
    return {
        "Effect": "Allow",
        "Action": permission["Action"],
        "Principal": {"Service" if who.endswith(".amazonaws.com") else "AWS": who},
        "Condition": {"ArnEquals": sources},
    }


def _lets(
    statement: dict[str, Any], service: str, action: str, arrow: Arrow, name: str | None = None
) -> bool:
    principal = statement.get("Principal")
    return (
        statement["Effect"] == "Allow"
        and isinstance(principal, dict)
        and service in as_list(principal.get("Service", []))
        and _names(statement["Action"], action)
        and all(
            _is_it(value, arrow.source, name)
            for test in statement.get("Condition", {}).values()
            for key, values in test.items()
            if key.lower() == "aws:sourcearn"
            for value in as_list(values)
        )
    )


def _is_it(value: str, source: str, name: str | None) -> bool:
    """By the resource itself, by its literal name, or by what fits all of its kind."""
    kind = ":alarm:" in value and value.endswith("*")
    return value == f"arn:{source}" or kind or (name is not None and value.endswith(f"/{name}"))


def _names(patterns: Any, wanted: str) -> bool:
    return any(fnmatchcase(wanted, each) for each in as_list(patterns))


def _statements_of(resources: Resources, kind: str, start: str = "") -> list[dict[str, Any]]:
    given = properties(resources, kind, start)
    document = given.get("PolicyDocument") or given["KeyPolicy"]
    statements: list[dict[str, Any]] = document["Statement"]
    return statements


def _without(kind: str, start: str, action: str) -> Fault:
    """Whatever allows `action` goes from a policy."""

    def fault(resources: Resources) -> None:
        statements = _statements_of(resources, kind, start)
        retained = [each for each in statements if action not in as_list(each["Action"])]
        assert len(retained) < len(statements)
        statements[:] = retained

    return fault


def _an_alarm(resources: Resources) -> None:
    """One that tells a topic which lets no alarm publish."""
    policy = _statements_of(resources, "AWS::SNS::TopicPolicy", "TopicsInfo")
    policy[:] = [each for each in policy if each["Effect"] == "Deny"]
    topic = {"Ref": name_of(resources, TOPIC, "TopicsInfo")}
    seeded("AWS::CloudWatch::Alarm", AlarmActions=[topic])(resources)


def _an_alarm_without_the_key(resources: Resources) -> None:
    _an_alarm(resources)
    let_in = {"Service": "cloudwatch.amazonaws.com"}
    _statements_of(resources, "AWS::SNS::TopicPolicy", "TopicsInfo").append(
        {"Effect": "Allow", "Principal": let_in, "Action": "sns:Publish", "Resource": "*"}
    )
    key = _statements_of(resources, "AWS::KMS::Key")
    key[:] = [each for each in key if each["Principal"] != let_in]


def _of_another_rule(resources: Resources) -> None:
    another = [name_of(resources, "AWS::Events::Rule", "Intake"), "Arn"]
    properties(resources, PERMISSION, "WatchNightly")["SourceArn"] = {"Fn::GetAtt": another}


POLICY = "AWS::IAM::Policy"
ARROWS_ARE_GRANTED = Rule(
    _arrows,
    {
        **{
            f"{action} of {start}": _without(kind, start, action)
            for kind, start, action in (
                ("AWS::SQS::QueuePolicy", "IntakeQueue", "sqs:SendMessage"),
                ("AWS::SQS::QueuePolicy", "IntakeUndelivered", "sqs:SendMessage"),
                ("AWS::S3::BucketPolicy", "TrailBucket", "s3:PutObject"),
                ("AWS::S3::BucketPolicy", "TrailBucket", "s3:GetBucketAcl"),
                (POLICY, "SchedulesRole", "lambda:InvokeFunction"),
                (POLICY, "SchedulesRole", "sqs:SendMessage"),
                (POLICY, "ProbeRole", "sqs:SendMessage"),
                (POLICY, "ProbeRole", "kms:GenerateDataKey"),
            )
        },
        "a trail of another name": changed("AWS::CloudTrail::Trail", TrailName="other"),
        "a rule and its Lambda": _of_another_rule,
        "an alarm and its topic": _an_alarm,
        "an alarm and the key of its topic": _an_alarm_without_the_key,
        "a key of AWS, which lets no service in": changed(
            QUEUE, "IntakeQueue", KmsMasterKeyId="alias/aws/sqs"
        ),
    },
)

# Services that name nobody when they ask: Lambda for a role, EventBridge for a key (SNS's page).
NAME_NOBODY = {
    ("AWS::IAM::Role", "lambda.amazonaws.com"),
    ("AWS::KMS::Key", "events.amazonaws.com"),
}
ACCOUNTS = {each["account"] for each in THREE}
FOR_WHOM = {"aws:sourcearn", "aws:sourceaccount"}


def _open(template: Template) -> Findings:
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
                if kind != POLICY:
                    yield name, kind, statement
        if kind == PERMISSION:
            yield name, kind, _as_statement(given)


def _says_for_whom(statement: dict[str, Any]) -> bool:
    """By a source that is ours: its account, or an ARN that a template of ours names."""
    return any(
        any(each in value for each in ACCOUNTS) or value.removeprefix("arn:").isalnum()
        for test in statement.get("Condition", {}).values()
        for key, values in test.items()
        if key.lower() in FOR_WHOM
        for value in as_list(values)
    )


def _opened(kind: str, start: str, principal: Any) -> Fault:
    added = {"Effect": "Allow", "Principal": principal, "Action": "sqs:SendMessage"}
    return lambda found: _statements_of(found, kind, start).append({**added, "Resource": "*"})


def _anybodys_schedule(resources: Resources) -> None:
    role = properties(resources, "AWS::IAM::Role", "SchedulesRole")
    del role["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]


NOBODY_ELSE_MAY = Rule(
    _open,
    {
        "a queue for everybody": _opened("AWS::SQS::QueuePolicy", "IntakeQueue", "*"),
        "a topic for every account": _opened(
            "AWS::SNS::TopicPolicy", "TopicsUrgent", {"AWS": ["*"]}
        ),
        "a key for everybody": _opened("AWS::KMS::Key", "Topics", {"AWS": "*"}),
        "anybody's rule": lambda found: _statements_of(
            found, "AWS::SQS::QueuePolicy", "IntakeQueue"
        )[1].pop("Condition"),
        "anybody's permission": dropped(PERMISSION, "SourceArn"),
        "anybody's schedule": _anybodys_schedule,
    },
)
