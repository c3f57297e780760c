"""Which SQS calls a trail logs, by its advanced event selectors. Pure.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TESTS: dict[str, Callable[[str, str], bool]] = {
    "Equals": str.__eq__,
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
}
Selector = Mapping[str, Any]


@dataclass(frozen=True)
class Trail:
    """A trail that is logging, and what it selects."""

    name: str
    selectors: tuple[Selector, ...]

    def logs(self, queue_arn: str | None, event_name: str) -> bool:
        """Whether the data event of somebody else on that queue is logged; None: on any queue."""
        return any(_selects(each, queue_arn, event_name) for each in self.selectors)


def logged(
    trails: Sequence[Trail], queue_arn: str | None, event_names: Iterable[str]
) -> frozenset[str]:
    """Those of the events that any of the trails logs."""
    return frozenset(
        name for name in event_names if any(each.logs(queue_arn, name) for each in trails)
    )


def _selects(selector: Selector, queue_arn: str | None, event_name: str) -> bool:
    """Fields that say who calls, or read or write, are taken to fit: they are not known here."""
    queue = {} if queue_arn is None else {"resources.ARN": queue_arn}
    call = {
        "eventCategory": "Data",
        "resources.type": "AWS::SQS::Queue",
        **queue,
        "eventName": event_name,
        "eventSource": "sqs.amazonaws.com",
    }
    fields = selector.get("FieldSelectors", [])
    named = {each["Field"] for each in fields}
    return {"eventCategory", "resources.type"} <= named and all(
        _fits(each, call[each["Field"]]) for each in fields if each["Field"] in call
    )


def _fits(field: Mapping[str, Any], value: str) -> bool:
    for operator, test in _TESTS.items():
        wanted = field.get(operator)
        if wanted and not any(test(value, each) for each in wanted):
            return False
        if any(test(value, each) for each in field.get(f"Not{operator}") or ()):
            return False
    return True
