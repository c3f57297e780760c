"""Records of failed calls in the shapes that a trail, or an attacker, may give them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import yaml

from tests.analytics.recount.hostile_callers import Place, Record, choose_identity

TABLES = yaml.safe_load(Path(__file__).with_name("hostile.yaml").read_text())
ERRORS = [tuple(error) for error in TABLES["errors"]]


def make_failed_call(
    random: Random, place: Place, error: tuple[str, str, str], when: datetime
) -> Record:
    code, api, message = error
    record: Record = {
        "eventVersion": random.choice(["1.08", "1.11", "2.0"]),
        "userIdentity": choose_identity(random, place),
        "eventTime": format_event_time(when),
        "eventSource": "sqs.amazonaws.com", "eventName": api, "awsRegion": place.region,
        "sourceIPAddress": "10.0.118.80", "userAgent": "aws-cli/2",
        "errorCode": code, "errorMessage": message,
        "requestParameters": None, "responseElements": None,
        "requestID": f"{random.getrandbits(64):016x}", "eventID": make_event_id(random),
        "recipientAccountId": place.account, "eventCategory": "Data",
    }  # fmt: skip
    return {**record, **choose_queue_fields(random, place)}


def make_event_id(random: Random) -> str:
    return f"{random.getrandbits(128):032x}"


def format_event_time(when: datetime) -> str:
    """CloudTrail's form; with a fraction only where there is one."""
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{when.microsecond:06}".rstrip("0") + "Z" if when.microsecond else f"{text}Z"


def make_queue_fields(place: Place) -> Record:
    """The fields that tell the queue beyond doubt."""
    return {"resources": [{"type": "AWS::SQS::Queue", "ARN": place.arn}], "errorMessage": ""}


def choose_queue_fields(random: Random, place: Place) -> Record:
    """The fields that tell the queue, in one of the ways that a record may."""
    if place.queue is None:
        return {"resources": random.choice([None, [], 7, [None], [{"ARN": 3}]])}
    url = f"https://sqs.{place.region}.amazonaws.com/{place.account}/{place.queue}"
    way = random.random()
    if way < 0.05:  # a call from here on a queue of another account, or of another region
        others = (replace(place, account="123456789012"), replace(place, region="eu-north-1"))
        return {"resources": [{"type": "AWS::SQS::Queue", "ARN": random.choice(others).arn}]}
    if way < 0.7:
        return {"resources": [{"type": "AWS::SQS::Queue", "ARN": place.arn}]}
    if way < 0.9:
        return {"requestParameters": {"queueUrl": url}, "resources": [{"ARN": [place.arn]}]}
    return {"errorMessage": f"no access to {place.arn}", "requestParameters": "none"}


def make_noise(random: Random, record: Record) -> Record:
    """A record that is no failed call of SQS, though it looks much like one."""
    quiet = {**record, "eventID": make_event_id(random)}
    way = random.randrange(4)
    if way == 0:
        return {**quiet, "eventSource": "s3.amazonaws.com", "errorCode": "AccessDenied"}
    if way == 1:
        return {**quiet, "responseElements": {"errorCode": "MessageNotInflight"}, "errorCode": None}
    del quiet["errorCode"]
    return quiet if way == 2 else {**quiet, "additionalEventData": {"errorCode": "OverLimit"}}


def choose_delay(random: Random) -> timedelta:
    """How long after a call its file is published."""
    way = random.random()
    if way < 0.05:
        return timedelta(seconds=-random.randrange(1, 90))
    if way < 0.85:
        return timedelta(seconds=random.randrange(30, 900))
    return timedelta(hours=random.randrange(1, 60) if way < 0.97 else random.randrange(60, 24 * 28))
