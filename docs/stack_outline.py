"""What the synthesized template says of itself: who starts, feeds and tells whom, and may do what.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from infra.node import require_node
from infra.settings.deployment import read
from mendq.cli.cost.bill import CRON, RATE

REGION = "us-east-1"
FUNCTION, TOPIC, QUEUE = "AWS::Lambda::Function", "AWS::SNS::Topic", "AWS::SQS::Queue"
JOB, TABLE, BUCKET = "AWS::EMRServerless::Application", "AWS::DynamoDB::Table", "AWS::S3::Bucket"
YOUR_QUEUES = "your queues"
WRITES = "writes"
# By how the names of actions begin.
_VERBS = {
    "Publish": "tells",
    **dict.fromkeys(("InvokeFunction", "StartJobRun"), "calls"),
    **dict.fromkeys(("Get", "List", "Query", "BatchGet", "ConditionCheck"), "reads"),
    **dict.fromkeys(("Scan", "Decrypt", "Lookup"), "reads"),
}
_IN_A_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
_PARKED = re.compile(r"(Dlq|Undelivered)[0-9A-F]{8}$")
_HASH = re.compile(r"[0-9A-F]{8}$")
Resources = Mapping[str, Mapping[str, Any]]
# What starts another, how, and the other by its logical id.
Start = tuple[str, str, str]


class Grant(NamedTuple):
    """One statement that allows: its actions, and the resources of the template it is about."""

    actions: frozenset[str]
    on: frozenset[str]

    @property
    def is_of_your_queues(self) -> bool:
        """Whether it is about queues that the template does not hold."""
        return not self.on and any(each.startswith("sqs:") for each in self.actions)

    @property
    def verbs(self) -> set[str]:
        """What it lets do; of a statement about queues that others own, to them alone."""
        wanted = "sqs:" if self.is_of_your_queues else ""
        return {verb_of(each) for each in self.actions if each.startswith(wanted)}


def verb_of(action: str) -> str:
    """What an action does, in a word."""
    name = action.partition(":")[2]
    return next((verb for start, verb in _VERBS.items() if name.startswith(start)), WRITES)


def resources() -> Resources:
    """The resources of the template with `tagMayRaiseTo` at `heal`: everything may act."""
    return dict(template(tagMayRaiseTo="heal")["Resources"])


@cache
def template(**settings: Any) -> Mapping[str, Any]:
    """The template with these settings, synthesized once for all pages."""
    require_node()
    from infra.synthesis import outline  # noqa: PLC0415 - the CDK: it starts Node

    return outline(read(settings), REGION)


def references(value: object) -> set[str]:
    """The logical ids, and pseudo parameters, that `Ref`, `GetAtt` and `Sub` name."""
    if isinstance(value, list):
        return {found for each in value for found in references(each)}
    if not isinstance(value, dict):
        return set()
    found = references(list(value.values())) | {*value.get("Fn::GetAtt", ())[:1]}
    named = _IN_A_TEXT.findall(str(value.get("Fn::Sub", "")))
    return found | {*named} | ({value["Ref"]} if "Ref" in value else set())


def started(template: Resources) -> Iterator[Start]:
    """Who starts, fills or feeds what, beside what roles are granted, in the template's order."""
    for each in template.values():
        given, ways = each["Properties"], list[tuple[str, str, object]]()
        if each["Type"] == "AWS::Scheduler::Schedule":
            clock = when(given["ScheduleExpression"], given["ScheduleExpressionTimezone"])
            ways = [("the clock", clock, given["Target"]["Arn"])]
        elif each["Type"] == "AWS::Events::Rule":
            rule = given["Description"]
            ways = [("EventBridge", rule, target["Arn"]) for target in given["Targets"]]
        elif each["Type"] == "AWS::Lambda::EventSourceMapping":
            (queue,) = references(given["EventSourceArn"])
            ways = [(queue, "", given["FunctionName"])]
        for source, how, target in ways:
            yield from ((source, how, it) for it in sorted(references(target) & template.keys()))


def granted_to(role: set[str], template: Resources) -> Iterator[Grant]:
    """What the policies of a role allow; the role is named as the template names it."""
    for each in template.values():
        if each["Type"] == "AWS::IAM::Policy" and references(each["Properties"]["Roles"]) & role:
            for statement in each["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow":
                    actions, on = statement["Action"], references(statement["Resource"])
                    named = [actions] if isinstance(actions, str) else actions
                    yield Grant(frozenset(named), frozenset(on & template.keys()))


def title(name: str, template: Resources) -> str:
    """How people call a resource: `heal`, `the case bucket`, `the intake queue`."""
    kind, given = template[name]["Type"], template[name]["Properties"]
    if kind == FUNCTION:
        return str(given["Handler"]).split(".")[-2]
    if kind == JOB:
        return "the nightly job"
    words = re.findall(r"[A-Z][a-z]+", _HASH.sub("", name).removeprefix("Topics"))
    return f"the {' '.join(dict.fromkeys(word.lower() for word in words))}"


def parts(template: Resources) -> Iterator[str]:
    """The logical ids of what runs: the Lambdas and the job."""
    yield from (name for name, each in template.items() if each["Type"] in {FUNCTION, JOB})


def touched(name: str, template: Resources) -> dict[str, set[str]]:
    """What a Lambda or the job may touch: the verbs by logical id, queues of others first.

    Left out are queues that things are parked in, and the one that it is fed by.

    EMR Serverless gets a role with each run, not with the application.
    """
    role = references(template[name]["Properties"].get("Role"))
    role = role or {each for each in template if each.startswith("NightlyRole")}
    left_out = {each for each in template if _PARKED.search(each)}
    left_out |= {each for each, _, fed in started(template) if fed == name}
    found: dict[str, set[str]] = {}
    for grant in granted_to(role, template):
        if grant.is_of_your_queues:
            found.setdefault(YOUR_QUEUES, set()).update(grant.verbs)
        for target in sorted(grant.on - left_out):
            if template[target]["Type"] in {FUNCTION, JOB, QUEUE, TOPIC, TABLE, BUCKET}:
                found.setdefault(target, set()).update(grant.verbs)
    return {key: found[key] for key in sorted(found, key=lambda each: each != YOUR_QUEUES)}


def starts(template: Resources) -> Iterator[Start]:
    """Each thing that starts a part or fills a queue that starts one."""
    yield from started(template)
    for name in parts(template):
        for other, verbs in touched(name, template).items():
            if "calls" in verbs and other in template:
                yield name, "", other


def when(expression: str, zone: str) -> str:
    """The words for a schedule: `every 10 minutes`, `each day at 02:00 UTC`."""
    if rate := RATE.fullmatch(expression):
        return f"every {rate[1]} {rate[2]}s" if rate[1] != "1" else f"every {rate[2]}"
    cron = CRON.fullmatch(expression)
    if cron is None:
        return expression
    day = f"each {cron[3].title()}" if cron[3].isalpha() else "each day"
    return f"{day} at {int(cron[2]):02}:{int(cron[1]):02} {zone}"
