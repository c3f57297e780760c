"""Findings of one round that are about the same missing queue: one of them speaks for all.

Many queues may name one dead-letter queue that is gone; each of them would propose to make it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from functions.healing.case import Case
from functions.healing.mode import Mode
from functions.healing.plain_text import counted
from functions.healing.queue_names import parts_of
from functions.healing.sweeping import Finding, Shared


def one_for_each(
    findings: Iterable[Finding],
    open_topics: Container[str],
    mode_of: Callable[[str], Mode | None],
) -> list[Finding]:
    """The findings without those about a missing queue that another speaks for already.

    That is the one whose case is open, then the one whose queue's mode goes furthest, then the
    first by name. Its `sources` are all who name that queue: what is wrong with any of them goes
    first, because making the queue would dump the backlogs of all.
    """
    alike: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for each in sorted(findings):
        alike[each.symptom, each.about or each.queue_arn].append(each)
    kept = list[Finding]()
    for same in alike.values():
        first = min(
            same,
            key=lambda e: (e.topic not in open_topics, -(mode_of(e.queue_arn) or Mode.OBSERVE)),
        )
        others = tuple(each.queue_arn for each in same if each != first)
        kept.append(replace(first, sources=(*first.sources, *others), others=others))
    return kept


def silent_for(findings: Iterable[Finding], kept: Iterable[Finding]) -> Mapping[Finding, Finding]:
    """The findings that were left out, each with the one that speaks for it."""
    speaks = {(each.symptom, each.about): each for each in kept if each.about}
    alike = ((each, speaks.get((each.symptom, each.about))) for each in findings)
    return {each: first for each, first in alike if first is not None and first != each}


def with_others(because: str, shared: Shared) -> str:
    """The sentence of a finding, with a few of the queues that it is said for as well."""
    if not shared.others:
        return because
    names = [parts_of(each).name for each in shared.others]
    number = counted(len(names) + shared.more, "other queue")
    verb = "names" if len(names) + shared.more == 1 else "name"
    rest = f" and {shared.more:,} more" if shared.more else ""
    return f"{because}. {number} {verb} it too: {', '.join(names)}{rest}"


def asks_for(case: Case, about: str) -> bool:
    """Whether a plan of the case makes this queue."""
    return any(each.get("after") == about for each in case.steps)
