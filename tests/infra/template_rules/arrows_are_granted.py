"""Every arrow between services ends where its sender is let in, and may use the key that is there.

SNS and SQS encrypt with the sender's permissions: without a grant on the key nothing arrives, and
no deployment says so. https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from docs.stack_outline import FEEDS, JOINS, NOTICES, WATCHES, Arrow, arrows
from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import (
    Findings,
    Resources,
    Rule,
    add,
    as_list,
    name_of,
    properties,
)

TOPIC, QUEUE, FUNCTION = "AWS::SNS::Topic", "AWS::SQS::Queue", "AWS::Lambda::Function"
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


def findings(template: Template) -> Findings:
    resources = template.raw["Resources"]
    for arrow in arrows(resources):
        kinds = resources[arrow.source]["Type"], resources[arrow.target]["Type"]
        if arrow.does in ASKS_NOBODY or kinds == (QUEUE, QUEUE):
            continue
        said = f"{arrow.source} {arrow.does} {arrow.target}"
        if arrow.source in template.all("AWS::Lambda::Function") or kinds[0] not in SENDER:
            yield from (f"{said} without {each}" for each in _lacks_its_role(template, arrow))
        else:
            yield from (f"{said} without {each}" for each in _lacks(template, arrow))
    yield from _publishers_without_a_key(template)


def _lacks(template: Template, arrow: Arrow) -> Iterator[str]:
    """What the policies at its end do not let a service do."""
    resources = template.raw["Resources"]
    source, target = resources[arrow.source], resources[arrow.target]
    service = SENDER[source["Type"]]
    for action in ACTIONS[target["Type"]]:
        if not any(
            _lets(each, service, action, arrow, source["Properties"].get("TrailName"))
            for each in _policy_of(template, arrow.target)
        ):
            yield action
    key = target["Properties"].get("KmsMasterKeyId")
    if key is None:
        return
    statements = _key_policy(template, template.resolved(key))
    for action in OF_A_KEY:
        if not any(_lets(each, service, action, arrow) for each in statements):
            yield f"{action} on its key"


def _lacks_its_role(template: Template, arrow: Arrow) -> Iterator[str]:
    """What the role under which it is sent may not do."""
    source = template.resolved(template.raw["Resources"][arrow.source])["Properties"]
    role = source.get("Role") or source["Target"]["RoleArn"]
    target = template.raw["Resources"][arrow.target]["Type"]
    arn = template.arn_of(target, arrow.target)
    for action in ACTIONS[target]:
        if not _role_may(template, role, action, arn):
            yield f"{action} of its role"


def _publishers_without_a_key(template: Template) -> Iterator[str]:
    """Roles that may publish to an encrypted topic, or send to such a queue, and cannot encrypt."""
    for kind in (TOPIC, QUEUE):
        for name, each in template.all(kind).items():
            key = each["Properties"].get("KmsMasterKeyId")
            for role in template.all("AWS::IAM::Role") if key else ():
                for action in ACTIONS[kind]:
                    if _role_may(template, role, action, name) and not all(
                        _role_may(template, role, of_a_key, key) for of_a_key in OF_A_KEY
                    ):
                        yield f"{role} may {action} on {name} and not use its key"


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
    for permission in template.all("AWS::Lambda::Permission").values():
        given = permission["Properties"]
        if given["FunctionName"].removeprefix("arn:") == target:
            source = {"ArnEquals": {"aws:SourceArn": given["SourceArn"]}}
            principal = {"Service": given["Principal"]}
            yield {**given, "Effect": "Allow", "Principal": principal, "Condition": source}


def _key_policy(template: Template, key: str) -> list[dict[str, Any]]:
    """None where the key is not ours: the AWS-managed ones let no service in."""
    keys = template.all("AWS::KMS::Key")
    found = keys.get(key.removeprefix("arn:"), {"Properties": {"KeyPolicy": {"Statement": []}}})
    statements: list[dict[str, Any]] = found["Properties"]["KeyPolicy"]["Statement"]
    return statements


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
    statements: list[dict[str, Any]] = given.get("PolicyDocument", given.get("KeyPolicy"))[
        "Statement"
    ]
    return statements


def _without(resources: Resources, kind: str, start: str, action: str) -> None:
    """Whatever allows `action` goes from a policy."""
    statements = _statements_of(resources, kind, start)
    retained = [each for each in statements if action not in as_list(each["Action"])]
    assert len(retained) < len(statements)
    statements[:] = retained


def _an_alarm(resources: Resources) -> None:
    """One that tells a topic which lets no alarm publish."""
    topic = {"Ref": name_of(resources, TOPIC, "TopicsInfo")}
    policy = _statements_of(resources, "AWS::SNS::TopicPolicy", "TopicsInfo")
    policy[:] = [each for each in policy if each["Effect"] == "Deny"]
    add(resources, "AWS::CloudWatch::Alarm", AlarmActions=[topic])


def _an_alarm_without_the_key(resources: Resources) -> None:
    _an_alarm(resources)
    let_in = {"Service": "cloudwatch.amazonaws.com"}
    _statements_of(resources, "AWS::SNS::TopicPolicy", "TopicsInfo").append(
        {"Effect": "Allow", "Principal": let_in, "Action": "sns:Publish", "Resource": "*"}
    )
    key = _statements_of(resources, "AWS::KMS::Key")
    key[:] = [each for each in key if each["Principal"] != let_in]


def _aws_own_key(resources: Resources) -> None:
    """Which lets no service publish."""
    properties(resources, QUEUE, "IntakeQueue")["KmsMasterKeyId"] = "alias/aws/sqs"


def _another_trail(resources: Resources) -> None:
    properties(resources, "AWS::CloudTrail::Trail")["TrailName"] = "other"


def _of_another_rule(resources: Resources) -> None:
    permission = properties(resources, "AWS::Lambda::Permission", "WatchNightly")
    permission["SourceArn"] = {
        "Fn::GetAtt": [name_of(resources, "AWS::Events::Rule", "Intake"), "Arn"]
    }


RULE = Rule(
    findings,
    {
        "a rule and its queue": lambda found: _without(
            found, "AWS::SQS::QueuePolicy", "IntakeQueue", "sqs:SendMessage"
        ),
        "a rule and its DLQ messages": lambda found: _without(
            found, "AWS::SQS::QueuePolicy", "IntakeUndelivered", "sqs:SendMessage"
        ),
        "a trail and its bucket": lambda found: _without(
            found, "AWS::S3::BucketPolicy", "TrailBucket", "s3:PutObject"
        ),
        "a trail that cannot ask whose bucket it is": lambda found: _without(
            found, "AWS::S3::BucketPolicy", "TrailBucket", "s3:GetBucketAcl"
        ),
        "a trail of another name": _another_trail,
        "a rule and its Lambda": _of_another_rule,
        "a schedule and its Lambda": lambda found: _without(
            found, "AWS::IAM::Policy", "SchedulesRole", "lambda:InvokeFunction"
        ),
        "a schedule and its DLQ messages": lambda found: _without(
            found, "AWS::IAM::Policy", "SchedulesRole", "sqs:SendMessage"
        ),
        "a Lambda and its DLQ messages": lambda found: _without(
            found, "AWS::IAM::Policy", "ProbeRole", "sqs:SendMessage"
        ),
        "a Lambda and the key of its topic": lambda found: _without(
            found, "AWS::IAM::Policy", "ProbeRole", "kms:GenerateDataKey"
        ),
        "an alarm and its topic": _an_alarm,
        "an alarm and the key of its topic": _an_alarm_without_the_key,
        "a rule and the key of AWS": _aws_own_key,
    },
)
