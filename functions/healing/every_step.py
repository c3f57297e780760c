"""Every kind of change that Mendq can make, for whoever meets one by its attribute's name."""

from __future__ import annotations

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
)
