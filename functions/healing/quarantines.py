"""The queue that keeps letters which came back: named after the source, never read by itself.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functions.healing.companions import (
    FIFO,
    LONGEST_RETENTION_SECONDS,
    arn_beside,
    keeping_attributes,
    name_beside,
)
from functions.healing.encryption_keys import is_aws_managed, is_of_another_account
from functions.healing.facts import Facts, function_name
from functions.healing.policies import statements_of
from functions.healing.queue_names import parts_of
from functions.healing.steps import SetMaximumMessageSize

SUFFIX = "-quarantine"
LONGEST_BYTES = SetMaximumMessageSize.maximum


def name_for(source_name: str) -> str:
    """The name of the quarantine of a queue."""
    return name_beside(source_name, SUFFIX)


def arn_for(source_arn: str) -> str:
    """The ARN that goes with it; raises ValueError where `source_arn` is none."""
    return arn_beside(source_arn, SUFFIX)


def is_quarantine(queue_name: str) -> bool:
    """By its name; whose it is, its letters' marks say."""
    return queue_name.removesuffix(FIFO).endswith(SUFFIX)


def attributes_of_new(source: Facts) -> dict[str, str]:
    """What the quarantine of this source is made with."""
    attributes = keeping_attributes(source)
    return attributes | {"FifoQueue": "true"} if source.is_fifo else attributes


def unfit(source: Facts, attributes: Mapping[str, str], readers: Sequence[str] = ()) -> str | None:
    """Why a queue that is there under the name keeps no letters safe; None where it does.

    `readers` are the Lambda functions that consume it.
    """
    if attributes.get("RedrivePolicy"):
        return "it has a RedrivePolicy: its letters would leave it by being read"
    if readers:
        return f"{function_name(readers[0])} consumes it: its letters would be handled unasked"
    return (
        _lets_others_in(source, attributes.get("Policy", ""))
        or _encrypted_otherwise(source, attributes)
        or _keeps_otherwise(attributes)
    )


def _lets_others_in(source: Facts, policy: str) -> str | None:
    """Under whatever condition: people of the account look after it, and Mendq sends to it."""
    statements = statements_of(policy)
    if statements is None:
        return "its policy cannot be read, so it may let everybody in"
    account = parts_of(source.queue_arn).account
    for each in (one for one in statements if one.allows):
        if each.is_for_everybody or "Principal" in each.excepting:
            return "its policy lets everybody in"
        for kind, named in each.principals.items():
            for principal in named:
                if kind != "AWS" or not _is_of(principal, account):
                    return f"its policy lets in {principal}, which is not of this account"
    return None


def _is_of(principal: str, account: str) -> bool:
    """An account, or a role, user or session of it."""
    parts = principal.split(":")
    return principal == account or (len(parts) == 6 and parts[4] == account)


def _encrypted_otherwise(source: Facts, attributes: Mapping[str, str]) -> str | None:
    """Any key of the account does, but for one that AWS manages beside a key of the owner's."""
    key, of_source = attributes.get("KmsMasterKeyId", ""), source.kms_key or ""
    if is_of_another_account(source, key) and key != of_source:
        return f"its letters are encrypted with another account's key, {key}"
    is_owners = bool(of_source) and not is_aws_managed(of_source)
    if key and is_aws_managed(key) and is_owners:
        return "its letters are encrypted with the key that AWS manages, the source's with its own"
    if key or (not of_source and attributes.get("SqsManagedSseEnabled") == "true"):
        return None
    return "its letters are not encrypted as the source's are"


def _keeps_otherwise(attributes: Mapping[str, str]) -> str | None:
    if int(attributes.get("MessageRetentionPeriod", "0")) < LONGEST_RETENTION_SECONDS:
        return f"it keeps letters for less than {LONGEST_RETENTION_SECONDS} seconds"
    if int(attributes.get("MaximumMessageSize", LONGEST_BYTES)) < LONGEST_BYTES:
        return f"it takes no letters of {LONGEST_BYTES} bytes, as there may be with their mark"
    if int(attributes.get("DelaySeconds", "0")):
        return "it has a DelaySeconds: whoever looks after letters would not see them"
    return None
