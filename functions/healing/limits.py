"""The bounds that an account sets; the guardrails hold them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How much may be changed; context key `mendq.limits`."""

    writes_per_minute: int = 10
    writes_per_attribute_per_day: int = 3
    mass_symptom_share: float = 0.05
    visibility_ceiling_seconds: int = 900
    sweep_metrics_per_day: int = 20_000


@dataclass(frozen=True)
class Timing:
    """How long things take; context key `mendq.timing`."""

    propagation_seconds: int = 60
    watch_hours: int = 48
    proposal_hours: int = 24
    soak_factor: float = 1.2
    cooldown_minutes: int = 30
    pulse_minutes: int = 60
    measuring_minutes: int = 60
