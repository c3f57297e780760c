"""The queue that somebody names, and the queues that Mendq manages, by tag or by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mendq.aws import queue as aws
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.facts import Facts
from mendq.model.queue import arn_of, arn_of_name, arn_of_url, parts_of


def queue_argument(whose: str = "Its") -> Any:
    """How a command takes the name of a queue."""
    return typer.Argument(metavar="QUEUE", help=f"{whose} name, URL or ARN.")


QueueName = Annotated[str, queue_argument()]


def resolve_queue_arn(account: Account, named: str) -> str:
    """The ARN of a queue by its name, URL or ARN.

    Raises CommandError where that is none of this account.
    """
    region, account_id = account.region, account.account_id
    arn = arn_of(named) or arn_of_url(named, region) or arn_of_name(named, region, account_id)
    if arn is None:
        line = f"{named[:120]!r} is no queue's name, URL or ARN"
        raise CommandError(line, Exit.USAGE)
    if parts_of(arn)[1:3] != (region, account_id):
        line = f"{arn} is not in {account_id} {region}: give its --profile and --region"
        raise CommandError(line, Exit.NOT_FOUND)
    return arn


def find_queue(account: Account, arn: str) -> Facts | None:
    """Without its tags; None where there is none."""
    attributes = aws.attributes_if_there(account.clients, arn)
    return Facts(arn, attributes, {}) if attributes else None


def require_queue(account: Account, arn: str) -> Facts:
    """The same; CommandError where there is none."""
    if found := find_queue(account, arn):
        return found
    raise CommandError(f"there is no queue {arn}", Exit.NOT_FOUND)


def managed_queues(account: Account) -> tuple[ManagedQueue, ...]:
    """In order of their names; raises FactsUnavailable."""
    return aws.list_managed_queues(account.clients, account.account_id, account.settings.consent)
