"""The template in the words of its parts: what starts each Lambda, and what its role may touch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.diagram import queues
from infra.diagram.arrows import FEEDS, NOTICES, SENDS, STARTS, Arrow, Resources, arrows
from infra.diagram.card import Card, Section
from infra.diagram.grants import Grant, grants, who_may
from infra.diagram.names import FUNCTION, JOB, QUEUE, STORES, TOPIC, title
from infra.diagram.told import told

YOUR_QUEUES = "your queues"
_RATE = re.compile(r"rate\((\d+) (\w+?)s?\)")
_CRON = re.compile(r"cron\((\d+) (\d+) (\S+) \* (\S+) \*\)")


def sections(resources: Resources) -> tuple[Section, ...]:
    """The whole template but for what `left_out` names."""
    found = tuple(arrows(resources))
    by_kind: dict[str, list[Card]] = {}
    feeding, filled = queues.cards(resources, found)
    for name, each in resources.items():
        if each["Type"] in {FUNCTION, JOB}:
            kind, card = _part(name, resources, found)
            by_kind.setdefault(kind, []).extend((*feeding[name], card, *filled[name]))
    return (
        *(Section(each, tuple(by_kind[each])) for each in SECTIONS if each in by_kind),
        Section("Who is told, and where people look", tuple(told(resources, found))),
        Section("What is kept when the stack goes", tuple(_stores(resources, found))),
    )


WHEN = {FEEDS: "When a call fails", STARTS: "By the clock", SENDS: "When something has ended"}
ASKED = "When a person asks, or another of these"
SECTIONS = (*WHEN.values(), ASKED)


def _part(name: str, resources: Resources, found: tuple[Arrow, ...]) -> tuple[str, Card]:
    """What is run, and which kind of thing starts it."""
    coming = [each for each in found if each.target == name and each.does in WHEN]
    kind = WHEN[coming[0].does] if coming else ASKED
    starts = [_start(each, resources) for each in coming]
    callers = [title(each, resources) for each in _callers(name, resources)]
    card = Card(
        title(name, resources),
        _says(resources[name]),
        (*starts, *callers) or ("mendq, when a person says so",),
        (*_touched(name, resources, found), *queues.parks(name, resources, found)),
    )
    return kind, card


def _start(arrow: Arrow, resources: Resources) -> str:
    given = resources[arrow.source]["Properties"]
    if arrow.does == STARTS:
        return when(given["ScheduleExpression"], given["ScheduleExpressionTimezone"])
    if arrow.does == SENDS:
        return queues.rule_in_words(arrow.source, resources)
    return title(arrow.source, resources)


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


def _touched(name: str, resources: Resources, found: tuple[Arrow, ...]) -> Iterator[str]:
    """`reads and writes the ledger`, once for each resource, queues of others first."""
    told_elsewhere = queues.parked_in(found) | queues.feeding(name, found)
    verbs: dict[str, set[str]] = {}
    for grant in grants(name, resources):
        for target in _targets(grant, resources, told_elsewhere):
            verbs.setdefault(target, set()).update(grant.verbs)
    for target in sorted(verbs, key=lambda each: each != YOUR_QUEUES):
        words = [each for each in ("reads", "writes", "calls", "tells") if each in verbs[target]]
        yield f"{' and '.join(words)} {target}"


def _targets(grant: Grant, resources: Resources, told_elsewhere: frozenset[str]) -> Iterator[str]:
    if grant.is_of_your_queues:
        yield YOUR_QUEUES
    for name in sorted((grant.on & resources.keys()) - told_elsewhere):
        if resources[name]["Type"] in {*STORES, TOPIC, FUNCTION, JOB, QUEUE}:
            yield title(name, resources)


def _stores(resources: Resources, found: tuple[Arrow, ...]) -> Iterator[Card]:
    for name, each in resources.items():
        if each["Type"] in STORES:
            by_itself = ["CloudTrail" for arrow in found if arrow.target == name]
            noticed = [
                f"tells the rule: {resources[arrow.target]['Properties']['Description']}"
                for arrow in found
                if arrow.source == name and arrow.does == NOTICES
            ]
            writers = (
                *by_itself,
                *(title(each, resources) for each in who_may("writes", name, resources)),
            )
            yield Card(title(name, resources), "", writers, tuple(noticed))


def _says(resource: Mapping[str, Any]) -> str:
    said = str(resource["Properties"].get("Description", ""))
    return said.removeprefix("Mendq: ") or "Spark on EMR Serverless, between nights nothing"
