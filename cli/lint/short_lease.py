"""A lease that a queue's Lambda functions outlast; a sweep waits until messages are handled twice.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cli.lint.consumers import Consumer
from cli.lint.findings import Severity
from cli.lint.values import NotKnown
from functions.catalogue.lease_expired import LEASE_EXPIRED as LEASE
from functions.healing import lease_needs
from functions.healing.facts import Facts
from functions.healing.lease_needs import LeaseNeed
from functions.healing.steps import SetVisibilityTimeout
from functions.healing.template_lines import template_line

__all__ = ["LEASE", "ShortLease", "lease_of"]


@dataclass(frozen=True)
class ShortLease:
    """An error where work outlasts the lease, a warning where AWS advises a longer one."""

    severity: Severity
    because: str
    cure: tuple[str, ...]


def lease_of(facts: Facts, consumers: Iterable[Consumer]) -> ShortLease | None:
    """None where the lease is long enough; raises NotKnown or TagUnreadable."""
    known = [each.read_by for each in consumers if not isinstance(each.times, NotKnown)]
    facts = replace(facts, lambda_consumers=tuple(known))
    needs = lease_needs.named(facts)
    if not needs:
        return None
    lease = facts.visibility_seconds
    unmet = lease_needs.unmet(facts, needs)
    advised = [each for each in needs if (each.recommended_seconds or 0) > lease]
    if not unmet and not advised:
        return None
    longest = max(unmet or advised, key=_advised_seconds)
    ends = "ends before its consumers are done" if unmet else "leaves Lambda no room for retries"
    seconds = max(_advised_seconds(each) for each in (*unmet, *advised))
    because = f"the lease of {lease} s {ends}: {longest.because}"
    return ShortLease(
        Severity.ERROR if unmet else Severity.WARNING,
        because + longest.recommended_beyond(lease),
        _cure(seconds),
    )


def _advised_seconds(need: LeaseNeed) -> int:
    return need.recommended_seconds or need.seconds


def _cure(seconds: int) -> tuple[str, ...]:
    most = SetVisibilityTimeout.maximum
    if seconds > most:
        return (f"# no lease is longer than {most} s: give the function a shorter timeout",)
    return (template_line(SetVisibilityTimeout.attribute, str(seconds)),)
