"""Who sends what to whom in a template: one arrow for each way that a service goes by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from infra.diagram.references import references

Resources = Mapping[str, Mapping[str, Any]]


class Arrow(NamedTuple):
    """From one resource to another, both by logical id, and what it does there."""

    source: str
    target: str
    does: str


STARTS, SENDS, PARKS, FEEDS = "starts", "sends", "parks", "feeds"
WRITES, TELLS, WATCHES, JOINS, NOTICES = "writes", "tells", "watches", "joins", "notices"
ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def arrows(resources: Resources) -> Iterator[Arrow]:
    """Every arrow but those that roles are granted, in the template's order."""
    for name, each in resources.items():
        found = _FROM.get(each["Type"])
        if found is not None:
            for arrow in found(name, each["Properties"]):
                if {arrow.source, arrow.target} <= resources.keys():
                    yield arrow


def _of(source: object, target: object, does: str) -> Iterator[Arrow]:
    for one in sorted(references(source)):
        for other in sorted(references(target)):
            yield Arrow(one, other, does)


def _to(name: str, target: object, does: str) -> Iterator[Arrow]:
    yield from (Arrow(name, each, does) for each in sorted(references(target)))


def _rule(name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _of(given.get("EventPattern"), {"Ref": name}, NOTICES)
    for target in given["Targets"]:
        yield from _to(name, target["Arn"], SENDS)
        yield from _to(name, target.get("DeadLetterConfig"), PARKS)


def _schedule(name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _to(name, given["Target"]["Arn"], STARTS)
    yield from _to(name, given["Target"].get("DeadLetterConfig"), PARKS)


def _mapping(_name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _of(given["EventSourceArn"], given["FunctionName"], FEEDS)


def _invoked(_name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _of(given["FunctionName"], given.get("DestinationConfig"), PARKS)


def _queue(name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _to(name, given.get("RedrivePolicy"), PARKS)


def _trail(name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    yield from _to(name, given["S3BucketName"], WRITES)


def _alarm(name: str, given: Mapping[str, Any]) -> Iterator[Arrow]:
    measured = [given.get("Dimensions"), given.get("Metrics")]
    yield from _of(measured, {"Ref": name}, WATCHES)
    yield from _of([given.get("AlarmRule"), given.get("ActionsSuppressor")], {"Ref": name}, JOINS)
    told = set().union(*(references(given.get(each)) for each in ACTIONS))
    yield from (Arrow(name, each, TELLS) for each in sorted(told))


_FROM = {
    "AWS::Events::Rule": _rule,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::Lambda::EventInvokeConfig": _invoked,
    "AWS::SQS::Queue": _queue,
    "AWS::CloudTrail::Trail": _trail,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::CompositeAlarm": _alarm,
}
