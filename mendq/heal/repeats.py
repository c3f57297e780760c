"""What a scan found, said once: one finding for many queues, and so many new faults a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from mendq.cases.finding import Finding, turn_of
from mendq.heal.decide import REMEMBERED
from mendq.model.limits import Consent, Mode
from mendq.model.queue import parts_of

if TYPE_CHECKING:
    from mendq.aws.queue import ManagedQueue
    from mendq.cases.table import OpenCase

NEW_FAULTS_A_DAY = 10


Paced = tuple[list[str], list[str], list[str]]


def paced(notes: frozenset[str], topics: Sequence[str], now: datetime) -> Paced:
    """The topics that may be told of now; then the notes to make, and those that mean nothing more.

    Notes are `2026-11-16 topic`: which faults of which queues were told of, and when first. Known
    ones go on being told of, because a case stays open only while it is found again; new ones while
    the day has room, in an order that no name decides: else a few queues a day would hide others.
    """
    oldest, asked = f"{now - REMEMBERED:%F}", dict.fromkeys(topics)
    valid = {each for each in notes if each.partition(" ")[0] > oldest}
    known = {each.partition(" ")[2] for each in valid}
    room = NEW_FAULTS_A_DAY - sum(each.startswith(f"{now:%F} ") for each in notes)
    turns = sorted(asked.keys() - known, key=lambda topic: turn_of(topic, now))
    new = turns[: max(0, room)]
    admitted = [each for each in asked if each in known or each in new]
    return admitted, [f"{now:%F} {each}" for each in sorted(new)], sorted(notes - valid)


def spoken_for(
    findings: Iterable[Finding],
    managed: Iterable[ManagedQueue],
    open_cases: Iterable[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """The findings without those about a missing queue that another speaks for already.

    That is the one whose case is open, then the one whose queue's mode goes furthest, then the
    first by name. Its `sources` are all who name that queue: what is wrong with any of them goes
    first, because making the queue would dump the backlogs of all. `open_at` are those who may have
    asked for it before.
    """
    tags = {each.queue_arn: each.tags for each in managed}
    open_at, alike = defaultdict[str, list[str]](list), defaultdict[object, list[Finding]](list)
    for case in open_cases:
        open_at[case.symptom].append(case.queue_arn)
    for each in sorted(findings):
        alike[each.symptom, each.about or each.queue_arn].append(each)

    def rank(of: Finding) -> tuple[bool, Mode]:
        mode = consent.mode_of(parts_of(of.queue_arn).name, tags.get(of.queue_arn, {}))
        return of.queue_arn in open_at[of.symptom], mode or Mode.OBSERVE

    retained = list[Finding]()
    for same in alike.values():
        first = max(same, key=rank)
        others = tuple(each.queue_arn for each in same if each != first)
        asked = [arn for arn in open_at[first.symptom] if first.about and arn != first.queue_arn]
        sources = (*first.sources, *others)
        retained.append(replace(first, sources=sources, others=others, open_at=tuple(asked)))
    return retained


def silent_for(
    findings: Iterable[Finding], retained: Iterable[Finding]
) -> Mapping[Finding, Finding]:
    """The findings that were left out, each with the one that speaks for it."""
    speaks = {(each.symptom, each.about): each for each in retained if each.about}
    alike = ((each, speaks.get((each.symptom, each.about))) for each in findings)
    return {each: first for each, first in alike if first is not None and first != each}
