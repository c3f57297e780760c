"""Which queues and calls to watch for so many dollars a month. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.cost.calls import Calls
from cli.cost.choices import ALL_CALLS, LEASES, NO_RECEIVES, Choice

# A selector holds so many values, over all of a trail.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/WhatIsCloudTrail-Limits.html
MOST_PREFIXES = 400


@dataclass(frozen=True)
class Watching:
    """What to watch: the choice, the queues, and what was left out, the dearest first."""

    choice: Choice
    queue_arns: tuple[str, ...]
    left_out: tuple[str, ...]
    dollars: float

    def document(self) -> dict[str, Any]:
        return {
            "choice": self.choice.name,
            "dollars_per_month": round(self.dollars, 2),
            "trail": {
                "queueArnPrefixes": list(self.queue_arns),
                "eventNames": self.choice.setting,
            },
            "left_out": list(self.left_out),
        }


def within(budget_dollars: float, calls: Mapping[str, Calls]) -> Watching:
    """Rather fewer calls of every queue than every call of fewer queues.

    Where even deletes and leases of all are too dear, those of the cheapest queues.
    """
    for choice in (ALL_CALLS, NO_RECEIVES, LEASES):
        dollars = choice.dollars(calls.values())
        if dollars <= budget_dollars and len(calls) <= MOST_PREFIXES:
            return Watching(choice, tuple(sorted(calls)), (), dollars)
    return _cheapest(LEASES, budget_dollars, calls)


def _cheapest(choice: Choice, budget_dollars: float, calls: Mapping[str, Calls]) -> Watching:
    price = {arn: choice.dollars([each]) for arn, each in calls.items()}
    named, covered, dollars = list[str](), set[str](), 0.0
    for arn in sorted(calls, key=lambda each: (price[each], each)):
        # What stands in queueArnPrefixes is a prefix: it takes in whoever's name begins with it.
        new = {each for each in calls if each.startswith(arn)} - covered
        more = sum(price[each] for each in new)
        if dollars + more <= budget_dollars and len(named) < MOST_PREFIXES:
            named.append(arn)
            covered |= new
            dollars += more
    left_out = sorted(calls.keys() - covered, key=lambda each: (-price[each], each))
    return Watching(choice, tuple(sorted(named)), tuple(left_out), dollars)
