"""What no queue can mend: a caller that is refused again and again, a code that has no label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from analytics.labels import COUNT_ONLY, UNLABELLED
from analytics.outcomes import NOT_SEEN
from analytics.week_deeds import Deed, Suffered
from analytics.week_rows import Row
from functions.catalogue import CATALOGUE

MEND_CALLER = "mend_caller"
LABEL_CODE = "label_code"
# Fewer are no work for a Monday.
MANY_INCIDENTS = 10
MANY_FAILED_CALLS = 100
_CURES = {each.name: each.plan_in_words for each in CATALOGUE}


def deeds_of_callers(incidents: Iterable[Row]) -> list[Deed]:
    """Of incidents without a case: one per caller and label, and one per unlabelled code."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in incidents:
        if row["outcome"] != NOT_SEEN:
            continue
        if row["label"].startswith(UNLABELLED):
            groups[LABEL_CODE, row["label"], ""].append(row)
        elif row["label"] in COUNT_ONLY:
            groups[MEND_CALLER, row["label"], _sole(row["principals"])].append(row)
    return [_deed(*key, rows) for key, rows in groups.items() if _are_many(rows)]


def _sole(principals: Sequence[str]) -> str:
    """Empty where several call: whose the failures are is not known."""
    return principals[0] if len(principals) == 1 else ""


def _are_many(rows: Sequence[Row]) -> bool:
    failed_calls = sum(row["failed_calls"] for row in rows)
    return len(rows) >= MANY_INCIDENTS or failed_calls >= MANY_FAILED_CALLS


def _deed(kind: str, label: str, owner: str, rows: Sequence[Row]) -> Deed:
    by_queue: dict[str, Suffered] = defaultdict(Suffered)
    for row in rows:
        by_queue[row["queue_arn"]].add(row)
    worst = min(
        by_queue, key=lambda arn: (-by_queue[arn].incidents, -by_queue[arn].failed_calls, arn)
    )
    codes = sorted({code for row in rows for code in row["error_codes"]})
    return Deed(
        kind=kind,
        why="unlabelled" if kind == LABEL_CODE else label,
        queue_arn=worst,
        symptom=label,
        owner=owner,
        reason=", ".join(codes),
        cure=_CURES.get(label, ""),
        incidents=len(rows),
        failed_calls=sum(row["failed_calls"] for row in rows),
        queues=len(by_queue),
    )
