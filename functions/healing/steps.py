"""The changes Mendq can make, as frozen data: IAM action, bounds and inverse beside each other.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from functions.healing.facts import Need


@dataclass(frozen=True)
class AttributeStep:
    """One queue attribute from one whole number to another."""

    before: int
    after: int

    attribute: ClassVar[str]
    iam_action: ClassVar[str] = "sqs:SetQueueAttributes"
    minimum: ClassVar[int]
    maximum: ClassVar[int]

    def inverse(self) -> Self:
        """The step that undoes this one."""
        return replace(self, before=self.after, after=self.before)

    def out_of_bounds(self) -> str | None:
        """Why a fix may not go there; a fix only ever raises."""
        if not self.minimum <= self.after <= self.maximum:
            return f"{self.attribute} must be {self.minimum} to {self.maximum}, not {self.after}"
        if self.after <= self.before:
            return f"{self.attribute} would not rise: {self.before} to {self.after}"
        return None

    def document(self) -> dict[str, str]:
        """As transitions and the ledger hold it."""
        return {
            "attribute": self.attribute,
            "before": str(self.before),
            "after": str(self.after),
        }

    def __str__(self) -> str:
        return f"{self.attribute} {self.before} -> {self.after}"


class SetVisibilityTimeout(AttributeStep):
    """The lease, in seconds."""

    attribute = "VisibilityTimeout"
    minimum = 0
    maximum = 43_200


STEPS: tuple[type[AttributeStep], ...] = (SetVisibilityTimeout,)


def undo_command(queue_url: str, step: Mapping[str, str], region: str) -> str:
    """The `aws` command that undoes a step, given as its document, for people to run."""
    return (
        f"aws sqs set-queue-attributes --region {region} --queue-url {queue_url} "
        f"--attributes {step['attribute']}={step['before']}"
    )


@dataclass(frozen=True)
class LookAction:
    """An IAM action that looking takes, and what it is asked of."""

    iam_action: str
    resource: Literal["queue", "function", "any"]


_LOOKS: dict[Need, tuple[LookAction, ...]] = {
    Need.QUEUE: (
        LookAction("sqs:GetQueueAttributes", "queue"),
        LookAction("sqs:ListQueueTags", "queue"),
    ),
    Need.LAMBDA_CONSUMERS: (
        LookAction("lambda:ListEventSourceMappings", "any"),
        LookAction("lambda:GetFunctionConfiguration", "function"),
        LookAction("cloudwatch:GetMetricData", "any"),
    ),
}


# Counting the managed queues, for the stop at a mass symptom.
ACCOUNT_LOOKS = (LookAction("tag:GetResources", "any"), LookAction("sqs:ListQueues", "any"))


def look_actions(needs: Iterable[Need]) -> frozenset[LookAction]:
    """The IAM actions that gathering these facts takes, and counting the managed queues."""
    return frozenset(ACCOUNT_LOOKS).union(*(_LOOKS[need] for need in needs))


def write_actions(steps: Iterable[type[AttributeStep]]) -> frozenset[str]:
    """The IAM actions that taking these steps takes."""
    return frozenset(step.iam_action for step in steps)
