"""Which queues and calls to watch for so many dollars a month. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
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
    """Names go to queues that were used, and to the idle only where some are left."""
    price = {arn: choice.dollars([each]) for arn, each in calls.items()}
    by_name = sorted(calls)
    named, covered, dollars = list[str](), set[str](), 0.0
    idle = {arn for arn, each in calls.items() if not any(each.of_the_week.values())}
    for arn in sorted(calls, key=lambda each: (each in idle, price[each], each)):
        if len(named) == MOST_PREFIXES:
            break
        new = {each for each in _beginning_with(arn, by_name) if each not in covered}
        more = sum(price[each] for each in new)
        if new and dollars + more <= budget_dollars:
            named.append(arn)
            covered |= new
            dollars += more
    left_out = sorted(calls.keys() - covered, key=lambda each: (-price[each], each))
    return Watching(choice, tuple(sorted(named)), tuple(left_out), dollars)


def _beginning_with(arn: str, by_name: Sequence[str]) -> Iterator[str]:
    """What stands in queueArnPrefixes is a prefix: it takes in whoever's name begins with it."""
    following = (by_name[n] for n in range(bisect_left(by_name, arn), len(by_name)))
    return takewhile(lambda each: each.startswith(arn), following)
