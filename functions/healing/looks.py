"""What looking at a queue takes: the IAM actions behind each need, and what each is asked of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from functions.healing.facts import Need


@dataclass(frozen=True)
class LookAction:
    """An IAM action that looking takes, and what it is asked of."""

    iam_action: str
    resource: Literal["queue", "function", "any"]


_TAGS = LookAction("sqs:ListQueueTags", "queue")
QUEUE_LOOKS = (LookAction("sqs:GetQueueAttributes", "queue"), _TAGS)
_METRICS = LookAction("cloudwatch:GetMetricData", "any")
_LAST_CHANGE = LookAction("cloudtrail:LookupEvents", "any")
_LOOKS: dict[Need, tuple[LookAction, ...]] = {
    Need.QUEUE: QUEUE_LOOKS,
    Need.DEAD_LETTER_QUEUE: QUEUE_LOOKS,
    Need.LAMBDA_CONSUMERS: (
        LookAction("lambda:ListEventSourceMappings", "any"),
        LookAction("lambda:GetFunctionConfiguration", "function"),
        _METRICS,
    ),
    Need.MEASUREMENTS: (_METRICS,),
    Need.MOVE_TASKS: (LookAction("sqs:ListMessageMoveTasks", "queue"),),
    Need.DEAD_LETTER_SOURCES: (
        LookAction("sqs:ListDeadLetterSourceQueues", "queue"),
        *QUEUE_LOOKS,
    ),
    Need.DEAD_LETTER_NAMESAKE: QUEUE_LOOKS,
    # Of the ledger, which every Lambda that asks for it may read.
    Need.OPEN_CASES: (),
    Need.SOURCE_CASES: (),
    Need.SOLE_SOURCE: (
        LookAction("sqs:ListDeadLetterSourceQueues", "queue"),
        _TAGS,
        _METRICS,
    ),
    Need.PIN: (_LAST_CHANGE,),
}


# Counting the managed queues, for the stop at a mass symptom; and who changed one last, for a page.
ACCOUNT_LOOKS = (
    LookAction("tag:GetResources", "any"),
    LookAction("sqs:ListQueues", "any"),
    _LAST_CHANGE,
)
# Whether messages were deleted since, and what a page shows.
FOLLOW_UP_LOOKS = (*QUEUE_LOOKS, _METRICS, _LAST_CHANGE)
# What AWS makes of a policy before it is written; they take no narrower resource.
POLICY_CHECKS = (
    LookAction("access-analyzer:CheckNoPublicAccess", "any"),
    LookAction("access-analyzer:CheckNoNewAccess", "any"),
)
# What stands there now, and what a page shows of a write that came between.
ROLL_BACK_LOOKS = (*QUEUE_LOOKS, _LAST_CHANGE)


def look_actions(needs: Iterable[Need]) -> frozenset[LookAction]:
    """The IAM actions that gathering these facts takes, and looking at the account."""
    return frozenset(ACCOUNT_LOOKS).union(*(_LOOKS[need] for need in needs))


def sweep_look_actions(needs: Iterable[Need]) -> frozenset[LookAction]:
    """The same where tags come with the listing of all queues, and nobody is paged."""
    return look_actions(needs) - {_TAGS, _LAST_CHANGE}
