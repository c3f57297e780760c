"""The sweeps' lists of managed queues, which lie beside the cases."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.days import Days
from analytics.managed import LATER_DAYS, Round, read_round
from analytics.storage import Storage

FINDINGS = "findings"


def root_beside(cases: str) -> str | None:
    """Where the findings of the case bucket lie whose cases' root is `cases`, if it can have any.

    docs/case-bucket.md
    """
    parent, slash, _ = cases.rstrip("/").rpartition("/")
    return None if parent in ("s3:/", "s3:") else f"{parent}{slash}{FINDINGS}"


def rounds(findings: Storage, days: Days) -> Iterator[Round]:
    """Those that may speak for incidents of `days`."""
    around = {f"dt={day}" for day in days.widened(1, LATER_DAYS + 1)}
    for name in findings.folders(""):
        if name in around:
            for file in findings.files(name):
                found = read_round(findings.read(file.path) or b"")
                if found:
                    yield found
