"""The spelling of times in Mendq's stored documents."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(time: datetime) -> str:
    """Return a time as text in UTC with milliseconds, such as `2026-11-28T21:30:00.000Z`.

    All stored documents of Mendq have times in this form.
    """
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
