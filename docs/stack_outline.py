"""Find in the synthesized template what starts each Lambda, and what each role may do.

A *part* is a Lambda, or the nightly job on EMR Serverless.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from infra.node import require_node
from infra.settings.deployment import read_deployment_settings
from mendq.cli.cost.bill import CRON_SCHEDULE_REGEX, RATE_SCHEDULE_REGEX

REGION = "us-east-1"
FUNCTION_TYPE = "AWS::Lambda::Function"
TOPIC_TYPE = "AWS::SNS::Topic"
QUEUE_TYPE = "AWS::SQS::Queue"
JOB_TYPE = "AWS::EMRServerless::Application"
TABLE_TYPE = "AWS::DynamoDB::Table"
BUCKET_TYPE = "AWS::S3::Bucket"
# The resource types that a part may use.
_USED_TYPES = frozenset({FUNCTION_TYPE, JOB_TYPE, QUEUE_TYPE, TOPIC_TYPE, TABLE_TYPE, BUCKET_TYPE})
QUEUES_OUTSIDE_TEMPLATE = "your queues"
WRITES_VERB = "writes"
# A verb for each action, by the beginning of the action's name. Other actions get WRITES_VERB.
_VERB_BY_ACTION_BEGINNING = {
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
_SUB_PLACEHOLDER = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
# The logical ids of queues for messages and events that could not be handled or delivered.
_UNDELIVERED_QUEUE_ID = re.compile(r"(Dlq|Undelivered)[0-9A-F]{8}$")
_LOGICAL_ID_HASH = re.compile(r"[0-9A-F]{8}$")
# The template's resources, by logical id.
Resources = Mapping[str, Mapping[str, Any]]


class StartArrow(NamedTuple):
    """An arrow from what starts a resource, or fills a queue, to this resource or queue."""

    source: str  # a logical id, `the clock`, `EventBridge` or `a person`
    trigger_text: str  # the schedule or rule in words, or empty
    target: str  # a logical id


class Grant(NamedTuple):
    """One `Allow` statement of an IAM policy."""

    actions: frozenset[str]
    # The logical ids of the template's resources that the statement names.
    resource_ids: frozenset[str]

    @property
    def is_about_queues_outside_template(self) -> bool:
        """True if the statement is about SQS queues that are not in the template."""
        return not self.resource_ids and any(action.startswith("sqs:") for action in self.actions)

    @property
    def verbs(self) -> set[str]:
        """Verbs for the actions, such as `reads`.

        If the statement is about queues outside the template, only its SQS actions count.
        """
        action_prefix = "sqs:" if self.is_about_queues_outside_template else ""
        return {choose_verb(action) for action in self.actions if action.startswith(action_prefix)}


def choose_verb(action: str) -> str:
    """Return a verb for an IAM action, such as `reads` for `sqs:GetQueueAttributes`."""
    action_name = action.partition(":")[2]
    for name_beginning, verb in _VERB_BY_ACTION_BEGINNING.items():
        if action_name.startswith(name_beginning):
            return verb
    return WRITES_VERB


def load_resources() -> Resources:
    """Return the resources of the template with the setting `tagMayRaiseTo: heal`.

    With this setting, every role has all the rights that it can have.
    """
    return dict(synthesize_template(tagMayRaiseTo="heal")["Resources"])


@cache
def synthesize_template(**settings: Any) -> Mapping[str, Any]:
    """Return the stack's template with these settings. Results are cached by the settings."""
    require_node()
    from infra.synthesis import synthesize_undeployable_template  # noqa: PLC0415 - the CDK: it starts Node

    return synthesize_undeployable_template(read_deployment_settings(settings), REGION)


def find_referenced_ids(value: object) -> set[str]:
    """Return the logical ids and pseudo parameters in a part of a template.

    They are the names in `Ref`, `Fn::GetAtt` and `Fn::Sub`, at any depth.
    """
    logical_ids: set[str] = set()
    if isinstance(value, list):
        for element in value:
            logical_ids.update(find_referenced_ids(element))
    elif isinstance(value, dict):
        logical_ids.update(find_referenced_ids(list(value.values())))
        logical_ids.update(value.get("Fn::GetAtt", ())[:1])
        logical_ids.update(_SUB_PLACEHOLDER.findall(str(value.get("Fn::Sub", ""))))
        if "Ref" in value:
            logical_ids.add(value["Ref"])
    return logical_ids


def list_triggers(resources: Resources) -> Iterator[StartArrow]:
    """Yield an arrow for each target of a schedule, rule or event source mapping.

    Targets outside the template are left out. The arrows have the template's order.
    `list_start_arrows` also yields the parts that another part calls.
    """
    for resource in resources.values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::Scheduler::Schedule":
            schedule_text = describe_schedule(
                properties["ScheduleExpression"], properties["ScheduleExpressionTimezone"]
            )
            target = properties["Target"]["Arn"]
            yield from _make_start_arrows("the clock", schedule_text, target, resources)
        elif resource["Type"] == "AWS::Events::Rule":
            for target in properties["Targets"]:
                rule_description = properties["Description"]
                yield from _make_start_arrows(
                    "EventBridge", rule_description, target["Arn"], resources
                )
        elif resource["Type"] == "AWS::Lambda::EventSourceMapping":
            (queue,) = find_referenced_ids(properties["EventSourceArn"])
            yield from _make_start_arrows(queue, "", properties["FunctionName"], resources)


def _make_start_arrows(
    source: str, trigger_text: str, target: object, resources: Resources
) -> Iterator[StartArrow]:
    """Yield an arrow from `source` to each resource to which the value `target` refers."""
    for logical_id in sorted(find_referenced_ids(target) & resources.keys()):
        yield StartArrow(source, trigger_text, logical_id)


def list_grants(role_ids: set[str], resources: Resources) -> Iterator[Grant]:
    """Yield the `Allow` statements of the policies of roles. `role_ids` are logical ids."""
    for resource in resources.values():
        if resource["Type"] != "AWS::IAM::Policy":
            continue
        properties = resource["Properties"]
        if not find_referenced_ids(properties["Roles"]) & role_ids:
            continue
        for statement in properties["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                yield _read_grant(statement, resources)


def _read_grant(statement: Mapping[str, Any], resources: Resources) -> Grant:
    actions = statement["Action"]
    if isinstance(actions, str):
        actions = [actions]
    resource_ids = find_referenced_ids(statement["Resource"]) & resources.keys()
    return Grant(frozenset(actions), frozenset(resource_ids))


def make_resource_title(logical_id: str, resources: Resources) -> str:
    """Return a resource's name for people, such as `heal` or `the case bucket`."""
    resource_type = resources[logical_id]["Type"]
    if resource_type == FUNCTION_TYPE:
        return str(resources[logical_id]["Properties"]["Handler"]).split(".")[-2]
    if resource_type == JOB_TYPE:
        return "the nightly job"
    title_words = re.findall(
        r"[A-Z][a-z]+", _LOGICAL_ID_HASH.sub("", logical_id).removeprefix("Topics")
    )
    return f"the {' '.join(dict.fromkeys(word.lower() for word in title_words))}"


def list_part_ids(resources: Resources) -> list[str]:
    """Return the logical ids of all parts: the Lambdas and the nightly job."""
    return [
        logical_id
        for logical_id, resource in resources.items()
        if resource["Type"] in {FUNCTION_TYPE, JOB_TYPE}
    ]


def find_verbs_by_used_resource(part_id: str, resources: Resources) -> dict[str, set[str]]:
    """Return what a part may use, and how: verbs such as `reads`, by logical id.

    The key YOUR_QUEUES stands for queues outside the template, and comes first. Left out are the
    sources that start the part, queues for messages that could not be handled or delivered, and
    resources whose type is not one of _USED_TYPES.
    """
    role_ids = _find_role_ids(part_id, resources)
    excluded_resource_ids = {
        logical_id for logical_id in resources if _UNDELIVERED_QUEUE_ID.search(logical_id)
    }
    excluded_resource_ids |= {
        start_arrow.source
        for start_arrow in list_triggers(resources)
        if start_arrow.target == part_id
    }
    verbs_by_resource_id: dict[str, set[str]] = {}
    for grant in list_grants(role_ids, resources):
        if grant.is_about_queues_outside_template:
            verbs_by_resource_id.setdefault(QUEUES_OUTSIDE_TEMPLATE, set()).update(grant.verbs)
        used_resource_ids = [
            used_resource_id
            for used_resource_id in grant.resource_ids - excluded_resource_ids
            if resources[used_resource_id]["Type"] in _USED_TYPES
        ]
        for used_resource_id in sorted(used_resource_ids):
            verbs_by_resource_id.setdefault(used_resource_id, set()).update(grant.verbs)
    if QUEUES_OUTSIDE_TEMPLATE in verbs_by_resource_id:
        return {
            QUEUES_OUTSIDE_TEMPLATE: verbs_by_resource_id.pop(QUEUES_OUTSIDE_TEMPLATE),
            **verbs_by_resource_id,
        }
    return verbs_by_resource_id


def _find_role_ids(part_id: str, resources: Resources) -> set[str]:
    """Return a set with the logical id of a part's role."""
    role_ids = find_referenced_ids(resources[part_id]["Properties"].get("Role"))
    if role_ids:
        return role_ids
    # EMR Serverless gets its role with each run, so the application names none.
    return {logical_id for logical_id in resources if logical_id.startswith("NightlyRole")}


def list_start_arrows(resources: Resources) -> Iterator[StartArrow]:
    """Yield an arrow for everything that starts a part, or fills a queue that starts a part."""
    yield from list_triggers(resources)
    for part_id in list_part_ids(resources):
        for target, verbs in find_verbs_by_used_resource(part_id, resources).items():
            if "calls" in verbs and target in resources:
                yield StartArrow(part_id, "", target)


def describe_schedule(expression: str, time_zone: str) -> str:
    """Return a schedule in words, such as `every 10 minutes` or `each day at 02:00 UTC`.

    An expression with another form is returned unchanged.
    """
    rate_match = RATE_SCHEDULE_REGEX.fullmatch(expression)
    if rate_match:
        return (
            f"every {rate_match[1]} {rate_match[2]}s"
            if rate_match[1] != "1"
            else f"every {rate_match[2]}"
        )
    cron_match = CRON_SCHEDULE_REGEX.fullmatch(expression)
    if cron_match is None:
        return expression
    day_text = f"each {cron_match[3].title()}" if cron_match[3].isalpha() else "each day"
    return f"{day_text} at {int(cron_match[2]):02}:{int(cron_match[1]):02} {time_zone}"
