"""Steps: the changes Mendq can make, each with its IAM action and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from mendq.model.queue import (
    FEWEST_RECEIVES,
    MOST_RECEIVES,
    MOST_SOURCES,
    arn_of,
    parse_redrive_allow_policy,
    parse_redrive_policy,
)


class Owner(StrEnum):
    """The Lambda that takes a step; each has a role of its own, named as it is."""

    HEAL = "heal"
    ATTACH_DLQ = "attach_dlq"
    RESTORE_POLICY = "restore_policy"
    REDRIVE = "redrive"


@dataclass(frozen=True)
class AttributeStep:
    """One queue attribute from one value to another.

    A step that `is_permanent` is never taken back. Only a step with `has_value_in_queue` can be
    found overruled. `most_a_day` bounds how often it is taken, where the account's limit is wider.
    """

    before: int | str
    after: int | str

    attribute: ClassVar[str]
    iam_action: ClassVar[str] = "sqs:SetQueueAttributes"
    owner: ClassVar[Owner] = Owner.HEAL
    absent_means: ClassVar[str | None] = None
    is_permanent: ClassVar[bool] = False
    has_value_in_queue: ClassVar[bool] = True
    most_a_day: ClassVar[int | None] = None

    @classmethod
    def of(cls, before: str, after: str) -> Self:
        """The step between two values as SQS spells them; ValueError where one is none."""
        return cls(before, after)

    def out_of_bounds(self) -> str | None:
        """Why a fix may not go there."""
        raise NotImplementedError

    @classmethod
    def value_in(cls, attributes: Mapping[str, str]) -> str | None:
        """What stands there now, as SQS spells it; a value left out means its default."""
        return attributes.get(cls.attribute, cls.absent_means)

    def document(self) -> dict[str, str]:
        """As transitions and the case store hold it."""
        return {"attribute": self.attribute, "before": str(self.before), "after": str(self.after)}

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
class TextStep(AttributeStep):
    """A text."""

    before: str
    after: str


class WordStep(TextStep):
    """From the one word that SQS starts with to the one that a fix may set."""

    shipped: ClassVar[str]
    wanted: ClassVar[str]

    def out_of_bounds(self) -> str | None:
        if (self.before, self.after) != (self.shipped, self.wanted):
            return f"{self.attribute} may go from {self.shipped} to {self.wanted} alone"
        return None


class SetVisibilityTimeout(NumberStep):
    """The visibility timeout, in seconds."""

    attribute = "VisibilityTimeout"
    minimum, maximum = 0, 43_200


class LowerVisibilityTimeout(SetVisibilityTimeout):
    """The same downwards, no further than where SQS begins: alone by a plan that says how far."""

    minimum = 30

    def out_of_bounds(self) -> str | None:
        if not self.minimum <= self.after < self.before:
            return f"{self.attribute} would not go down to {self.minimum} or more: {self.after}"
        return None


class SetKmsDataKeyReusePeriod(NumberStep):
    """How long SQS uses a data key before it asks KMS again, in seconds.

    SQS takes up to a day; an hour is our bound, because a revoked key is used that much longer.
    """

    attribute = "KmsDataKeyReusePeriodSeconds"
    absent_means = "300"
    minimum, maximum = 60, 3_600


class SetMaximumMessageSize(NumberStep):
    """The longest message that the queue takes, in bytes."""

    attribute = "MaximumMessageSize"
    minimum, maximum = 1_024, 1_048_576


class SetMessageRetention(NumberStep):
    """How long a message is kept, in seconds. Lowered, it deletes: nothing puts it back.

    It takes up to 15 minutes to arrive.
    """

    attribute = "MessageRetentionPeriod"
    minimum, maximum = 60, 1_209_600


class SetReceiveWaitTime(NumberStep):
    """How long a receive waits for a message, in seconds."""

    attribute = "ReceiveMessageWaitTimeSeconds"
    minimum, maximum = 0, 20


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


# The failing call that the probe makes on its own queue.
PROBE_ACTION = "sqs:SendMessage"


def write_actions(
    steps: Iterable[type[AttributeStep]], owner: Owner | None = None
) -> frozenset[str]:
    """The IAM actions that taking these steps takes; those of one `owner`, or all."""
    return frozenset(step.iam_action for step in steps if owner in (None, step.owner))


class RestorePolicy(TextStep):
    """The whole policy from one text to another, which a person has pinned.

    The texts are compared as they are: what only means the same is not what was approved.
    """

    attribute = "Policy"
    owner = Owner.RESTORE_POLICY
    absent_means = ""

    def out_of_bounds(self) -> str | None:
        if not self.after:
            return "a policy is never removed"
        if self.after == self.before:
            return "the policy is the pinned one already"
        return None

    def __str__(self) -> str:
        return f"{self.attribute} -> the pinned text of {len(self.after)} characters"


class DlqStep(TextStep):
    """Empty where nothing is set; compared as what it means, not as it is spelled."""

    owner = Owner.ATTACH_DLQ
    absent_means = ""

    @classmethod
    def value_in(cls, attributes: Mapping[str, str]) -> str:
        return cls.normalize(attributes.get(cls.attribute, ""))

    @classmethod
    def normalize(cls, text: str) -> str:
        """`text` in our spelling; as it is where it cannot be read."""
        return text


class CreateDlq(DlqStep):
    """A queue made under the ARN that `after` names. It is kept: nothing undoes this step.

    DeadLetterQueue is no attribute of SQS: whoever asks what stands there puts the ARN of the queue
    under this name into `attributes` where it exists. CreateQueue answers alike for a queue that
    exists with the same attributes, so the step may be taken twice.
    """

    attribute = "DeadLetterQueue"
    iam_action = "sqs:CreateQueue"
    is_permanent = True

    def out_of_bounds(self) -> str | None:
        if self.before:
            return f"{self.attribute} is there already: {self.before}"
        if arn_of(self.after) is None:
            return f"{self.attribute} cannot be made as {self.after[:120]!r}: that is no queue"
        return None


class AttachDlq(DlqStep):
    """From no RedrivePolicy to one; never from one to another.

    Whether the two queues fit is `dlq.unfit`, because a step does not know its queue.
    """

    attribute = "RedrivePolicy"

    @classmethod
    def normalize(cls, text: str) -> str:
        redrive = parse_redrive_policy(text)
        return text if redrive is None else redrive.text

    def out_of_bounds(self) -> str | None:
        redrive = parse_redrive_policy(self.after)
        if self.before or redrive is None or arn_of(redrive.dlq_arn) is None:
            return f"{self.attribute} may go from nothing to a queue alone"
        if redrive.text != self.after:
            return f"{self.attribute} would say more than a queue and a count"
        if not FEWEST_RECEIVES <= redrive.max_receive_count <= MOST_RECEIVES:
            return (
                f"maxReceiveCount must be {FEWEST_RECEIVES} to {MOST_RECEIVES}, "
                f"not {redrive.max_receive_count}"
            )
        return None


class AllowRedriveFrom(DlqStep):
    """More sources into a RedriveAllowPolicy that names its sources; it takes none out."""

    attribute = "RedriveAllowPolicy"

    @classmethod
    def normalize(cls, text: str) -> str:
        allowed = parse_redrive_allow_policy(text) if text else None
        return text if allowed is None else allowed.text

    def out_of_bounds(self) -> str | None:
        before, after = (
            parse_redrive_allow_policy(self.before),
            parse_redrive_allow_policy(self.after),
        )
        if before is None or after is None or after.text != self.after:
            return f"{self.attribute} cannot be read"
        if (before.permission, after.permission) != ("byQueue", "byQueue"):
            return f"{self.attribute} may go from byQueue to byQueue alone"
        added = set(after.sources) - set(before.sources)
        if not set(before.sources) < set(after.sources):
            return f"{self.attribute} may gain sources and lose none"
        if any(arn_of(each) is None for each in added):
            return f"{self.attribute} would name what is no queue"
        if len(after.sources) > MOST_SOURCES:
            return f"{self.attribute} takes at most {MOST_SOURCES} sources"
        return None


INTO_QUARANTINE = "sqs:SendMessage"
# What Dlq is before, and whatever was sent back meanwhile: no message waits for a value.
HELD = "held"


class RedriveMessages(TextStep):
    """From messages that are held to the ARN of the queue that they go back to.

    Dlq is no attribute of SQS, and nothing stands there afterwards: a course of many
    minutes carries it out, and what went back is not taken back.
    """

    attribute = "Dlq"
    iam_action = "sqs:SendMessage"
    owner = Owner.REDRIVE
    absent_means = HELD
    is_permanent = True
    has_value_in_queue = False
    most_a_day = 1

    def out_of_bounds(self) -> str | None:
        if self.before != HELD:
            return f"{self.attribute} can only go back while they are {HELD}"
        if arn_of(self.after) is None:
            return f"{self.attribute} cannot go back to {self.after[:120]!r}: that is no queue"
        return None


STEPS: tuple[type[AttributeStep], ...] = (
    SetVisibilityTimeout,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
    SetMessageRetention,
    SetReceiveWaitTime,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    CreateDlq,
    AttachDlq,
    AllowRedriveFrom,
    RestorePolicy,
    RedriveMessages,
)


def kind_of(attribute: str) -> type[AttributeStep] | None:
    """The step that writes an attribute; None for what an older Mendq alone knew."""
    return next((each for each in STEPS if each.attribute == attribute), None)


def is_permanent(attribute: str) -> bool:
    """Whether what was written under this name is never taken back."""
    kind = kind_of(attribute)
    return kind is not None and kind.is_permanent


def has_value_in_queue(attribute: str) -> bool:
    """Whether what was written under this name can be found there, or found overruled."""
    kind = kind_of(attribute)
    return kind is None or kind.has_value_in_queue
