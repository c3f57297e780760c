"""The template in the words of its parts: what starts each Lambda, and what its role may touch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.diagram.arrows import (
    FEEDS,
    NOTICES,
    PARKS,
    SENDS,
    STARTS,
    TELLS,
    WATCHES,
    Arrow,
    Resources,
    arrows,
)
from infra.diagram.grants import Grant, grants

FUNCTION, TOPIC, QUEUE = "AWS::Lambda::Function", "AWS::SNS::Topic", "AWS::SQS::Queue"
ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
JOB = "AWS::EMRServerless::Application"
STORES = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")
YOUR_QUEUES = "your queues"
_HASH = re.compile(r"[0-9A-F]{8}$")
_RATE = re.compile(r"rate\((\d+) (\w+?)s?\)")
_CRON = re.compile(r"cron\((\d+) (\d+) (\S+) \* (\S+) \*\)")


@dataclass(frozen=True)
class Card:
    """One part: its name, what it does, what starts it, what it touches, and what is parked."""

    title: str
    says: str
    started_by: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    parks: bool = False


@dataclass(frozen=True)
class Section:
    """Cards that belong together."""

    title: str
    cards: tuple[Card, ...]


def sections(resources: Resources) -> tuple[Section, ...]:
    """The whole template but for roles, policies and logs."""
    found = tuple(arrows(resources))
    by_kind: dict[str, list[Card]] = {}
    for name, each in resources.items():
        if each["Type"] in {FUNCTION, JOB}:
            kind, card = _part(name, resources, found)
            by_kind.setdefault(kind, []).append(card)
    told = (*_topics(resources, found), *_alarms(resources, found))
    return (
        *(Section(title, tuple(by_kind[title])) for title in SECTIONS if title in by_kind),
        Section("Who is told", told),
        Section("What is kept when the stack goes", tuple(_stores(resources, found))),
    )


WHEN = {FEEDS: "When a call fails", STARTS: "By the clock", SENDS: "When something has ended"}
ASKED = "When a person asks, or another of these"
SECTIONS = (*WHEN.values(), ASKED)


def _part(name: str, resources: Resources, found: tuple[Arrow, ...]) -> tuple[str, Card]:
    """What is run, and which kind of thing starts it."""
    coming = [each for each in found if each.target == name and each.does in WHEN]
    kind = WHEN[coming[0].does] if coming else ASKED
    starts = [_start(each, resources, found) for each in coming]
    callers = [_title(each, resources) for each in _callers(name, resources)]
    card = Card(
        _title(name, resources),
        _says(resources[name]),
        (*starts, *callers) or ("mendq, when a person says so",),
        tuple(_touched(name, resources)),
        any(each.source == name and each.does == PARKS for each in found),
    )
    return kind, card


def _start(arrow: Arrow, resources: Resources, found: tuple[Arrow, ...]) -> str:
    source = resources[arrow.source]
    given = source["Properties"]
    if arrow.does == STARTS:
        return when(given["ScheduleExpression"], given["ScheduleExpressionTimezone"])
    if arrow.does == SENDS:
        return f"rule: {given['Description']}"
    fills = [each for each in found if each.target == arrow.source and each.does == SENDS]
    rules = [f"rule: {resources[each.source]['Properties']['Description']}" for each in fills]
    return " → ".join([*rules, _title(arrow.source, resources)])


def when(expression: str, zone: str) -> str:
    """`every 10 minutes`, `each day at 02:00 UTC`."""
    if rate := _RATE.fullmatch(expression):
        return f"every {rate[1]} {rate[2]}s" if rate[1] != "1" else f"every {rate[2]}"
    cron = _CRON.fullmatch(expression)
    if cron is None:
        return expression
    day = "each day" if cron[4] == "?" else f"each {cron[4].title()}"
    return f"{day} at {int(cron[2]):02}:{int(cron[1]):02} {zone}"


def _callers(name: str, resources: Resources) -> Iterator[str]:
    starting = {FUNCTION: "lambda:InvokeFunction", JOB: "emr-serverless:StartJobRun"}
    action = starting[resources[name]["Type"]]
    for other, each in resources.items():
        if each["Type"] == FUNCTION and other != name:
            granted = (grant for grant in grants(other, resources) if name in grant.on)
            if any(action in grant.actions for grant in granted):
                yield other


def _touched(name: str, resources: Resources) -> Iterator[str]:
    """`reads and writes the ledger`, once for each resource, queues of others last."""
    verbs: dict[str, set[str]] = {}
    for grant in grants(name, resources):
        for target in _targets(grant, resources):
            verbs.setdefault(target, set()).update(grant.verbs)
    for target in sorted(verbs, key=lambda each: each != YOUR_QUEUES):
        found = verbs[target]
        words = " and ".join(
            each for each in ("reads", "writes", "calls", "tells") if each in found
        )
        yield f"{words} {target}"


def _targets(grant: Grant, resources: Resources) -> Iterator[str]:
    if grant.is_of_your_queues:
        yield YOUR_QUEUES
    for name in sorted(grant.on & resources.keys()):
        if resources[name]["Type"] in {*STORES, TOPIC, FUNCTION, JOB}:
            yield _title(name, resources)


def _topics(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    for name, each in resources.items():
        if each["Type"] == TOPIC:
            alarms = sum(arrow.target == name and arrow.does == TELLS for arrow in found)
            said = [*_doers("tells", name, resources), *([_count(alarms, "alarm")] * bool(alarms))]
            people = f"pages.{'urgent' if 'Urgent' in name else 'info'} of the settings"
            yield Card(_title(name, resources), "", tuple(said), (f"tells {people}",))


def _doers(verb: str, target: str, resources: Resources) -> Iterator[str]:
    """Whose role lets them do that to a resource."""
    for name, each in resources.items():
        if each["Type"] in {FUNCTION, JOB}:
            granted = (grant for grant in grants(name, resources) if target in grant.on)
            if any(verb in grant.verbs for grant in granted):
                yield _title(name, resources)


def _alarms(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    of = [name for name, each in resources.items() if each["Type"] in ALARMS]
    if not of:
        return
    telling = [each for each in found if each.does == TELLS and each.source in of]
    told = {each.target for each in telling}
    watched = {each.source for each in found if each.does == WATCHES}
    paging = len({each.source for each in telling})
    says = f"{paging} reach people; the other {len(of) - paging} are what some of those stand on"
    looks = ("Mendq's own metrics", *sorted({_kind(each, resources) for each in watched}))
    tells = tuple(f"tells {_title(each, resources)}" for each in sorted(told))
    yield Card(_count(len(of), "alarm"), says, looks, tells)


def _stores(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    for name, each in resources.items():
        if each["Type"] in STORES:
            by_itself = ["CloudTrail" for arrow in found if arrow.target == name]
            noticed = [
                f"tells the rule: {resources[arrow.target]['Properties']['Description']}"
                for arrow in found
                if arrow.source == name and arrow.does == NOTICES
            ]
            writers = (*by_itself, *_doers("writes", name, resources))
            yield Card(_title(name, resources), "", writers, tuple(noticed))


def _title(name: str, resources: Resources) -> str:
    """How people call it: `heal`, `the case bucket`, `the intake queue`."""
    each = resources[name]
    if each["Type"] == FUNCTION:
        return str(each["Properties"]["Handler"]).split(".")[-2]
    if each["Type"] == JOB:
        return "the nightly job"
    words = re.findall(r"[A-Z][a-z]+", _HASH.sub("", name).removeprefix("Topics"))
    kept = [word.lower() for word in dict.fromkeys(words)]
    return f"the {' '.join(kept)}"


def _kind(name: str, resources: Resources) -> str:
    return {QUEUE: "queues of ours", FUNCTION: "Lambdas"}.get(resources[name]["Type"], "others")


def _says(resource: Mapping[str, Any]) -> str:
    said = str(resource["Properties"].get("Description", ""))
    return said.removeprefix("Mendq: ") or "Spark on EMR Serverless, between nights nothing"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
