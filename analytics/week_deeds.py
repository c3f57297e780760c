"""What people are to do this week: ranked by what it would have prevented, alike ones as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.lives import MOST_NAME, MOST_TEXT, shortened
from analytics.week_rows import Row
from functions.healing.template_lines import template_line

MAXIMUM_DEEDS = 10
# As many queues with the same change are listed each; of more, the worst stands for all.
MOST_ALIKE = 3
_NAMES = ("queue_arn", "symptom", "attribute", "owner", "case_id")


@dataclass(frozen=True)
class Deed:
    """One thing to do; docs/summary.md lists the kinds, and why each is asked for.

    `incidents` and `failed_calls` are this week's of its queues and symptom.
    """

    kind: str
    why: str
    queue_arn: str
    symptom: str
    attribute: str = ""
    before: str = ""
    after: str = ""
    owner: str = ""
    command: str = ""
    case_id: str = ""
    reason: str = ""
    cure: str = ""
    incidents: int = 0
    failed_calls: int = 0
    queues: int = 1

    def document(self) -> dict[str, Any]:
        names = {name: shortened(getattr(self, name), MOST_NAME) for name in _NAMES}
        texts = {name: shortened(getattr(self, name)) for name in ("before", "after", "reason")}
        return {
            "kind": self.kind,
            **names,
            **texts,
            "template_line": self._template_line(),
            "command": self.command,
            "why": self.why,
            "cure": self.cure,
            "incidents": self.incidents,
            "failed_calls": self.failed_calls,
            "queues": self.queues,
        }

    def _template_line(self) -> str:
        fits = self.attribute and len(self.after) <= MOST_TEXT
        return template_line(self.attribute, shortened(self.after)) if fits else ""

    @property
    def rank(self) -> tuple[int, int, str, str, str, str]:
        name = self.queue_arn.rpartition(":")[2]
        wide = -self.incidents, -self.failed_calls
        return (*wide, name, self.queue_arn, self.attribute, f"{self.symptom} {self.case_id}")


@dataclass
class Suffered:
    """How much a queue suffered from a symptom."""

    incidents: int = 0
    failed_calls: int = 0

    def add(self, row: Row) -> None:
        self.incidents += 1
        self.failed_calls += row["failed_calls"]


def do_this_week(deeds: Iterable[Deed], incidents: Iterable[Row]) -> dict[str, Any]:
    """The fields of the document; a deed that has counts of its own keeps them."""
    suffered: Mapping[tuple[str, str], Suffered] = _suffered(incidents)
    ranked = sorted(
        folded([_counted(each, suffered) for each in deeds]), key=lambda each: each.rank
    )
    return {
        "do_this_week": [each.document() for each in ranked[:MAXIMUM_DEEDS]],
        "do_this_week_left_out": len(ranked[MAXIMUM_DEEDS:]),
    }


def _suffered(incidents: Iterable[Row]) -> dict[tuple[str, str], Suffered]:
    found: dict[tuple[str, str], Suffered] = defaultdict(Suffered)
    for row in incidents:
        found[row["queue_arn"], row["label"]].add(row)
    return found


def _counted(deed: Deed, suffered: Mapping[tuple[str, str], Suffered]) -> Deed:
    if deed.incidents:
        return deed
    of_both = suffered.get((deed.queue_arn, deed.symptom), Suffered())
    return replace(deed, incidents=of_both.incidents, failed_calls=of_both.failed_calls)


def folded(deeds: Sequence[Deed]) -> list[Deed]:
    """Where more than MOST_ALIKE queues ask for the same, the first in rank stands for all."""
    alike: dict[tuple[str, ...], list[Deed]] = defaultdict(list)
    for each in deeds:
        alike[each.kind, each.why, each.symptom, each.attribute, each.after, each.owner].append(
            each
        )
    return [each for group in alike.values() for each in _as_one(group)]


def _as_one(group: Sequence[Deed]) -> Sequence[Deed]:
    if len({each.queue_arn for each in group}) <= MOST_ALIKE:
        return group
    first = min(group, key=lambda each: each.rank)
    befores = {each.before for each in group}
    return [
        replace(
            first,
            before=first.before if len(befores) == 1 else "",
            incidents=sum(each.incidents for each in group),
            failed_calls=sum(each.failed_calls for each in group),
            queues=sum(each.queues for each in group),
        )
    ]
