"""The queues of the stack that messages go through; those that only park are told by who parks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.diagram.arrows import FEEDS, PARKS, SENDS, Arrow, Resources
from infra.diagram.card import Card
from infra.diagram.grants import who_may
from infra.diagram.names import QUEUE, title

_DEFAULT_RETENTION_SECONDS = 4 * 86_400
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
PARKS_ITS_OWN = "parks what fails in its dead letters"
TRIED_ONCE = "is not tried again where it fails"


def parked_in(arrows: Sequence[Arrow]) -> frozenset[str]:
    """The queues that something is only parked in."""
    return frozenset(each.target for each in arrows if each.does == PARKS)


def feeding(name: str, arrows: Sequence[Arrow]) -> frozenset[str]:
    """The queues that a Lambda is called with the messages of."""
    return frozenset(each.source for each in arrows if each.does == FEEDS and each.target == name)


def _rules_of(name: str, arrows: Sequence[Arrow]) -> list[str]:
    return [each.source for each in arrows if each.does == SENDS and each.target == name]


def rule_in_words(name: str, resources: Resources) -> str:
    return f"rule: {resources[name]['Properties']['Description']}"


def cards(
    resources: Resources, arrows: Sequence[Arrow]
) -> tuple[Mapping[str, list[Card]], Mapping[str, list[Card]]]:
    """By part: the queues that it is fed by, and those that only it and others fill."""
    feeding, filled = defaultdict[str, list[Card]](list), defaultdict[str, list[Card]](list)
    for name, each in resources.items():
        if each["Type"] == QUEUE and name not in parked_in(arrows):
            fed = [arrow.target for arrow in arrows if arrow.does == FEEDS and arrow.source == name]
            writers = [one for one in who_may("writes", name, resources) if one not in fed]
            card = _card(name, resources, arrows, writers)
            if fed:
                feeding[fed[0]].append(card)
            elif writers:
                filled[writers[0]].append(card)
    return feeding, filled


def _card(name: str, resources: Resources, arrows: Sequence[Arrow], writers: Sequence[str]) -> Card:
    rules = [rule_in_words(each, resources) for each in _rules_of(name, arrows)]
    return Card(
        title(name, resources),
        _says(resources[name]["Properties"]),
        (*rules, *(title(each, resources) for each in writers)),
        tuple(_parked(name, resources, arrows)),
    )


def _parked(name: str, resources: Resources, arrows: Sequence[Arrow]) -> Iterator[str]:
    parking = {each.source for each in arrows if each.does == PARKS}
    if name in parking:
        tries = resources[name]["Properties"]["RedrivePolicy"]["maxReceiveCount"]
        yield f"parks in its dead letters what fails {tries} times"
    if parking & set(_rules_of(name, arrows)):
        yield "parks apart what its rule cannot deliver"


def _says(given: Mapping[str, Any]) -> str:
    seconds = int(given.get("MessageRetentionPeriod", _DEFAULT_RETENTION_SECONDS))
    if given.get("FifoQueue") and not given.get("ContentBasedDeduplication"):
        return f"refuses messages without a deduplication id, keeps others for {_span(seconds)}"
    return f"keeps messages for {_span(seconds)}"


def _span(seconds: int) -> str:
    """`4 hours`, in the largest unit that it is whole in."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    number = seconds // size
    return f"{number} {unit}{'s' * (number != 1)}"


def parks(name: str, resources: Resources, arrows: Sequence[Arrow]) -> Iterator[str]:
    """What becomes of a call of a Lambda that failed, where the template says it."""
    if any(each.source == name and each.does == PARKS for each in arrows):
        yield PARKS_ITS_OWN
    for each in resources.values():
        given = each["Properties"]
        if (
            each["Type"] == "AWS::Lambda::EventInvokeConfig"
            and given["FunctionName"].get("Ref") == name
            and "DestinationConfig" not in given
            and given["MaximumRetryAttempts"] == 0
        ):
            yield TRIED_ONCE
