"""Read from the synthesized template what starts each Lambda, and what each role may do.

A *part* is a Lambda, or the nightly job on EMR Serverless.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from infra.node import require_node
from infra.settings.deployment import read
from mendq.cli.cost.bill import CRON_PATTERN, RATE_PATTERN

REGION = "us-east-1"
FUNCTION = "AWS::Lambda::Function"
TOPIC = "AWS::SNS::Topic"
QUEUE = "AWS::SQS::Queue"
JOB = "AWS::EMRServerless::Application"
TABLE = "AWS::DynamoDB::Table"
BUCKET = "AWS::S3::Bucket"
# The resource types that a part may use.
_USED_TYPES = frozenset({FUNCTION, JOB, QUEUE, TOPIC, TABLE, BUCKET})
YOUR_QUEUES = "your queues"
WRITES = "writes"
# A word for each action, by the beginning of the action's name. Other actions are WRITES.
_VERBS = {
    "Publish": "tells",
    "InvokeFunction": "calls",
    "StartJobRun": "calls",
    "Get": "reads",
    "List": "reads",
    "Query": "reads",
    "BatchGet": "reads",
    "ConditionCheck": "reads",
    "Scan": "reads",
    "Decrypt": "reads",
    "Lookup": "reads",
}
# The logical id in a placeholder of `Fn::Sub`, such as `${Queue.Arn}`.
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
# The logical ids of queues for messages and events that could not be handled or delivered.
_UNDELIVERED = re.compile(r"(Dlq|Undelivered)[0-9A-F]{8}$")
_HASH = re.compile(r"[0-9A-F]{8}$")
# The template's resources, by logical id.
Resources = Mapping[str, Mapping[str, Any]]


class Start(NamedTuple):
    """One resource that starts another, or fills a queue that starts another."""

    source: str  # a logical id, or `the clock`, or `EventBridge`
    how: str  # the schedule or rule in words, or empty
    target: str  # a logical id


class Grant(NamedTuple):
    """One `Allow` statement of an IAM policy."""

    actions: frozenset[str]
    on: frozenset[str]  # the logical ids of the template's resources that the statement names

    @property
    def is_of_your_queues(self) -> bool:
        """True if the statement is about SQS queues that are not in the template."""
        return not self.on and any(action.startswith("sqs:") for action in self.actions)

    @property
    def verbs(self) -> set[str]:
        """Words for the actions, such as `reads`. For queues of others, only for SQS actions."""
        prefix = "sqs:" if self.is_of_your_queues else ""
        return {verb_of(action) for action in self.actions if action.startswith(prefix)}


def verb_of(action: str) -> str:
    """Return a word for an IAM action such as `sqs:GetQueueAttributes`: `reads`."""
    name = action.partition(":")[2]
    for beginning, verb in _VERBS.items():
        if name.startswith(beginning):
            return verb
    return WRITES


def load_resources() -> Resources:
    """Return the template's resources with the setting that lets Mendq do the most.

    With `tagMayRaiseTo: heal` every role has all its rights.
    """
    return dict(template(tagMayRaiseTo="heal")["Resources"])


@cache
def template(**settings: Any) -> Mapping[str, Any]:
    """Return the template with these settings. Each one is synthesized only once."""
    require_node()
    from infra.synthesis import synthesize_outline  # noqa: PLC0415 - the CDK: it starts Node

    return synthesize_outline(read(settings), REGION)


def references(value: object) -> set[str]:
    """Return the logical ids and pseudo parameters in a part of a template.

    They are the names in `Ref`, `Fn::GetAtt` and `Fn::Sub`, at any depth.
    """
    names: set[str] = set()
    if isinstance(value, list):
        for element in value:
            names.update(references(element))
    elif isinstance(value, dict):
        names.update(references(list(value.values())))
        names.update(value.get("Fn::GetAtt", ())[:1])
        names.update(_PLACEHOLDER.findall(str(value.get("Fn::Sub", ""))))
        if "Ref" in value:
            names.add(value["Ref"])
    return names


def list_triggers(template: Resources) -> Iterator[Start]:
    """Yield what schedules, rules and event source mappings start or fill, in template order.

    Starts by a role's right to call another part are not among them; see `list_starts`.
    """
    for resource in template.values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::Scheduler::Schedule":
            schedule = describe_schedule(
                properties["ScheduleExpression"], properties["ScheduleExpressionTimezone"]
            )
            target = properties["Target"]["Arn"]
            yield from _make_starts("the clock", schedule, target, template)
        elif resource["Type"] == "AWS::Events::Rule":
            for target in properties["Targets"]:
                rule = properties["Description"]
                yield from _make_starts("EventBridge", rule, target["Arn"], template)
        elif resource["Type"] == "AWS::Lambda::EventSourceMapping":
            (queue,) = references(properties["EventSourceArn"])
            yield from _make_starts(queue, "", properties["FunctionName"], template)


def _make_starts(source: str, how: str, target: object, template: Resources) -> Iterator[Start]:
    """Yield a start for each resource that the template's value `target` refers to."""
    for name in sorted(references(target) & template.keys()):
        yield Start(source, how, name)


def list_grants(role: set[str], template: Resources) -> Iterator[Grant]:
    """Yield what a role's policies allow. `role` has the role's logical id."""
    for resource in template.values():
        if resource["Type"] != "AWS::IAM::Policy":
            continue
        properties = resource["Properties"]
        if not references(properties["Roles"]) & role:
            continue
        for statement in properties["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                yield _read_grant(statement, template)


def _read_grant(statement: Mapping[str, Any], template: Resources) -> Grant:
    actions = statement["Action"]
    if isinstance(actions, str):
        actions = [actions]
    on = references(statement["Resource"]) & template.keys()
    return Grant(frozenset(actions), frozenset(on))


def title_of(name: str, template: Resources) -> str:
    """Return a resource's name for people: `heal`, `the case bucket`, `the intake queue`."""
    kind = template[name]["Type"]
    if kind == FUNCTION:
        return str(template[name]["Properties"]["Handler"]).split(".")[-2]
    if kind == JOB:
        return "the nightly job"
    words = re.findall(r"[A-Z][a-z]+", _HASH.sub("", name).removeprefix("Topics"))
    return f"the {' '.join(dict.fromkeys(word.lower() for word in words))}"


def list_parts(template: Resources) -> list[str]:
    """Return the logical ids of the Lambdas and of the nightly job."""
    return [name for name, resource in template.items() if resource["Type"] in {FUNCTION, JOB}]


def find_access(name: str, template: Resources) -> dict[str, set[str]]:
    """Return what a part may use, and how: words such as `reads` by logical id.

    YOUR_QUEUES stands for queues outside the template, and comes first. The queue that feeds the
    part is left out, and so are queues for messages that could not be handled or delivered.
    """
    role = _find_role(name, template)
    left_out = {logical_id for logical_id in template if _UNDELIVERED.search(logical_id)}
    left_out |= {start.source for start in list_triggers(template) if start.target == name}
    access: dict[str, set[str]] = {}
    for grant in list_grants(role, template):
        if grant.is_of_your_queues:
            access.setdefault(YOUR_QUEUES, set()).update(grant.verbs)
        targets = [
            target for target in grant.on - left_out if template[target]["Type"] in _USED_TYPES
        ]
        for target in sorted(targets):
            access.setdefault(target, set()).update(grant.verbs)
    if YOUR_QUEUES in access:
        return {YOUR_QUEUES: access.pop(YOUR_QUEUES), **access}
    return access


def _find_role(name: str, template: Resources) -> set[str]:
    """Return the logical id of a part's role, as a set."""
    role = references(template[name]["Properties"].get("Role"))
    if role:
        return role
    # EMR Serverless gets its role with each run, so the application names none.
    return {logical_id for logical_id in template if logical_id.startswith("NightlyRole")}


def list_starts(template: Resources) -> Iterator[Start]:
    """Yield everything that starts a part, or fills a queue that starts one."""
    yield from list_triggers(template)
    for name in list_parts(template):
        for target, verbs in find_access(name, template).items():
            if "calls" in verbs and target in template:
                yield Start(name, "", target)


def describe_schedule(expression: str, zone: str) -> str:
    """Return a schedule in words: `every 10 minutes`, `each day at 02:00 UTC`.

    An expression of another form is returned unchanged.
    """
    rate = RATE_PATTERN.fullmatch(expression)
    if rate:
        return f"every {rate[1]} {rate[2]}s" if rate[1] != "1" else f"every {rate[2]}"
    cron = CRON_PATTERN.fullmatch(expression)
    if cron is None:
        return expression
    day = f"each {cron[3].title()}" if cron[3].isalpha() else "each day"
    return f"{day} at {int(cron[2]):02}:{int(cron[1]):02} {zone}"
