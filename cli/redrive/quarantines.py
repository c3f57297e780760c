"""The quarantines of an account: what keeps the letters that came back, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from cli.queues import managed_queues, queue_arn_of
from cli.redrive.route import Queue, Route, movable, queue_of, require_idle, require_last
from functions.aws.errors import QueueGone, looking
from functions.aws.queue_look import attributes_of, queue_url
from functions.healing.companions import FIFO
from functions.healing.dead_letters import redrive_of
from functions.healing.quarantines import SUFFIX, arn_for, is_quarantine
from functions.healing.queue_names import arn_of, arn_of_name, parts_of

_LOOKS_BACK = timedelta(minutes=15)


@dataclass(frozen=True)
class Quarantine:
    """One beside a managed source; `oldest_at` is None where CloudWatch does not say.

    The oldest letter came then or before: SQS's metric leaves out what was received three times,
    and to look is to receive.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """

    queue: Queue
    source_arn: str
    oldest_at: datetime | None

    @property
    def in_flight(self) -> int:
        return self.queue.in_flight

    @property
    def expires_by(self) -> datetime | None:
        """When SQS has deleted the first letter, at the latest."""
        kept = self.queue.attributes.get("MessageRetentionPeriod")
        if self.oldest_at is None or kept is None:
            return None
        return self.oldest_at + timedelta(seconds=int(kept))

    @property
    def letters(self) -> int:
        return self.queue.waiting + self.in_flight


def quarantines(account: Account, now: datetime) -> Iterator[Quarantine]:
    """In order of their sources' names. Raises FactsUnavailable."""
    there = set(_names(account))
    for each in managed_queues(account):
        arn = arn_for(each.queue_arn)
        if parts_of(arn).name not in there:
            continue
        try:
            found = attributes_of(account.clients, arn)
        except QueueGone:
            continue
        queue = Queue(arn, queue_url(account.clients, arn), found)
        yield Quarantine(queue, each.queue_arn, _oldest_at(account, queue, now))


def quarantine_named(account: Account, named: str) -> Queue:
    """The quarantine of a queue, or the queue itself where that is one; Stopped where none is."""
    arn = queue_arn_of(account, named)
    arn = arn if is_quarantine(parts_of(arn).name) else arn_for(arn)
    try:
        return queue_of(account, arn)
    except Stopped as stopped:
        if stopped.code is not Exit.NOT_FOUND:
            raise
        raise Stopped(_none(account, named, arn), Exit.NOT_FOUND) from stopped


def _none(account: Account, named: str, quarantine_arn: str) -> str:
    """Why a queue has none: it is none itself, or nothing came back yet."""
    name, said = parts_of(quarantine_arn).name, named[:120]
    source_arn = queue_arn_of(account, named)
    if source_arn == quarantine_arn:
        return f"there is no queue {name}: `mendq quarantine list` shows those that there are"
    try:
        attributes_of(account.clients, source_arn)
    except QueueGone:
        shows = "`mendq quarantine list` shows the quarantines that there are"
        return f"there is no queue {said}, and no {name}: {shows}"
    return f"{said} has no quarantine: there is no {name} until a letter comes back"


def route_out_of(account: Account, named: str) -> Route:
    """From a quarantine to its source. Stopped where either is gone, or may not be moved out of.

    So it is while Mendq sends back the source's dead letters: one that died again after it was
    returned would be taken for one of these.
    """
    letters = quarantine_named(account, named)
    arn = queue_arn_of(account, named)
    source = movable(account, _source_of(arn) if arn == letters.arn else arn)
    require_last(letters)
    redrive = redrive_of(source.attributes.get("RedrivePolicy", ""))
    dead_letter_arn = arn_of(redrive.dead_letter_arn) if redrive else None
    if dead_letter_arn is not None:
        require_idle(account, dead_letter_arn)
    return Route(movable(account, letters.arn), source, dead_letter_arn=dead_letter_arn or "")


def _source_of(quarantine_arn: str) -> str:
    """By the name; of one that had to be cut the source is to be named instead."""
    arn = parts_of(quarantine_arn)
    ending = FIFO if arn.name.endswith(FIFO) else ""
    base = arn.name.removesuffix(FIFO).removesuffix(SUFFIX)
    source_arn = arn_of_name(f"{base}{ending}", arn.region, arn.account)
    if source_arn is None or arn_for(source_arn) != quarantine_arn:
        raise Stopped(f"{arn.name} does not tell its source: name the source", Exit.USAGE)
    return source_arn


def _names(account: Account) -> Iterator[str]:
    with looking("the queues of the account"):
        pages = account.clients.sqs.get_paginator("list_queues").paginate(
            PaginationConfig={"PageSize": 1_000}
        )
        for page in pages:
            yield from (url.rpartition("/")[2] for url in page.get("QueueUrls", []))


def _oldest_at(account: Account, queue: Queue, now: datetime) -> datetime | None:
    with looking(f"the oldest letter of {queue.name}"):
        answer = account.clients.cloudwatch.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": queue.name}],
            StartTime=now - _LOOKS_BACK,
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )
    found = sorted(answer.get("Datapoints", []), key=lambda each: each["Timestamp"])
    if not found or not queue.waiting:
        return None
    newest = found[-1]
    return newest["Timestamp"].astimezone(UTC) - timedelta(seconds=newest["Maximum"])
