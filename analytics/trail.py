"""Which files of a trail a run reads: by publish folder, neighbours of the log files left out.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-log-files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from analytics.days import Days
from analytics.storage.root import Storage
from functions.healing.nightly import is_in_reach

LOGS = "AWSLogs"
LOG_FILES = "CloudTrail"
DIGESTS = "CloudTrail-Digest"
# CloudTrail retries a delivery for 30 days; a night that runs in time finds none of the later
# folders, so that the long reach costs only who runs an old night again.
LATE_DAYS = 30
_YEAR, _PART = re.compile(r"[0-9]{4}"), re.compile(r"[0-9]{2}")


class Branch(NamedTuple):
    """One account and region of a trail."""

    folder: str
    account: str
    region: str


class PublishFolder(NamedTuple):
    """One publish day of one account and region."""

    folder: str
    account: str
    region: str
    published: date


def publish_days(event_days: Days) -> Days:
    """The publish days whose files may hold calls of `event_days`."""
    return event_days.widened(0, LATE_DAYS)


def branches(trail: Storage, kind: str = LOG_FILES) -> list[Branch]:
    """Every account and region; an organization's trail has its id above the accounts."""
    return [
        Branch(f"{account_folder}/{kind}/{region}", account_folder.rpartition("/")[2], region)
        for account_folder in _account_folders(trail)
        for region in trail.folders(f"{account_folder}/{kind}")
    ]


def publish_folders(trail: Storage, branch: Branch, days: Days) -> Iterator[PublishFolder]:
    """The folders of `days` that are there."""
    for month in sorted({(day.year, day.month) for day in days}):
        folder = f"{branch.folder}/{month[0]:04}/{month[1]:02}"
        names = trail.folders(folder)
        for day in days:
            if (day.year, day.month) == month and f"{day.day:02}" in names:
                path = f"{folder}/{day.day:02}"
                yield PublishFolder(path, branch.account, branch.region, day)


def began(trail: Storage) -> date | None:
    """The first publish day of any log file or digest; None where there is none yet."""
    every = [each for kind in (LOG_FILES, DIGESTS) for each in branches(trail, kind)]
    days = [_first_day(trail, each.folder) for each in every]
    return min((day for day in days if day), default=None)


def _account_folders(trail: Storage) -> Iterator[str]:
    for name in trail.folders(LOGS):
        if name.startswith("o-"):
            yield from (f"{LOGS}/{name}/{each}" for each in trail.folders(f"{LOGS}/{name}"))
        else:
            yield f"{LOGS}/{name}"


def _first_day(trail: Storage, folder: str) -> date | None:
    for year in _numbered(_YEAR, trail.folders(folder)):
        for month in _numbered(_PART, trail.folders(f"{folder}/{year}")):
            for day in _numbered(_PART, trail.folders(f"{folder}/{year}/{month}")):
                try:
                    found = date(int(year), int(month), int(day))
                except ValueError:
                    continue
                if is_in_reach(found.year):
                    return found
    return None


def _numbered(shape: re.Pattern[str], names: list[str]) -> Iterator[str]:
    return (each for each in names if shape.fullmatch(each))
