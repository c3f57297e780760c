"""The EMR job of a night or of a week, computed from the time that the schedule names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal

from mendq.model.evidence import to_text

# EMR Serverless's states in which a run still goes on.
# https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_JobRun.html
ACTIVE: tuple[
    Literal["SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED"], ...
] = ("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED")


@dataclass(frozen=True)
class Roots:
    """Where the job reads and writes: s3 URIs, or folders on the local account."""

    trail: str
    cases: str
    out: str


@dataclass(frozen=True)
class Job:
    """A run of analytics.job: `kind` is nightly or week, `of` the day or week it is for."""

    kind: str
    of: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.of}"

    def client_token(self, scheduled_at: datetime) -> str:
        """The same for every delivery of one scheduled time; EMR allows A-Z, a-z, 0-9, `._-`.

        Another time gives another token, so that a failed nightly run can be started again by hand.
        """
        text = " ".join((*self.arguments, scheduled_at.isoformat()))
        return f"{self.name}-{sha256(text.encode()).hexdigest()[:12]}"


def nightly(scheduled_at: datetime, roots: Roots) -> Job:
    """Yesterday (UTC), and the day before once more for the files that came late."""
    day = (scheduled_at - timedelta(days=1)).date()
    days = ("--from", f"{day - timedelta(days=1)}", "--to", f"{day}")
    return Job("nightly", f"{day}", ("backfill", *days, *_all(roots)))


def week(scheduled_at: datetime, roots: Roots) -> Job:
    """The last whole ISO week (UTC); the job is told when that was, which it may begin later."""
    year, number, _ = (scheduled_at - timedelta(days=7)).date().isocalendar()
    name = f"{year}-W{number:02d}"
    when = ("--scheduled-at", to_text(scheduled_at))
    return Job("week", name, ("weekly", "--week", name, *when, *_all(roots)))


def _all(roots: Roots) -> tuple[str, ...]:
    return ("--trail", roots.trail, "--cases", roots.cases, "--out", roots.out)
