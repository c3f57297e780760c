"""What people are to do this week, ranked by what it would have prevented; alike ones as one.

What the cases of the week leave to people, and what no queue can fix: a caller that is refused
again and again, a code that has no symptom. Nothing here is more than cases and incidents say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from analytics.cases import MOST_NAME, Life, Step, shortened, steps_of
from analytics.days import Days, microseconds
from analytics.week_parts import Row, Weight, most_first, time_text, weights
from mendq.catalogue.access.queue_missing import QUEUE_MISSING
from mendq.catalogue.configuration.alarm_missing import ALARM_MISSING
from mendq.catalogue.configuration.tag_not_understood import TAG_NOT_UNDERSTOOD
from mendq.model.case import WROTE, Case, State
from mendq.model.lifecycle import GONE, UNMANAGED
from mendq.model.steps import CreateDlq, has_value_in_queue

WRITE_INTO_TEMPLATE = "write_into_template"
APPROVE = "approve"
DECIDE = "decide"
FIX = "fix"
WATCH = "watch"

# Why, of a change that was made before the week and stands.
STANDS = "stands"
_VERIFIED = frozenset({State.VERIFIED, State.WATCHING})
_WHY = {WRITE_INTO_TEMPLATE: "verified", WATCH: "applied"}
_ASKS = {
    State.APPLIED: WATCH,
    State.UNVERIFIED: WATCH,
    State.PROPOSED: APPROVE,
    State.OVERRIDDEN: DECIDE,
    State.OBSERVED: FIX,
    State.REFUSED: FIX,
    State.EXPIRED: FIX,
    State.INEFFECTIVE: FIX,
    State.ESCALATED: FIX,
}
# Of these the next step says more than a change, which is refused or did not help.
_SAYS_NEXT = frozenset({State.REFUSED, State.INEFFECTIVE, State.ESCALATED})
# What waits for a person comes first, behind what was escalated; the others between.
_RANKS = {APPROVE: 1, DECIDE: 2, WATCH: 4}
# A plan is answered as one, however many attributes it changes.
_AS_ONE = frozenset({APPROVE, FIX})
FIX_CALLER = "fix_caller"
# What no case is opened for, told here alone.
_OF_FINDINGS = {ALARM_MISSING.name: "add_alarms", TAG_NOT_UNDERSTOOD.name: "correct_tags"}
NAME_CODE = "name_code"
# Fewer are no work for a Monday.
MANY_INCIDENTS = 10
MANY_FAILED_CALLS = 100
MAXIMUM_RECOMMENDATIONS = 10
MAXIMUM_STANDING = 50
_STANDING = frozenset({"queue_arn", "symptom", "attribute", "before", "after", "owner", "case_id"})
# As many queues with the same change are listed each; of more, the worst stands for all.
MOST_ALIKE = 3
_ALIKE = attrgetter("kind", "why", "symptom", "attribute", "after", "owner")
_TEXTS = ("before", "after", "reason", "next_step", "command")
_NAMES = ("queue_arn", "symptom", "attribute", "owner", "case_id")


@dataclass(frozen=True)
class Recommendation:
    """One thing to do; docs/to-do.md lists the kinds, and why each is asked for.

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
    case_id: str = ""
    reason: str = ""
    next_step: str = ""
    command: str = ""
    incidents: int = 0
    failed_calls: int = 0
    queues: int = 1

    def document(self) -> dict[str, Any]:
        names = {name: shortened(getattr(self, name), MOST_NAME) for name in _NAMES}
        texts = {name: shortened(getattr(self, name)) for name in _TEXTS}
        return {**asdict(self), **names, **texts}

    @property
    def rank(self) -> tuple[int, int, int, str, str, str, str]:
        name = self.queue_arn.rpartition(":")[2]
        is_escalated = self.why == State.ESCALATED
        first = 0 if is_escalated else _RANKS.get(self.kind, _RANKS[WATCH] - 1)
        wide = first, -self.incidents, -self.failed_calls
        return (*wide, name, self.queue_arn, self.attribute, f"{self.symptom} {self.case_id}")


def do_this_week(asked: Iterable[Recommendation], incidents: Iterable[Row]) -> dict[str, Any]:
    """The fields of the document; a recommendation that has counts of its own keeps them."""
    suffered = weights(incidents, "queue_arn", "symptom")
    ranked = sorted(
        folded([_counted(each, suffered) for each in asked]), key=lambda each: each.rank
    )
    return {
        "do_this_week": [each.document() for each in ranked[:MAXIMUM_RECOMMENDATIONS]],
        "do_this_week_left_out": len(ranked[MAXIMUM_RECOMMENDATIONS:]),
    }


def standing(asked: Iterable[Recommendation], lives: Iterable[Life]) -> dict[str, Any]:
    """Every value that Mendq set and that stands, the oldest first: a template may not hold it.

    What a template says, nothing here knows: a value is listed for as long as cases are read.
    """
    found = [each for each in asked if each.kind == WRITE_INTO_TEMPLATE and each.attribute]
    set_at = {
        life.newest.case_id: time_text(each.at)
        for life in lives
        for each in reversed(life.transitions)
        if each.state in WROTE
    }
    found.sort(key=lambda each: (set_at.get(each.case_id, ""), each.rank))
    return {
        "standing": [
            {name: value for name, value in each.document().items() if name in _STANDING}
            | {"set_at": set_at.get(each.case_id, "")}
            for each in found[:MAXIMUM_STANDING]
        ],
        "standing_left_out": len(found[MAXIMUM_STANDING:]),
    }


def _counted(asked: Recommendation, suffered: Mapping[tuple[str, str], Weight]) -> Recommendation:
    if asked.incidents:
        return asked
    of_both = suffered.get((asked.queue_arn, asked.symptom), Weight())
    return replace(asked, incidents=of_both.incidents, failed_calls=of_both.failed_calls)


def folded(recommendations: Sequence[Recommendation]) -> list[Recommendation]:
    """Where more than MOST_ALIKE queues ask for the same, the first in rank stands for all."""
    alike = defaultdict[tuple[str, ...], list[Recommendation]](list)
    for each in recommendations:
        alike[_ALIKE(each)].append(each)
    return [each for group in alike.values() for each in _as_one(group)]


def _as_one(group: Sequence[Recommendation]) -> Sequence[Recommendation]:
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


def recommendations_of_cases(days: Days, lives: Sequence[Life]) -> list[Recommendation]:
    """One per (queue, attribute), the newest case's; of cases that moved in `days`.

    Of those that moved before, what has fixed something and stands still. A newer case of the same
    symptom takes an older one's place, but for what that has fixed.
    """
    in_order = sorted(lives, key=lambda it: (it.opened_at, it.newest.at, it.newest.case_id))
    newest = {(each.newest.queue_arn, each.newest.symptom): each for each in in_order}
    gone_at = _gone_at(in_order)
    found: dict[tuple[str, str], Recommendation | None] = {}
    for life in in_order:
        case = life.newest
        is_newest = newest[case.queue_arn, case.symptom] is life
        is_older = microseconds(case.at) < days.from_microseconds
        is_there, moved = not _is_gone(case, gone_at), any(life.within(days))
        for key, asked in _asked(life):
            has_fixed = asked is not None and asked.kind == WRITE_INTO_TEMPLATE
            stays = is_there and (has_fixed if is_older else moved and (is_newest or has_fixed))
            said = replace(asked, why=STANDS) if asked and is_older else asked
            found[case.queue_arn, key] = said if stays else None
    return [each for each in found.values() if each]


def _gone_at(lives: Sequence[Life]) -> dict[str, datetime]:
    """When each queue that is gone was last seen to be."""
    missed: dict[str, datetime] = {}
    for life in lives:
        case = life.newest
        is_missing = case.symptom == QUEUE_MISSING.name
        if is_missing or (case.state is State.CLOSED and case.reason == GONE):
            at = life.opened_at if is_missing else case.at
            missed[case.queue_arn] = max(at, missed.get(case.queue_arn, at))
    return missed


def _is_gone(case: Case, gone_at: dict[str, datetime]) -> bool:
    if case.symptom == QUEUE_MISSING.name or case.queue_arn not in gone_at:
        return False
    return case.at <= gone_at[case.queue_arn]


def _asked(life: Life) -> Iterator[tuple[str, Recommendation | None]]:
    """What a case asks for, by attribute, or by symptom where it has no change to offer.

    None, where it asks for nothing, takes older askings away; what was declined says nothing.
    """
    case = life.newest
    if case.state is State.DECLINED:
        return
    kind = WRITE_INTO_TEMPLATE if _has_fixed(case) else _ASKS.get(case.state)
    steps = [each for each in steps_of(case) if _stands_in_the_queue(each)]
    as_one = kind in _AS_ONE and len(steps) > 1
    for n, step in enumerate(steps):
        asked = _of_case(kind, life, None if as_one else step) if kind else None
        yield f"attribute {step.attribute}", None if as_one and n else asked
    if not steps:
        asks = kind not in (WRITE_INTO_TEMPLATE, WATCH)
        yield f"symptom {case.symptom}", _of_case(kind, life, None) if kind and asks else None


def _has_fixed(case: Case) -> bool:
    """A change was verified and nothing took it back."""
    was_watched = case.state is State.CLOSED and case.came_from is State.WATCHING
    return case.state in _VERIFIED or (was_watched and case.reason not in (GONE, UNMANAGED))


def _stands_in_the_queue(step: Step) -> bool:
    """Not a queue that was made, nor messages that went back."""
    return has_value_in_queue(step.attribute) and step.attribute != CreateDlq.attribute


def _of_case(kind: str, life: Life, step: Step | None) -> Recommendation:
    case = life.newest
    # What somebody has set in place of what Mendq wrote is in no case.
    is_overruled = case.state is State.OVERRIDDEN and case.came_from is not None
    said = case.next_step if case.state in _SAYS_NEXT else {}
    return Recommendation(
        kind=kind,
        why=_WHY.get(kind) or str(case.state),
        queue_arn=case.queue_arn,
        symptom=case.symptom,
        attribute=step.attribute if step else "",
        before=_before(life, step.attribute) if step and not is_overruled else "",
        after=step.after if step else "",
        owner=_owner(case),
        case_id=case.case_id,
        reason=case.reason,
        next_step=said.get("sentence", ""),
        command=said.get("command", ""),
    )


def _owner(case: Case) -> str:
    """The stack that deploys the queue, and what it is called there; empty where none was named."""
    stack, resource = (case.evidence.get(each) for each in ("stack", "resource"))
    if not (stack and isinstance(stack, str)):
        return ""
    named = f", {resource}" if resource and isinstance(resource, str) else ""
    return f"CloudFormation stack {stack}{named}"


def _before(life: Life, attribute: str) -> str:
    """What stood there before the case's first step: what a template still says."""
    steps = (step for each in life.transitions for step in steps_of(each))
    return next((each.before for each in steps if each.attribute == attribute), "")


def recommendations_of_callers(incidents: Iterable[Row]) -> list[Recommendation]:
    """Of incidents without a case: one per caller and symptom, and one per unknown code."""
    groups = defaultdict[tuple[str, str, str], list[Row]](list)
    for row in incidents:
        if row["why"] == "unknown_code":
            groups[NAME_CODE, row["symptom"], ""].append(row)
        elif row["why"] == "count_only":
            # Where several call, whose the failures are is not known.
            owner = row["principals"][0] if len(row["principals"]) == 1 else ""
            groups[FIX_CALLER, row["symptom"], owner].append(row)
    found = [_of_caller(*key, rows) for key, rows in groups.items()]
    return [
        each
        for each in found
        if each.incidents >= MANY_INCIDENTS or each.failed_calls >= MANY_FAILED_CALLS
    ]


def recommendations_of_findings(found: Iterable[Sequence[str]]) -> list[Recommendation]:
    """One per queue of what scans report and no case tells of."""
    return [
        Recommendation(_OF_FINDINGS[symptom], "found", queue_arn, symptom, reason=because)
        for queue_arn, symptom, because in found
        if symptom in _OF_FINDINGS
    ]


def _of_caller(kind: str, symptom: str, owner: str, rows: Sequence[Row]) -> Recommendation:
    by_queue = weights(rows, "queue_arn")
    worst, _ = min(by_queue.items(), key=most_first)
    codes = sorted({code for row in rows for code in row["error_codes"]})
    return Recommendation(
        kind=kind,
        why="unknown_code" if kind == NAME_CODE else "count_only",
        queue_arn=worst,
        symptom=symptom,
        owner=owner,
        reason=", ".join(codes),
        incidents=len(rows),
        failed_calls=sum(row["failed_calls"] for row in rows),
        queues=len(by_queue),
    )
