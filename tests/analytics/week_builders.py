"""Made-up table rows and cases of one week."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from analytics.cases import CaseFiles, CaseTimeline, Transition, read_transition
from analytics.week import WeekInput, make_summary
from analytics.week_parts import RowsByDay
from tests.analytics.builders import ACCOUNT, REGION, copy_sample, make_time, make_transition

MADE_AT = datetime(2026, 11, 16, 6, tzinfo=UTC)
WEEK = "2026-W46"
MONDAY = date(2026, 11, 9)
DAYS = tuple(MONDAY + timedelta(days=number) for number in range(7))
VISIBILITY = ("VisibilityTimeout", "30", "45")


def make_queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def make_incident(number: int = 1, **fields: Any) -> dict[str, Any]:
    first = make_time("11-09 09:00") + timedelta(seconds=number)
    own = {"first_failure": first, "last_failure": make_time("11-09 10:00")}
    return {"incident_id": f"i{number:03}", **copy_sample("incident"), **own, **fields}


def make_account_incident(account: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return an incident of the queue `orders` of `account`."""
    queue_arn = f"arn:aws:sqs:{REGION}:{account}:orders"
    return make_incident(number, **{"account": account, "queue_arn": queue_arn, **fields})


def make_file_row(name: str, **fields: Any) -> dict[str, Any]:
    return {"file": name, **copy_sample("file"), **fields}


def make_week_input(
    incidents: RowsByDay, quality: RowsByDay | None = None, **fields: Any
) -> WeekInput:
    """Make the input of a week. Without `quality` no day has trail files."""
    return WeekInput(incidents, quality or dict.fromkeys(incidents, ()), **fields)


def make_week_summary(
    incidents: RowsByDay, quality: RowsByDay | None = None, **fields: Any
) -> dict[str, Any]:
    """Return the summary document of a week."""
    return make_summary(WEEK, make_week_input(incidents, quality, **fields), MADE_AT)


def make_case_files(*lives: CaseTimeline, unreadable: int = 0) -> CaseFiles:
    return CaseFiles(MONDAY, [*lives], unreadable)


def make_timeline(*states: tuple[str, str] | tuple[str, str, str], **fields: Any) -> CaseTimeline:
    """A case of `orders` that went through `states`: each a word, a time and perhaps its reason.

    It raised the visibility timeout, unless `steps`, of (attribute, before, after), tell otherwise;
    `notified` holds the numbers of the transitions that paged; `first_n` is the first one's.
    """
    notified: Sequence[int] = fields.pop("notified", ())
    first_n: int = fields.pop("first_n", 1)
    queue: str = fields.pop("queue", "orders")
    return CaseTimeline(
        tuple(
            _transition(n, state, make_queue_arn(queue), notified=n in notified, **fields)
            for n, state in enumerate(states, first_n)
        )
    )


def _transition(  # noqa: PLR0917 - as a transition has it
    n: int,
    state: Sequence[str],
    queue_arn: str,
    steps: Sequence[tuple[str, str, str]] = (VISIBILITY,),
    came_from: str | None = None,
    failed_calls: int = 3,
    **fields: Any,
) -> Transition:
    word, when, *reason = state
    document = make_transition(n, word, when, first_at="11-08 08:00", last_at="11-08 08:10")
    document["evidence"] |= {"failed_calls": failed_calls}
    named = [dict(zip(("attribute", "before", "after"), step, strict=True)) for step in steps]
    document |= {"queue_arn": queue_arn, "reason": "".join(reason), "steps": named, **fields}
    document["from"] = came_from
    read = read_transition(json.dumps(document).encode())
    assert read
    return read
