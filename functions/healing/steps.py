"""The changes Mendq can make, as frozen data: IAM action, bounds and inverse beside each other.

A fix is one SetQueueAttributes on one queue: all of its steps land together, or none.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Self


class Owner(StrEnum):
    """The Lambda that takes a step; each has a role of its own, named as it is."""

    HEAL = "heal"
    ATTACH_DEAD_LETTERS = "attach_dead_letters"
    RESTORE_POLICY = "restore_policy"
    REDRIVE = "redrive"


@dataclass(frozen=True)
class AttributeStep:
    """One queue attribute from one value to another.

    What `is_kept` is never taken back. What `leaves_a_value` can be found overruled; what does not
    stands nowhere. `most_a_day` bounds how often it is taken, where the account's limit is wider.
    """

    before: int | str
    after: int | str

    attribute: ClassVar[str]
    iam_action: ClassVar[str] = "sqs:SetQueueAttributes"
    owner: ClassVar[Owner] = Owner.HEAL
    absent_means: ClassVar[str | None] = None
    is_kept: ClassVar[bool] = False
    leaves_a_value: ClassVar[bool] = True
    most_a_day: ClassVar[int | None] = None

    @classmethod
    def of(cls, before: str, after: str) -> Self:
        """The step between two values as SQS spells them; ValueError where one is none."""
        return cls(before, after)

    def inverse(self) -> Self:
        """The step that undoes this one."""
        return replace(self, before=self.after, after=self.before)

    def out_of_bounds(self) -> str | None:
        """Why a fix may not go there."""
        raise NotImplementedError

    @classmethod
    def standing_in(cls, attributes: Mapping[str, str]) -> str | None:
        """What stands there now, as SQS spells it; a value left out means its default."""
        return attributes.get(cls.attribute, cls.absent_means)

    def document(self) -> dict[str, str]:
        """As transitions and the ledger hold it."""
        return {
            "attribute": self.attribute,
            "before": str(self.before),
            "after": str(self.after),
        }

    def __str__(self) -> str:
        return f"{self.attribute} {self.before} -> {self.after}"


@dataclass(frozen=True)
class NumberStep(AttributeStep):
    """A whole number, which a fix only ever raises."""

    before: int
    after: int

    minimum: ClassVar[int]
    maximum: ClassVar[int]

    @classmethod
    def of(cls, before: str, after: str) -> Self:
        return cls(int(before), int(after))

    def out_of_bounds(self) -> str | None:
        if not self.minimum <= self.after <= self.maximum:
            return f"{self.attribute} must be {self.minimum} to {self.maximum}, not {self.after}"
        if self.after <= self.before:
            return f"{self.attribute} would not rise: {self.before} to {self.after}"
        return None


@dataclass(frozen=True)
class WordStep(AttributeStep):
    """From the one word that SQS starts with to the one that a fix may set."""

    before: str
    after: str

    shipped: ClassVar[str]
    wanted: ClassVar[str]

    def out_of_bounds(self) -> str | None:
        if (self.before, self.after) != (self.shipped, self.wanted):
            return f"{self.attribute} may go from {self.shipped} to {self.wanted} alone"
        return None


class SetVisibilityTimeout(NumberStep):
    """The lease, in seconds."""

    attribute = "VisibilityTimeout"
    minimum = 0
    maximum = 43_200


class SetKmsDataKeyReusePeriod(NumberStep):
    """How long SQS uses a data key before it asks KMS again, in seconds.

    SQS takes up to a day; an hour is our bound, because a revoked key is used that much longer.
    """

    attribute = "KmsDataKeyReusePeriodSeconds"
    absent_means = "300"
    minimum = 60
    maximum = 3_600


class SetMaximumMessageSize(NumberStep):
    """The longest message that the queue takes, in bytes."""

    attribute = "MaximumMessageSize"
    minimum = 1_024
    maximum = 1_048_576


class SetMessageRetention(NumberStep):
    """How long a message is kept, in seconds. Lowered, it deletes: nothing puts it back.

    It takes up to 15 minutes to arrive.
    """

    attribute = "MessageRetentionPeriod"
    minimum = 60
    maximum = 1_209_600


class SetReceiveWaitTime(NumberStep):
    """How long a receive waits for a message, in seconds."""

    attribute = "ReceiveMessageWaitTimeSeconds"
    minimum = 0
    maximum = 20


class DeduplicateByContent(WordStep):
    """Lets SQS take a digest of the body where the sender gives no deduplication id."""

    attribute = "ContentBasedDeduplication"
    absent_means = shipped = "false"
    wanted = "true"


class DeduplicateByGroup(WordStep):
    """Half of high throughput; SQS refuses the other half without it."""

    attribute = "DeduplicationScope"
    absent_means = shipped = "queue"
    wanted = "messageGroup"


class LimitThroughputByGroup(WordStep):
    """The other half."""

    attribute = "FifoThroughputLimit"
    absent_means = shipped = "perQueue"
    wanted = "perMessageGroupId"


# The failing call that the pulse makes on its own queue.
PULSE_ACTION = "sqs:SendMessage"


def write_actions(
    steps: Iterable[type[AttributeStep]], owner: Owner | None = None
) -> frozenset[str]:
    """The IAM actions that taking these steps takes; those of one `owner`, or all."""
    return frozenset(step.iam_action for step in steps if owner in (None, step.owner))
