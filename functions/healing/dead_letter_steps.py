"""The steps that give a queue its dead-letter queue; another Lambda takes them than heal.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.healing.dead_letters import (
    FEWEST_RECEIVES,
    MOST_RECEIVES,
    MOST_SOURCES,
    allow_of,
    redrive_of,
)
from functions.healing.queue_names import arn_of
from functions.healing.steps import AttributeStep, Owner


@dataclass(frozen=True)
class DeadLetterStep(AttributeStep):
    """A text, empty where nothing is set; compared as what it means, not as it is spelled."""

    before: str
    after: str

    owner = Owner.ATTACH_DEAD_LETTERS
    absent_means = ""

    @classmethod
    def standing_in(cls, attributes: Mapping[str, str]) -> str:
        return cls.meant(attributes.get(cls.attribute, ""))

    @classmethod
    def meant(cls, text: str) -> str:
        """`text` in our spelling; as it is where it cannot be read."""
        return text


class CreateDeadLetters(DeadLetterStep):
    """A queue made under the ARN that `after` names. It is kept: nothing undoes this step.

    DeadLetterQueue is no attribute of SQS: whoever asks what stands there puts the ARN of the queue
    under this name into `attributes` where it exists. CreateQueue answers alike for a queue that
    exists with the same attributes, so the step may be taken twice.
    """

    attribute = "DeadLetterQueue"
    iam_action = "sqs:CreateQueue"
    is_kept = True

    def out_of_bounds(self) -> str | None:
        if self.before:
            return f"{self.attribute} is there already: {self.before}"
        if arn_of(self.after) is None:
            return f"{self.attribute} cannot be made as {self.after[:120]!r}: that is no queue"
        return None


class AttachDeadLetters(DeadLetterStep):
    """From no RedrivePolicy to one; never from one to another.

    Whether the two queues fit is `dead_letters.unfit`, because a step does not know its queue.
    """

    attribute = "RedrivePolicy"

    @classmethod
    def meant(cls, text: str) -> str:
        redrive = redrive_of(text)
        return text if redrive is None else redrive.text

    def out_of_bounds(self) -> str | None:
        redrive = redrive_of(self.after)
        if self.before or redrive is None or arn_of(redrive.dead_letter_arn) is None:
            return f"{self.attribute} may go from nothing to a queue alone"
        if redrive.text != self.after:
            return f"{self.attribute} would say more than a queue and a count"
        if not FEWEST_RECEIVES <= redrive.max_receive_count <= MOST_RECEIVES:
            return (
                f"maxReceiveCount must be {FEWEST_RECEIVES} to {MOST_RECEIVES}, "
                f"not {redrive.max_receive_count}"
            )
        return None


class AllowRedriveFrom(DeadLetterStep):
    """More sources into a RedriveAllowPolicy that names its sources; it takes none out."""

    attribute = "RedriveAllowPolicy"

    @classmethod
    def meant(cls, text: str) -> str:
        allowed = allow_of(text) if text else None
        return text if allowed is None else allowed.text

    def out_of_bounds(self) -> str | None:
        before, after = allow_of(self.before), allow_of(self.after)
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
