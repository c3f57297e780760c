"""Compare this machine's clock with the clock of AWS.

https://www.rfc-editor.org/rfc/rfc9110#name-date
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any


def measure_clock_difference(response: Mapping[str, Any], now: datetime) -> timedelta | None:
    """Return how far `now` is ahead of AWS's clock; negative if it is behind.

    The result is too large by at most the length of the call plus one second: AWS writes the time
    before it sends the answer, and rounds it down to a whole second.

    Args:
        response: An answer of AWS, as boto3 returned it.
        now: This machine's time just after the answer, with a time zone.

    Returns:
        The difference. None if the service's time is not known (see `read_service_time`).
    """
    service_time = read_service_time(response)
    return None if service_time is None else now - service_time


def read_service_time(response: Mapping[str, Any]) -> datetime | None:
    """Return the time of AWS's clock when AWS wrote an answer, rounded down to the second.

    `response` is the answer as boto3 returned it. Return None if it has no readable Date header.
    AWS always sends the header, but some emulators do not.
    """
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        service_time = parsedate_to_datetime(headers.get("date", ""))
    except (OverflowError, TypeError, ValueError):
        return None
    return service_time if service_time.tzinfo else service_time.replace(tzinfo=UTC)
