"""Whether an SSM Change Calendar forbids changes now; a calendar that cannot be read does.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
"""

from __future__ import annotations

from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients


def closed_calendars(clients: Clients, calendars: Sequence[str]) -> str | None:
    """Why changes are frozen, or None; asks nothing where no calendar is set."""
    if not calendars:
        return None
    try:
        closed = is_closed(clients, calendars)
    except (ClientError, BotoCoreError) as error:
        return f"the change calendar cannot be read ({type(error).__name__})"
    return "the change calendar is closed" if closed else None


def is_closed(clients: Clients, calendars: Sequence[str]) -> bool:
    """Whether any of them is; raises ClientError or BotoCoreError where one cannot be read."""
    return clients.ssm.get_calendar_state(CalendarNames=list(calendars))["State"] != "OPEN"
