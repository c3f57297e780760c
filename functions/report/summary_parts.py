"""The parts of a summary that came after the first reports; an older document lacks them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

# The verdict on a night that was written before its day was over.
PARTIAL = "partial"


@dataclass(frozen=True)
class TimesToHeal:
    """How long the healed incidents of a label took; the 90th percentile is None of few.

    `seconds` are sorted: all of them, or, of many, some that are evenly spaced by rank.
    """

    label: str
    incidents: int
    median_seconds: float | None
    p90_seconds: float | None
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class QueueWeek:
    """One queue's incidents, day by day from Monday; `unresolved` is one as well."""

    queue_arn: str
    incidents: tuple[int, ...]
    failed_calls: int
    not_healed: int


@dataclass(frozen=True)
class QueueDays:
    """The queues with most incidents, most first, and what the others have together."""

    queues: tuple[QueueWeek, ...] = ()
    queues_left_out: int = 0
    incidents_left_out: int = 0


@dataclass(frozen=True)
class PagedCase:
    """A case that paged somebody this week; `is_swept` where no failed call opened it."""

    case_id: str
    queue_arn: str
    symptom: str
    state: str
    opened_at: datetime
    paged_at: datetime
    pages: int
    reason: str
    ended_at: datetime | None
    seconds_open: float | None
    is_swept: bool


@dataclass(frozen=True)
class ReachedAPerson:
    """The cases that paged somebody this week, the earliest page first."""

    cases: tuple[PagedCase, ...] = ()
    cases_left_out: int = 0
    total: int = 0


@dataclass(frozen=True)
class Swept:
    """The cases of this week that a sweep opened: no call failed, so they are no incidents."""

    cases: int = 0
    by_symptom: tuple[tuple[str, int], ...] = ()
    healed: int = 0
    paged: int = 0


@dataclass(frozen=True)
class Deed:
    """Something for people to do; texts are empty where there is nothing to say.

    `incidents` and `failed_calls` are what it would have prevented this week, on `queues` queues.
    `reason` is what Mendq said of the case, `cure` what the catalogue says of the symptom.
    """

    kind: str
    queue_arn: str
    symptom: str
    attribute: str
    before: str
    after: str
    template_line: str
    owner: str
    command: str
    why: str
    case_id: str
    incidents: int
    failed_calls: int
    queues: int
    reason: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Night:
    """What one night read and how; `usual_records` is None where too few nights came before."""

    day: date
    reader: str
    why_fallback: str
    records: int
    usual_records: float | None
    verdict: str
