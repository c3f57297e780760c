"""Every kind of change that Mendq can make, for whoever meets one by its attribute's name."""

from __future__ import annotations

from functions.healing.dead_letter_steps import (
    AllowRedriveFrom,
    AttachDeadLetters,
    CreateDeadLetters,
)
from functions.healing.policy_steps import RestorePolicy
from functions.healing.redrive_step import RedriveDeadLetters
from functions.healing.steps import (
    AttributeStep,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
    SetMessageRetention,
    SetReceiveWaitTime,
    SetVisibilityTimeout,
)

STEPS: tuple[type[AttributeStep], ...] = (
    SetVisibilityTimeout,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
    SetMessageRetention,
    SetReceiveWaitTime,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    CreateDeadLetters,
    AttachDeadLetters,
    AllowRedriveFrom,
    RestorePolicy,
    RedriveDeadLetters,
)


def kind_of(attribute: str) -> type[AttributeStep] | None:
    """The step that writes an attribute; None for what an older Mendq alone knew."""
    return next((each for each in STEPS if each.attribute == attribute), None)


def is_kept(attribute: str) -> bool:
    """Whether what was written under this name is never taken back."""
    kind = kind_of(attribute)
    return kind is not None and kind.is_kept


def leaves_a_value(attribute: str) -> bool:
    """Whether what was written under this name can be found there, or found overruled."""
    kind = kind_of(attribute)
    return kind is None or kind.leaves_a_value
