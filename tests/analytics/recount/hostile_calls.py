"""Three days of failed calls, and when CloudTrail publishes each."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from tests.analytics.recount.hostile_callers import ACCOUNTS, REGIONS, Place, Record, make_own_role
from tests.analytics.recount.hostile_records import (
    ERRORS,
    choose_delay,
    make_failed_call,
    make_noise,
    make_queue_fields,
)

GAPS_SECONDS = (0, 0.001, 1, 59, 600, 899, 900, 900, 900.5, 901, 901, 1800)
DAYS = 3


@dataclass(frozen=True)
class Publication:
    """A record with the time, account and region that choose its trail file."""

    at: datetime
    account: str
    region: str
    record: Any


def get_midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def make_hostile_calls(
    random: Random, first_day: date, bursts: int, chained: int
) -> list[Publication]:
    """Bursts over all three days and over their ends, copies of calls, and noise."""
    published: list[Publication] = []
    for _ in range(bursts):
        place = choose_place(random)
        error = random.choice(ERRORS)
        start = choose_start(random, first_day)
        for when in choose_times(random, start, random.choice([1, 1, 2, 3, 3, 5, 8, 20])):
            published += publish_call(
                random, place, make_failed_call(random, place, error, when), when
            )
    return published + make_chain(random, first_day, chained)


def choose_place(random: Random) -> Place:
    queue = random.choice(["orders", "orders.fifo", "mails", "mendq-probe.fifo", "Ö x/y", None])
    return Place(random.choice(ACCOUNTS), random.choice(REGIONS), queue)


def choose_start(random: Random, first_day: date) -> datetime:
    """Every third close to a midnight; whole seconds and halves."""
    if random.random() < 0.35:
        nightly = get_midnight(first_day) + timedelta(days=random.randrange(DAYS + 1))
        return nightly + timedelta(
            seconds=random.choice([-1800, -901, -900, -450.5, -1, 0, 0.5, 1])
        )
    seconds = random.randrange(-3600, DAYS * 86_400 + 3600)
    return get_midnight(first_day) + timedelta(seconds=seconds)


def choose_times(random: Random, start: datetime, calls: int) -> list[datetime]:
    times = [start]
    for _ in range(calls - 1):
        times.append(times[-1] + timedelta(seconds=random.choice(GAPS_SECONDS)))
    return times


def publish_call(random: Random, place: Place, record: Record, when: datetime) -> list[Publication]:
    """Publish the call, sometimes with a copy, a contradiction, a call of Mendq or noise."""
    first = Publication(when + choose_delay(random), place.account, place.region, record)
    chance = random.random()
    if chance < 0.1:
        return [first, _publish_again(random, first, copy.deepcopy(record))]
    if chance < 0.2:
        return [first, _publish_again(random, first, make_contradiction(random, record))]
    if chance < 0.3:
        own = {
            **record,
            "userIdentity": make_own_role(random, place),
            "eventID": f"own-{random.random()}",
        }
        return [first, Publication(first.at, place.account, place.region, own)]
    if chance < 0.5:
        return [
            first,
            Publication(first.at, place.account, place.region, make_noise(random, record)),
        ]
    return [first]


def _publish_again(random: Random, first: Publication, record: Any) -> Publication:
    at = first.at + random.choice([0, 1, 1, 30]) * timedelta(minutes=random.randrange(60))
    return Publication(at, first.account, first.region, record)


def make_contradiction(random: Random, record: Record) -> Record:
    """Return a record with the same eventID and day, and with one other field changed."""
    other = copy.deepcopy(record)
    place = Place(record["recipientAccountId"], record["awsRegion"], "elsewhere")
    way = random.randrange(5)
    if way == 0:
        other["errorCode"] = "InternalFailure"
    elif way == 1:
        other["resources"] = [{"type": "AWS::SQS::Queue", "ARN": place.arn}]
    elif way == 2:
        other["userIdentity"] = make_own_role(random, place)
    elif way == 3:
        del other["errorCode"]
    else:
        other["eventTime"] = f"{record['eventTime'][:17]}59Z"
    return other


def make_chain(random: Random, first_day: date, calls: int) -> list[Publication]:
    """Return the calls of an incident that begins before the first day, 900 s apart."""
    place = Place(ACCOUNTS[0], REGIONS[0], "chained")
    start = get_midnight(first_day) - timedelta(seconds=300)
    times = [start + timedelta(seconds=900 * number) for number in range(calls)]
    return [
        Publication(when + choose_delay(random), place.account, place.region, record)
        for when in times
        for record in [
            {**make_failed_call(random, place, ERRORS[0], when), **make_queue_fields(place)}
        ]
    ]
