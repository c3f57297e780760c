"""The texts that settings hold: queues, ARNs, people, places and hours."""

from __future__ import annotations

import re
import zoneinfo

from infra.settings.kinds import Reading, Text

_REGION = r"[a-z]{2}(?:-[a-z]+){1,3}-[0-9]{1,2}"
_ACCOUNT = r"[0-9]{12}"


def _queue_cure(text: str) -> str | None:
    if text == "*":
        return "no setting manages every queue: name them, or the start of their names and a *"
    if text.startswith(("arn:", "http://", "https://")):
        return f"say the queue's name alone, such as {re.split('[:/]', text)[-1] or 'orders'}"
    if "*" in text[:-1]:
        return "a * may stand only once, at the end"
    return None


def _prefix_cure(text: str) -> str | None:
    if text.endswith("*"):
        return "leave out the *: CloudTrail compares the start of the ARN"
    return None


QUEUE = Text(
    "a queue's name, or the start of one and a *",
    re.compile(r"(?=.{1,80}\Z)(?:[A-Za-z0-9_-]+(?:\.fifo|\*)?)"),
    "orders or orders-*",
    _queue_cure,
)
QUEUE_ARN_PREFIX = Text(
    "the start of a queue's ARN",
    re.compile(
        rf"arn:aws[a-z-]*:sqs:(?:{_REGION}:(?:{_ACCOUNT}:[A-Za-z0-9_-]{{0,80}}(?:\.fifo)?)?)?"
    ),
    "arn:aws:sqs:eu-west-1:111122223333:orders-",
    _prefix_cure,
)
CALENDAR = Text(
    "the ARN of an SSM Change Calendar",
    re.compile(rf"arn:aws[a-z-]*:ssm:{_REGION}:{_ACCOUNT}:document/[A-Za-z0-9_.-]{{3,128}}"),
    "arn:aws:ssm:eu-west-1:111122223333:document/quiet-days",
)
BUCKET = Text(
    "a bucket's name",
    re.compile(r"[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]"),
    "our-cloudtrail-logs",
    lambda text: "leave out arn:aws:s3:::" if text.startswith("arn:") else None,
)
# What needs no quotes in a header; SES takes ASCII alone.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAIL = rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}})+"
MAIL = Text("an e-mail address", re.compile(_MAIL), "sqs@example.com")
PAGE = Text(
    "an e-mail address or an https URL",
    re.compile(rf"{_MAIL}|https://[A-Za-z0-9.-]{{1,253}}(?::[0-9]{{1,5}})?(?:/[^\s]*)?"),
    "on-call@example.com or https://events.example.com/key",
    lambda text: "use https://" if text.startswith("http://") else None,
)
ACCOUNT = Text("an account id", re.compile(_ACCOUNT), '"111122223333", twelve digits in quotes')
REGION = Text("a region", re.compile(_REGION), "eu-west-1")

WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


class TimeZone(Text):
    """An IANA name; only its shape counts on a machine that has no time zones of its own."""

    def read(self, raw: object, path: str, reading: Reading) -> str:
        zone = super().read(raw, path, reading)
        known = zoneinfo.available_timezones()
        if zone and known and zone not in known:
            reading.note(path, f'"{zone}" is not {self.words}', f"say one such as {self.example}")
        return zone


TIME_ZONE = TimeZone(
    "a time zone", re.compile(r"[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*"), "Europe/Berlin"
)
