"""The step that sends a dead-letter queue's letters back to where they died.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.healing.queue_names import arn_of
from functions.healing.steps import AttributeStep, Owner

# What moving messages takes: of the dead-letter queue, and of the source.
LETTER_ACTIONS = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
)
INTO_QUARANTINE = "sqs:SendMessage"
# What DeadLetters is before, and whatever was sent back meanwhile: no letter waits for a value.
HELD = "held"


@dataclass(frozen=True)
class RedriveDeadLetters(AttributeStep):
    """From letters that are held to the ARN of the queue that they go back to.

    DeadLetters is no attribute of SQS, and nothing stands there afterwards: a course of many
    minutes carries it out, and what went back is not taken back.
    """

    before: str
    after: str

    attribute = "DeadLetters"
    iam_action = "sqs:SendMessage"
    owner = Owner.REDRIVE
    absent_means = HELD
    is_kept = True
    leaves_a_value = False
    most_a_day = 1

    @classmethod
    def standing_in(cls, attributes: Mapping[str, str]) -> str:  # noqa: ARG003 - nothing stands
        return HELD

    def out_of_bounds(self) -> str | None:
        if self.before != HELD:
            return f"{self.attribute} can only go back while they are {HELD}"
        if arn_of(self.after) is None:
            return f"{self.attribute} cannot go back to {self.after[:120]!r}: that is no queue"
        return None
