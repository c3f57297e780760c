"""Who calls, which calls carry messages, and the permissions that they take.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from functions.healing.queue_names import parts_of

_WITH_BATCHES = ("ChangeMessageVisibility", "DeleteMessage", "SendMessage")
# A batch takes the permission of the single call.
_GRANTED_BY = {
    "ReceiveMessage": "ReceiveMessage",
    **{each: each for each in _WITH_BATCHES},
    **{f"{each}Batch": each for each in _WITH_BATCHES},
}
MESSAGE_TRAFFIC = frozenset(_GRANTED_BY)
_NAMED_AT_MOST = 3
_NAME_AT_MOST = 96
IDENTITY = re.compile(
    r"arn:aws[a-z-]{0,16}:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9+=,.@_/-]{1,180}"
)


def granted_by(event_names: Iterable[str]) -> tuple[str, ...]:
    """The IAM actions that allow these calls; calls that carry no messages are left out."""
    actions = {_GRANTED_BY[each] for each in event_names if each in _GRANTED_BY}
    return tuple(sorted(f"sqs:{each}" for each in actions))


def sends(event_names: Iterable[str]) -> bool:
    return any(_GRANTED_BY.get(each) == "SendMessage" for each in event_names)


def receives(event_names: Iterable[str]) -> bool:
    return any(_GRANTED_BY.get(each) == "ReceiveMessage" for each in event_names)


def named(principals: Collection[str]) -> str:
    """A few of them and how many more; who they are is CloudTrail's word."""
    if not principals:
        return "a caller that CloudTrail does not name"
    more = len(principals) - _NAMED_AT_MOST
    first = ", ".join(_shortened(each) for each in list(principals)[:_NAMED_AT_MOST])
    return f"{first} and {more} more" if more > 0 else first


def _shortened(principal: str) -> str:
    """A path may be 512 characters long, and what is said after it must still be read."""
    if len(principal) <= _NAME_AT_MOST:
        return principal
    end = _NAME_AT_MOST // 2
    return f"{principal[: _NAME_AT_MOST - end - 3]}...{principal[-end:]}"


def is_role(principal: str) -> bool:
    """Whether it is the ARN of a role of IAM, and not of a session of one."""
    return IDENTITY.fullmatch(principal) is not None and ":role/" in principal


def first_identity(principals: Iterable[str]) -> str | None:
    """The first that is a role or a user of IAM; services and federated callers are not."""
    return next((each for each in principals if IDENTITY.fullmatch(each)), None)


def are_strangers_to(account: str, principals: Iterable[str]) -> bool:
    """Whether one of them is a role or a user of another account."""
    identities = (each for each in principals if IDENTITY.fullmatch(each))
    return any(each.split(":")[4] != account for each in identities)


def who_called(event_name: str, queue_arn: str) -> str:
    """The command that shows who used a management API on the queue, and when; 90 days back."""
    queue = parts_of(queue_arn)
    return (
        f"aws cloudtrail lookup-events --region {queue.region} "
        f"--lookup-attributes AttributeKey=EventName,AttributeValue={event_name} "
        f"--query \"Events[?contains(CloudTrailEvent, '/{queue.account}/{queue.name}\\\"')]"
        '.[EventTime,Username]"'
    )
