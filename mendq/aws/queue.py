"""Read, list and create queues."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import (
    FactsUnavailable,
    QueueGone,
    QueueRefusesUs,
    error_code_of,
    is_transient_error,
    translate_aws_errors,
    translate_queue_errors,
)
from mendq.aws.service_clock import read_service_time
from mendq.model.consent import Consent
from mendq.model.failed_call import make_canonical_error_code
from mendq.model.mode import Mode
from mendq.model.plan import AWS_REFUSED, Escalate, Refusal, Retry
from mendq.model.queue import arn_of_name, parse_queue_arn, queue_arn_or_none
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG


def queue_url(clients: Clients, queue_arn: str) -> str:
    """Return the queue's URL at Mendq's own endpoint. A URL from an event is never used."""
    queue = parse_queue_arn(queue_arn)
    return f"{clients.sqs.meta.endpoint_url}/{queue.account}/{queue.name}"


def read_queue_tags(clients: Clients, queue_arn: str) -> Mapping[str, str] | None:
    """Return the queue's tags; None if there is no such queue.

    Raise FactsUnavailable, or QueueRefusesUs if the queue's policy denies access.
    """
    with suppress(QueueGone), translate_queue_errors("tags of", queue_arn):
        response = clients.sqs.list_queue_tags(QueueUrl=queue_url(clients, queue_arn))
        return response.get("Tags", {})
    return None


def read_tags_if_allowed(clients: Clients, queue_arn: str) -> Mapping[str, str]:
    """Return the queue's tags; empty if the queue was deleted or its policy denies access.

    Raise FactsUnavailable.
    """
    with suppress(QueueRefusesUs):
        return read_queue_tags(clients, queue_arn) or {}
    return {}


def read_queue_attributes(clients: Clients, queue_arn: str) -> Mapping[str, str]:
    """Return the queue's attributes as SQS spells them.

    Raise QueueGone if there is no such queue, QueueRefusesUs if the queue's policy denies access,
    or FactsUnavailable after any other error of SQS.
    """
    url = queue_url(clients, queue_arn)
    with translate_queue_errors("attributes of", queue_arn):
        response = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return {str(name): value for name, value in response.get("Attributes", {}).items()}


def read_sqs_time(clients: Clients, queue_arn: str) -> datetime | None:
    """Return SQS's time, rounded down to the second; None if SQS's answer has no time.

    The answer is that to a read of one attribute of the queue. Raise FactsUnavailable, or
    QueueRefusesUs if the queue's policy denies access.
    """
    with translate_queue_errors("attributes of", queue_arn):
        response = clients.sqs.get_queue_attributes(
            QueueUrl=queue_url(clients, queue_arn), AttributeNames=["QueueArn"]
        )
    return read_service_time(response)


def read_attributes_if_queue_exists(clients: Clients, queue_arn: str) -> Mapping[str, str]:
    """Return the queue's attributes; empty if there is no such queue.

    Raise FactsUnavailable, or QueueRefusesUs if the queue's policy denies access.
    """
    with suppress(QueueGone):
        return read_queue_attributes(clients, queue_arn)
    return {}


@dataclass(frozen=True, order=True)
class ManagedQueue:
    """A queue that Mendq manages. Its tags and mode come from a list and may be slightly old."""

    queue_arn: str
    tags: Mapping[str, str] = field(compare=False)
    mode: Mode = field(default=Mode.OBSERVE, compare=False)

    @property
    def name(self) -> str:
        """The queue's name."""
        return parse_queue_arn(self.queue_arn).name


@lru_cache(maxsize=1)
def list_managed_arns_cached(
    clients: Clients, account: str, consent: Consent, _cache_period: object
) -> frozenset[str]:
    """Return the ARNs of the managed queues, from a cache.

    The queues are listed again only if an argument differs from the last call. The caller changes
    `_cache_period` from time to time, so a warm Lambda lists the queues rarely, even during a flood
    of events. Raise FactsUnavailable if some queues cannot be listed; the error is not cached.
    """
    queues = list_managed_queues(clients, account, consent)
    return frozenset(queue.queue_arn for queue in queues)


class QueueListing(Struct, frozen=True):
    """The managed queues that could be listed, and the errors for those that could not.

    Attributes:
        queues: The managed queues, in order of their names.
        error_by_pattern: The error for each name or prefix of the settings whose queues could not
            be listed.
        arns_tagged_off: The ARNs of listed queues whose `mendq` tag is `off`.
    """

    queues: tuple[ManagedQueue, ...]
    error_by_pattern: Mapping[str, FactsUnavailable]
    arns_tagged_off: tuple[str, ...] = ()


def list_managed_queues(
    clients: Clients, account: str, consent: Consent
) -> tuple[ManagedQueue, ...]:
    """Return all managed queues, in order of their names.

    Raise FactsUnavailable if some queues cannot be listed.
    """
    queue_listing = list_readable_queues(clients, account, consent)
    for error in queue_listing.error_by_pattern.values():
        raise error
    return queue_listing.queues


def list_readable_queues(clients: Clients, account: str, consent: Consent) -> QueueListing:
    """Return the managed queues that can be listed, and the errors of the others.

    Raise FactsUnavailable if the tagged queues cannot be listed, or if a name or prefix cannot be
    listed and no managed queue is found.
    """
    with translate_aws_errors("the managed queues"):
        tags_by_tagged_arn = _list_tagged_queues(clients, consent)
    queue_names = set[str]()
    error_by_pattern = dict[str, FactsUnavailable]()
    for pattern in consent.queues:
        try:
            with translate_aws_errors(f"the queues named {pattern}"):
                queue_names.update(list_queue_names(clients, pattern))
        except FactsUnavailable as error:
            error_by_pattern[pattern] = error
    named_queue_arns = (arn_of_name(name, clients.region, account) for name in queue_names)
    tags_by_arn = {**{arn: {} for arn in named_queue_arns if arn is not None}, **tags_by_tagged_arn}
    mode_by_arn = {
        arn: consent.mode_of(parse_queue_arn(arn).name, tags) for arn, tags in tags_by_arn.items()
    }
    managed_arns_and_modes = sorted(
        (arn, mode) for arn, mode in mode_by_arn.items() if mode is not None
    )
    queues = tuple(
        ManagedQueue(arn, tags_by_arn[arn], mode) for arn, mode in managed_arns_and_modes
    )
    if error_by_pattern and not queues:
        raise next(iter(error_by_pattern.values()))
    arns_tagged_off = sorted(
        arn for arn, tags in tags_by_arn.items() if tags.get(MODE_TAG) == MODE_OFF_VALUE
    )
    return QueueListing(queues, error_by_pattern, tuple(arns_tagged_off))


def _list_tagged_queues(clients: Clients, consent: Consent) -> dict[str, dict[str, str]]:
    """Return the tags of all queues with a mode tag, by queue ARN.

    If the settings name queues, return the tags of all queues with any tag, because a named queue
    needs no mode tag.
    """
    tag_filters: Any = [] if consent.queues else [{"Key": MODE_TAG}]
    pages = clients.tagging.get_paginator("get_resources").paginate(
        ResourceTypeFilters=["sqs"], TagFilters=tag_filters
    )
    return {
        arn: {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
        for page in pages
        for resource in page["ResourceTagMappingList"]
        if (arn := queue_arn_or_none(resource["ResourceARN"])) is not None
    }


def list_queue_names(clients: Clients, pattern: str = "*") -> Iterator[str]:
    """Yield the names of existing queues that match `pattern`.

    `pattern` is a queue's name, or a prefix that ends with `*`. Raise ClientError or BotoCoreError.
    """
    prefix = pattern.removesuffix("*")
    prefix_argument: Any = {"QueueNamePrefix": prefix} if prefix else {}
    # Without a page size, SQS lists no more than a thousand queues.
    pagination_argument: Any = {"PaginationConfig": {"PageSize": 1000}}
    pages = clients.sqs.get_paginator("list_queues").paginate(
        **prefix_argument, **pagination_argument
    )
    queue_names = (url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", []))
    return (name for name in queue_names if name == pattern or pattern.endswith("*"))


# "You must wait at least one second after the queue is created to be able to use the queue."
SECONDS_UNTIL_NEW_QUEUE_USABLE = 1
NEW_QUEUE_READ_ATTEMPTS = 3


def make_queue(
    clients: Clients, queue_arn: str, attributes: Mapping[str, str]
) -> Mapping[str, str] | Refusal:
    """Create a queue and return its attributes.

    An existing queue with the same attributes counts as created. CreateQueue does not compare
    policies, so such a queue may have a policy of its own.

    Returns:
        The queue's attributes; a refusal if SQS does not create it, or it cannot be used yet.

    Raises:
        ClientError, BotoCoreError: The queue could not be created. A retry may help.
        FactsUnavailable: The queue could not be read.
        QueueRefusesUs: The policy of an existing queue denies access.
    """
    queue_name = parse_queue_arn(queue_arn).name
    attribute_argument = cast("Any", attributes)
    try:
        clients.sqs_for_writing.create_queue(QueueName=queue_name, Attributes=attribute_argument)
    except (ClientError, BotoCoreError) as error:
        return _explain_failed_creation(queue_arn, error)
    for attempt in range(NEW_QUEUE_READ_ATTEMPTS):
        if attempt:
            time.sleep(SECONDS_UNTIL_NEW_QUEUE_USABLE)
        with suppress(QueueGone):
            return read_queue_attributes(clients, queue_arn)
    return Retry("not_usable_yet", f"{queue_arn} was made and cannot be used yet")


def refuse_taken_queue_name(queue_arn: str, reason: str) -> Refusal:
    """Return the refusal if Mendq must create a queue, but an unfit queue already has its name.

    `reason` says why the existing queue is unfit.
    """
    return Escalate("name_taken", f"there is another queue {queue_arn} already: {reason}")


def _explain_failed_creation(queue_arn: str, error: ClientError | BotoCoreError) -> Refusal:
    """Return the refusal for an error of CreateQueue. Raise the error if a retry may help."""
    error_code = (
        make_canonical_error_code(error_code_of(error)) if isinstance(error, ClientError) else ""
    )
    if error_code == "QueueDeletedRecently":
        reason = f"{queue_arn} was deleted within the last minute; SQS makes it anew after that"
        return Retry("deleted_recently", reason)
    if error_code == "QueueAlreadyExists":
        return refuse_taken_queue_name(
            queue_arn, "its attributes are not those of one that is made for this queue"
        )
    if is_transient_error(error):
        raise error
    return Escalate(AWS_REFUSED, f"AWS refused to make it: {error}")
