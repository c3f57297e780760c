"""DLQs and quarantines: whose they are, what they are made with, and why one is unfit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mendq.model.facts import Facts, function_name, is_aws_managed, is_of_another_account
from mendq.model.limits import Consent, Mode
from mendq.model.policy import statements_of
from mendq.model.queue import (
    LONGEST_RETENTION_SECONDS,
    QUARANTINE_SUFFIX,
    RedriveAllow,
    arn_with_suffix,
    parse_redrive_allow_policy,
    parts_of,
)
from mendq.model.steps import SetMaximumMessageSize


def select_confirmed_sources(
    named_by: Iterable[str],
    dlq: Facts,
    consent: Consent,
    tags_of: Callable[[str], Mapping[str, str]],
) -> tuple[str, ...]:
    """Those of the queues that name `dlq` as their DLQ that are believed: any may name any other.

    Believed is whom the DLQ's own RedriveAllowPolicy names, or what is managed itself: because
    settings name it, or by its own tag, as far as tags may raise a queue. Anybody may make a queue
    and tag it, so a tag says nothing of a queue in a higher mode than that, nor of one whose
    policy names others or nobody. Whose tags say nothing is not asked for them.
    """
    allowed = parse_redrive_allow_policy(dlq.attributes.get("RedriveAllowPolicy", ""))
    mode = consent.mode_of(dlq.name, dlq.tags) or Mode.OBSERVE
    is_open = allowed is None or allowed.permission == "allowAll"
    tags_say = is_open and consent.tag_may_raise_to >= mode

    def is_managed(arn: str) -> bool:
        name = parts_of(arn).name
        is_vouched_for = tags_say or consent.mode_of(name, {}) is not None
        return is_vouched_for and consent.mode_of(name, tags_of(arn)) is not None

    by_queue = allowed.sources if allowed and allowed.permission == "byQueue" else ()
    return tuple(each for each in named_by if each in by_queue or is_managed(each))


def retention_and_encryption(source: Facts) -> dict[str, str]:
    """Messages are kept for 14 days and encrypted as the source's are.

    Without a key SQS encrypts a new queue with its own.
    """
    attributes = {"MessageRetentionPeriod": str(LONGEST_RETENTION_SECONDS)}
    if source.kms_key is not None:
        return attributes | {"KmsMasterKeyId": source.kms_key}
    return attributes | {"SqsManagedSseEnabled": "true"}


def attributes_of_dlq(source: Facts, dlq_arn: str) -> dict[str, str]:
    """What a DLQ is made with for this source.

    One that is made anew under a name that others may hold as well stays open to them.
    """
    attributes = retention_and_encryption(source)
    if source.is_fifo:
        by_content = source.attributes.get("ContentBasedDeduplication", "false")
        attributes |= {"FifoQueue": "true", "ContentBasedDeduplication": by_content}
    if source.dlq_arn != dlq_arn:
        allowed = RedriveAllow("byQueue", (source.queue_arn,))
        attributes["RedriveAllowPolicy"] = allowed.text
    return attributes


LONGEST_BYTES = SetMaximumMessageSize.maximum


def arn_of_quarantine(source_arn: str) -> str:
    """The ARN of the quarantine of a queue; raises ValueError where `source_arn` is none."""
    return arn_with_suffix(source_arn, QUARANTINE_SUFFIX)


def attributes_of_quarantine(source: Facts) -> dict[str, str]:
    """What the quarantine of this source is made with."""
    attributes = retention_and_encryption(source)
    return attributes | {"FifoQueue": "true"} if source.is_fifo else attributes


def why_unfit_as_quarantine(
    source: Facts, attributes: Mapping[str, str], readers: Sequence[str] = ()
) -> str | None:
    """Why a queue that is there under the name keeps no messages safe; None where it does.

    `readers` are the Lambda functions that consume it.
    """
    return next(_faults_of_quarantine(source, attributes, readers), None)


def _faults_of_quarantine(
    source: Facts, attributes: Mapping[str, str], readers: Sequence[str]
) -> Iterator[str]:
    if attributes.get("RedrivePolicy"):
        yield "it has a RedrivePolicy: its messages would leave it by being read"
    if readers:
        yield f"{function_name(readers[0])} consumes it: its messages would be handled unasked"
    yield from _others_let_in(parts_of(source.queue_arn).account, attributes.get("Policy", ""))
    if encrypted := _encrypted_otherwise(source, attributes):
        yield encrypted
    if int(attributes.get("MessageRetentionPeriod", "0")) < LONGEST_RETENTION_SECONDS:
        yield f"it keeps messages for less than {LONGEST_RETENTION_SECONDS} seconds"
    if int(attributes.get("MaximumMessageSize", LONGEST_BYTES)) < LONGEST_BYTES:
        yield f"it takes no messages of {LONGEST_BYTES} bytes, as there may be with their mark"
    if int(attributes.get("DelaySeconds", "0")):
        yield "it has a DelaySeconds: whoever looks after messages would not see them"


def _others_let_in(account: str, policy: str) -> Iterator[str]:
    """Under whatever condition: people of the account look after it, and Mendq sends to it."""
    statements = statements_of(policy)
    if statements is None:
        yield "its policy cannot be read, so it may let everybody in"
    for each in (one for one in statements or () if one.allows):
        if each.is_for_everybody or "Principal" in each.excepting:
            yield "its policy lets everybody in"
        for kind, named in each.principals.items():
            for principal in named:
                if kind != "AWS" or not _is_of(principal, account):
                    yield f"its policy lets in {principal}, which is not of this account"


def _is_of(principal: str, account: str) -> bool:
    """An account, or a role, user or session of it."""
    parts = principal.split(":")
    return principal == account or (len(parts) == 6 and parts[4] == account)


def _encrypted_otherwise(source: Facts, attributes: Mapping[str, str]) -> str | None:
    """Any key of the account does, but for one that AWS manages beside a key of the owner's."""
    key, of_source = attributes.get("KmsMasterKeyId", ""), source.kms_key or ""
    if is_of_another_account(source, key) and key != of_source:
        return f"its messages are encrypted with another account's key, {key}"
    is_owners = bool(of_source) and not is_aws_managed(of_source)
    if key and is_aws_managed(key) and is_owners:
        return "its messages are encrypted with the key that AWS manages, the source's with its own"
    if key or (not of_source and attributes.get("SqsManagedSseEnabled") == "true"):
        return None
    return "its messages are not encrypted as the source's are"
