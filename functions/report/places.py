"""Account and region of a queue: said only where the report has several."""

from __future__ import annotations

from functions.report.summary import Summary
from functions.report.visible import visible


def place_in(summary: Summary, queue_arn: str) -> str:
    """`123456789012, us-east-1`; empty where there is but one place, or no ARN."""
    if len(summary.accounts) * len(summary.regions) <= 1:
        return ""
    parts = queue_arn.split(":")
    return visible(f"{parts[4]}, {parts[3]}") if len(parts) == 6 else ""
