"""Steps: the changes that Mendq can make, each with its IAM action and its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

from mendq.model.queue import (
    FEWEST_RECEIVES_BEFORE_DLQ,
    MOST_RECEIVES_BEFORE_DLQ,
    MOST_SOURCES_IN_ALLOW_POLICY,
    parse_redrive_allow_policy,
    parse_redrive_policy,
    queue_arn_or_none,
)
from mendq.model.queue_limits import RANGE_BY_ATTRIBUTE


class Owner(StrEnum):
    """The Lambda that makes the change of a step. Each of these Lambdas has its own IAM role."""

    HEAL = "heal"
    ATTACH_DLQ = "attach_dlq"
    RESTORE_POLICY = "restore_policy"
    REDRIVE = "redrive"


@dataclass(frozen=True)
class AttributeStep:
    """A change of one queue attribute from one value to another.

    Attributes:
        before: The attribute's value before the change.
        after: The attribute's value after the change.
        attribute: The attribute. `DeadLetterQueue` and `Dlq` are not SQS attributes: see
            `CreateDlq` and `RedriveMessages`.
        iam_action: The IAM action that the step needs.
        owner: The Lambda that makes the change.
        value_if_absent: The value that SQS uses if the queue does not have the attribute; None if
            every queue has the attribute.
        is_permanent: True if a rollback never undoes the step.
        has_value_in_queue: True if the written value can be read from the queue, so that Mendq sees
            if someone else replaces it.
        most_writes_per_day: How often Mendq may make the step in a day; None if only the account's
            limit applies.
    """

    before: int | str
    after: int | str

    attribute: ClassVar[str]
    iam_action: ClassVar[str] = "sqs:SetQueueAttributes"
    owner: ClassVar[Owner] = Owner.HEAL
    value_if_absent: ClassVar[str | None] = None
    is_permanent: ClassVar[bool] = False
    has_value_in_queue: ClassVar[bool] = True
    most_writes_per_day: ClassVar[int | None] = None

    @classmethod
    def of(cls, before: str, after: str) -> Self:
        """Return the step between two values in SQS's spelling.

        A `NumberStep` raises ValueError if a value is not an integer.
        """
        return cls(before, after)

    def find_bounds_fault(self) -> str | None:
        """Return why Mendq must not make this change; None if Mendq may make it.

        Every subclass for an attribute overrides this.
        """
        raise NotImplementedError

    @classmethod
    def value_in(cls, attributes: Mapping[str, str]) -> str | None:
        """Return the attribute's value in `attributes`, or `value_if_absent` if it is missing."""
        return attributes.get(cls.attribute, cls.value_if_absent)

    def document(self) -> dict[str, str]:
        """Return the step as a JSON object for a case's transition."""
        return {"attribute": self.attribute, "before": str(self.before), "after": str(self.after)}

    def __str__(self) -> str:
        return f"{self.attribute} {self.before} -> {self.after}"


@dataclass(frozen=True)
class NumberStep(AttributeStep):
    """A change of a number. Only `LowerVisibilityTimeout` lowers it; all others raise it."""

    before: int
    after: int

    minimum: ClassVar[int]
    maximum: ClassVar[int]

    @classmethod
    def of(cls, before: str, after: str) -> Self:
        return cls(int(before), int(after))

    def find_bounds_fault(self) -> str | None:
        if not self.minimum <= self.after <= self.maximum:
            return f"{self.attribute} must be {self.minimum} to {self.maximum}, not {self.after}"
        if self.after <= self.before:
            return f"{self.attribute} would not rise: {self.before} to {self.after}"
        return None


@dataclass(frozen=True)
class TextStep(AttributeStep):
    """A change of a text."""

    before: str
    after: str


class WordStep(TextStep):
    """A change of an attribute from SQS's default word to the only word that a fix may set."""

    default_word: ClassVar[str]
    fix_word: ClassVar[str]

    def find_bounds_fault(self) -> str | None:
        if (self.before, self.after) != (self.default_word, self.fix_word):
            return f"{self.attribute} may go from {self.default_word} to {self.fix_word} alone"
        return None


class SetVisibilityTimeout(NumberStep):
    """Raise the visibility timeout, in seconds."""

    attribute = "VisibilityTimeout"
    minimum = RANGE_BY_ATTRIBUTE[attribute].minimum
    maximum = RANGE_BY_ATTRIBUTE[attribute].maximum


class LowerVisibilityTimeout(SetVisibilityTimeout):
    """Lower the visibility timeout, in seconds, but not below SQS's default of 30.

    Only the symptom `visibility_timeout_too_long` plans this step.
    """

    minimum = 30

    def find_bounds_fault(self) -> str | None:
        if not self.minimum <= self.after < self.before:
            return f"{self.attribute} would not go down to {self.minimum} or more: {self.after}"
        return None


class SetKmsDataKeyReusePeriod(NumberStep):
    """Raise the time, in seconds, for which SQS uses a data key before it asks KMS again.

    SQS accepts up to a day. Mendq's limit is an hour, because SQS still uses the data key for this
    time after the KMS key was revoked.
    """

    attribute = "KmsDataKeyReusePeriodSeconds"
    value_if_absent = "300"
    minimum = RANGE_BY_ATTRIBUTE[attribute].minimum
    maximum = 3_600


class SetMaximumMessageSize(NumberStep):
    """Raise the largest size of a message that the queue accepts, in bytes."""

    attribute = "MaximumMessageSize"
    minimum = RANGE_BY_ATTRIBUTE[attribute].minimum
    maximum = RANGE_BY_ATTRIBUTE[attribute].maximum


class SetMessageRetention(NumberStep):
    """Raise the time, in seconds, for which SQS keeps messages.

    A fix never lowers this time, because SQS would delete messages. SQS takes up to 15 minutes to
    apply the change.
    """

    attribute = "MessageRetentionPeriod"
    minimum = RANGE_BY_ATTRIBUTE[attribute].minimum
    maximum = RANGE_BY_ATTRIBUTE[attribute].maximum


class SetReceiveWaitTime(NumberStep):
    """Raise the time, in seconds, for which a receive waits for a message."""

    attribute = "ReceiveMessageWaitTimeSeconds"
    minimum = RANGE_BY_ATTRIBUTE[attribute].minimum
    maximum = RANGE_BY_ATTRIBUTE[attribute].maximum


class DeduplicateByContent(WordStep):
    """Let SQS use a digest of the body as the deduplication id if the sender gives no id."""

    attribute = "ContentBasedDeduplication"
    value_if_absent = default_word = "false"
    fix_word = "true"


class DeduplicateByGroup(WordStep):
    """Deduplicate per message group, which SQS's high throughput mode requires.

    This step must come before `LimitThroughputByGroup`, which SQS refuses without it.
    """

    attribute = "DeduplicationScope"
    value_if_absent = default_word = "queue"
    fix_word = "messageGroup"


class LimitThroughputByGroup(WordStep):
    """Limit throughput per message group, which SQS's high throughput mode requires."""

    attribute = "FifoThroughputLimit"
    value_if_absent = default_word = "perQueue"
    fix_word = "perMessageGroupId"


# The IAM action for the probe's call on its own queue, which fails on purpose.
PROBE_ACTION = "sqs:SendMessage"


def list_write_actions(
    step_classes: Iterable[type[AttributeStep]], owner: Owner | None = None
) -> frozenset[str]:
    """Return the IAM actions that the steps of one owner need; of all owners if `owner` is None."""
    return frozenset(
        step_class.iam_action for step_class in step_classes if owner in (None, step_class.owner)
    )


class RestorePolicy(TextStep):
    """Replace the queue's whole policy with the text that a person has pinned.

    Texts are compared exactly, because the person approved this text, and not another one with the
    same meaning.
    """

    attribute = "Policy"
    owner = Owner.RESTORE_POLICY
    value_if_absent = ""

    def find_bounds_fault(self) -> str | None:
        if not self.after:
            return "a policy is never removed"
        if self.after == self.before:
            return "the policy is the pinned one already"
        return None

    def __str__(self) -> str:
        return f"{self.attribute} -> the pinned text of {len(self.after)} characters"


class DlqStep(TextStep):
    """A change that connects a queue with a DLQ.

    A value is an empty text if the attribute is not set. Values are normalized, so that equal
    values have equal texts even if SQS spells them differently.
    """

    owner = Owner.ATTACH_DLQ
    value_if_absent = ""

    @classmethod
    def value_in(cls, attributes: Mapping[str, str]) -> str:
        return cls.normalize(attributes.get(cls.attribute, ""))

    @classmethod
    def normalize(cls, text: str) -> str:
        """Return an attribute's value in Mendq's spelling, so that equal values have equal texts.

        This class returns the text unchanged. Subclasses with a JSON value override the method;
        they return a text unchanged if they cannot parse it.
        """
        return text


class CreateDlq(DlqStep):
    """Create a queue with the ARN in `after`. Mendq never deletes it.

    `DeadLetterQueue` is not an SQS attribute. If the queue exists, the caller of `value_in` must
    add its ARN to `attributes` under this name. The step can be repeated, because CreateQueue
    succeeds if a queue with the same name and attributes exists.
    """

    attribute = "DeadLetterQueue"
    iam_action = "sqs:CreateQueue"
    is_permanent = True

    def find_bounds_fault(self) -> str | None:
        if self.before:
            return f"{self.attribute} is there already: {self.before}"
        if queue_arn_or_none(self.after) is None:
            return f"{self.attribute} cannot be made as {self.after[:120]!r}: that is no queue"
        return None


class AttachDlq(DlqStep):
    """Add a RedrivePolicy to a queue that has none. A fix never replaces a RedrivePolicy.

    A step does not know its queue. So this class cannot check if one queue can be the DLQ of the
    other; `why_unfit_as_dlq` (`mendq/model/queue.py`) does.
    """

    attribute = "RedrivePolicy"

    @classmethod
    def normalize(cls, text: str) -> str:
        redrive_policy = parse_redrive_policy(text)
        return text if redrive_policy is None else redrive_policy.text

    def find_bounds_fault(self) -> str | None:
        redrive_policy = parse_redrive_policy(self.after)
        if (
            self.before
            or redrive_policy is None
            or queue_arn_or_none(redrive_policy.dlq_arn) is None
        ):
            return f"{self.attribute} may go from nothing to a queue alone"
        if redrive_policy.text != self.after:
            return f"{self.attribute} would say more than a queue and a count"
        max_receive_count = redrive_policy.max_receive_count
        if not FEWEST_RECEIVES_BEFORE_DLQ <= max_receive_count <= MOST_RECEIVES_BEFORE_DLQ:
            limits_text = f"{FEWEST_RECEIVES_BEFORE_DLQ} to {MOST_RECEIVES_BEFORE_DLQ}"
            return f"maxReceiveCount must be {limits_text}, not {max_receive_count}"
        return None


class AllowRedriveFrom(DlqStep):
    """Add sources to a RedriveAllowPolicy that lists its sources. No source is removed."""

    attribute = "RedriveAllowPolicy"

    @classmethod
    def normalize(cls, text: str) -> str:
        redrive_allow_policy = parse_redrive_allow_policy(text) if text else None
        return text if redrive_allow_policy is None else redrive_allow_policy.text

    def find_bounds_fault(self) -> str | None:
        policy_before, policy_after = (
            parse_redrive_allow_policy(self.before),
            parse_redrive_allow_policy(self.after),
        )
        if policy_before is None or policy_after is None or policy_after.text != self.after:
            return f"{self.attribute} cannot be read"
        if (policy_before.permission, policy_after.permission) != ("byQueue", "byQueue"):
            return f"{self.attribute} may go from byQueue to byQueue alone"
        added_source_arns = set(policy_after.sources) - set(policy_before.sources)
        if not set(policy_before.sources) < set(policy_after.sources):
            return f"{self.attribute} may gain sources and lose none"
        if any(queue_arn_or_none(source_arn) is None for source_arn in added_source_arns):
            return f"{self.attribute} would name what is no queue"
        if len(policy_after.sources) > MOST_SOURCES_IN_ALLOW_POLICY:
            return f"{self.attribute} takes at most {MOST_SOURCES_IN_ALLOW_POLICY} sources"
        return None


SEND_TO_QUARANTINE_ACTION = "sqs:SendMessage"
# The value of `Dlq` before a redrive, and after a redrive that sent only a part of the messages.
MESSAGES_HELD_IN_DLQ_VALUE = "held"


class RedriveMessages(TextStep):
    """Send the messages of a DLQ back to the queue whose ARN is in `after`.

    `Dlq` is not an SQS attribute, so this step leaves no value in a queue's attributes. A redrive
    takes many minutes. A rollback stops it, but messages that already went back stay there.
    """

    attribute = "Dlq"
    iam_action = "sqs:SendMessage"
    owner = Owner.REDRIVE
    value_if_absent = MESSAGES_HELD_IN_DLQ_VALUE
    is_permanent = True
    has_value_in_queue = False
    most_writes_per_day = 1

    def find_bounds_fault(self) -> str | None:
        if self.before != MESSAGES_HELD_IN_DLQ_VALUE:
            return f"{self.attribute} can only go back while they are {MESSAGES_HELD_IN_DLQ_VALUE}"
        if queue_arn_or_none(self.after) is None:
            return f"{self.attribute} cannot go back to {self.after[:120]!r}: that is no queue"
        return None


def find_redrive_destination(steps: Iterable[Mapping[str, Any]]) -> str:
    """Return the ARN of the queue to which a case's steps send messages back; empty if none does.

    `steps` are the stored steps of the case.
    """
    destination_arn = ""
    for step in steps:
        if step["attribute"] == RedriveMessages.attribute:
            destination_arn = step["after"]
    return destination_arn


STEP_CLASSES: tuple[type[AttributeStep], ...] = (
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


def find_step_class(attribute: str) -> type[AttributeStep] | None:
    """Return the class of the step that writes an attribute; None if there is no such class.

    A stored case may contain a step of an older version of Mendq, which had more classes. For the
    visibility timeout, the class is `SetVisibilityTimeout`, even if the step lowered it.
    """
    return next(
        (step_class for step_class in STEP_CLASSES if step_class.attribute == attribute), None
    )


def is_permanent(attribute: str) -> bool:
    """Return True if a rollback never undoes a step with this attribute."""
    step_class = find_step_class(attribute)
    return step_class is not None and step_class.is_permanent


def has_value_in_queue(attribute: str) -> bool:
    """Return True if the value that a step writes can be read from the queue's attributes.

    This is False only for a redrive, and True for an unknown attribute.
    """
    step_class = find_step_class(attribute)
    return step_class is None or step_class.has_value_in_queue
