"""Time text: how do Mendq's documents spell a time?"""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Return a time as text in UTC with milliseconds, such as `2026-11-28T21:30:00.000Z`.

    All of Mendq's documents spell times in this way.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
