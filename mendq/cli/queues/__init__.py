"""Queues of the account: one that the operator names, and those that Mendq manages."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mendq.aws import queue as aws
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.facts import Facts
from mendq.model.queue import arn_of_name, arn_of_url, parse_queue_arn, queue_arn_or_none


def make_queue_argument(help_text_beginning: str = "Its") -> Any:
    """Return the command-line argument QUEUE, for the signature of a command.

    Its help text begins with `help_text_beginning`, for example `The DLQ or its source:`.
    """
    return typer.Argument(metavar="QUEUE", help=f"{help_text_beginning} name, URL or ARN.")


QueueName = Annotated[str, make_queue_argument()]


def resolve_queue_arn(account: Account, given_queue: str) -> str:
    """Return the ARN of a queue that is given by name, URL or ARN. The queue need not exist.

    Raises CommandError if the text is none of these, or if it names another account or region.
    """
    region = account.region
    account_id = account.account_id
    arn = (
        queue_arn_or_none(given_queue)
        or arn_of_url(given_queue, region)
        or arn_of_name(given_queue, region, account_id)
    )
    if arn is None:
        problem = f"{given_queue[:120]!r} is not a queue's name, URL or ARN"
        raise CommandError(problem, Exit.USAGE)
    if parse_queue_arn(arn)[1:3] != (region, account_id):
        problem = f"{arn} is not in {account_id} {region}: give its --profile and --region"
        raise CommandError(problem, Exit.NOT_FOUND)
    return arn


def find_queue(account: Account, arn: str) -> Facts | None:
    """Return the facts about a queue, without its tags. None if there is no such queue.

    Raises FactsUnavailable or QueueRefusesUs if the queue cannot be read.
    """
    attributes = aws.read_attributes_if_queue_exists(account.clients, arn)
    return Facts(arn, attributes, {}) if attributes else None


def require_queue(account: Account, arn: str) -> Facts:
    """Return the facts about a queue, without its tags.

    Raises CommandError if there is no such queue, and the errors of `find_queue`.
    """
    if facts := find_queue(account, arn):
        return facts
    raise CommandError(f"there is no queue {arn}", Exit.NOT_FOUND)


def read_managed_queues(account: Account) -> tuple[ManagedQueue, ...]:
    """Return the queues that Mendq manages, sorted by name.

    Raises FactsUnavailable if AWS cannot be read.
    """
    return aws.list_managed_queues(account.clients, account.account_id, account.settings.consent)
